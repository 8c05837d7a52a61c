"""A rank as a process: it joins the others, does its part of the work and hands in its report."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from datetime import timedelta
from typing import assert_never

import torch
import torch.distributed as dist
from torch.distributed import (  # type: ignore[attr-defined]  # exported at run time only
    PrefixStore,
    TCPStore,
)

from p2smt.errors import ExecutionError
from p2smt.runtime.arrays.array_rank import run_array_rank
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RankReport, RunOptions, in_short, named, report_of
from p2smt.runtime.process_groups import GroupCache, Site, Tell
from p2smt.runtime.programs.program_rank import run_rank
from p2smt.runtime.ranks.place import Place, no_cuda, too_few_gpus
from p2smt.runtime.schedules.rank import run_schedule_rank
from p2smt.runtime.schedules.schedule_job import ScheduleJob, check_backend
from p2smt.runtime.transfers.transfer_job import TransferJob
from p2smt.runtime.transfers.transfer_rank import run_transfer_rank
from p2smt.runtime.work import Work
from p2smt.units import plain

START_LIMIT_S = 60.0
"""Ranks must have joined after so long, or after half of the time limit if that is shorter."""
_TELL = timedelta(seconds=2)
"""What rank 0 and the others give each other to tell and to hear who is missing."""
_MULTI_RANK_NCCL = (2, 30)


def run_worker(
    work: Work, options: RunOptions, place: Place, tell: Tell
) -> list[RankReport] | None:
    """Run a rank to its end; rank 0 gets the reports of all.

    Raises:
        BackendError: the backend is not built into this torch.
        ExecutionError: other ranks did not join, or there are too few GPUs.
    """
    device = _device(options, place)
    if options.backend == "nccl":
        _prepare_nccl(work, options, place)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // place.local_ranks))
    tell("joining the others")
    store = PrefixStore(f"p2smt/{place.run}", _store(place, options))
    _join(store, place, options)
    limit = timedelta(seconds=options.time_limit_s)
    dist.init_process_group(
        options.backend,
        store=PrefixStore("groups", store),
        rank=place.rank,
        world_size=place.ranks,
        timeout=limit,
    )
    site = Site(place.rank, place.ranks, device, GroupCache(place.ranks))
    report = report_work(work, options, site, tell)
    tell("handing in the report")
    reports = _exchange(store, place, report, limit)
    dist.destroy_process_group()
    return reports


def report_work(work: Work, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Do a rank's part of the work; the default process group must exist."""
    match work:
        case Job():
            return run_rank(work, options, site, tell)
        case ScheduleJob():
            return run_schedule_rank(work, options, site, tell)
        case ArrayJob():
            return run_array_rank(work, options, site, tell)
        case TransferJob():
            return run_transfer_rank(work, options, site, tell)
        case _:
            assert_never(work)


def _device(options: RunOptions, place: Place) -> torch.device:
    if options.device == "cpu":
        return torch.device("cpu")
    nccl = options.backend == "nccl"
    if not torch.cuda.is_available() or (nccl and not dist.is_nccl_available()):
        raise no_cuda(options)
    gpu, count = place.local_rank // options.ranks_per_gpu, torch.cuda.device_count()
    if place.joined and count == 1:  # a launcher may show each rank its own GPU alone
        gpu = 0
    if gpu >= count:
        raise too_few_gpus(place.rank, gpu, count)
    torch.cuda.set_device(gpu)
    return torch.device("cuda", gpu)


def _prepare_nccl(work: Work, options: RunOptions, place: Place) -> None:
    """Settings that NCCL reads when its first communicator is made.

    The pieces of a pipelined request run on streams of their own, in groups of their own.  Their
    kernels may fill the GPU in another order on each rank, and then wait for each other for
    ever, unless NCCL (2.26 or newer) keeps them in the order in which they were issued.

    Raises:
        InputError: NCCL cannot carry the work.
    """
    match work:
        case Job():
            if any(request.chunks > 1 for request in work.requests):
                os.environ.setdefault("NCCL_LAUNCH_ORDER_IMPLICIT", "1")
        case ScheduleJob():
            check_backend(options)
        case ArrayJob() | TransferJob():
            pass
        case _:
            assert_never(work)
    if options.ranks_per_gpu > 1:
        _share_gpu(place)


def _share_gpu(place: Place) -> None:
    """Let NCCL accept several ranks on one GPU.

    NCCL refuses two ranks with the same host and GPU.  From 2.30 it has a switch for that;
    before, each rank claims a host of its own, which also makes it use the network transport.
    """
    version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    if version[:2] >= _MULTI_RANK_NCCL:
        os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast is between GPUs
    else:
        os.environ["NCCL_HOSTID"] = f"p2smt-rank-{place.rank}"


def start_limit(options: RunOptions) -> timedelta:
    """How long ranks may take to find each other."""
    return timedelta(seconds=min(START_LIMIT_S, options.time_limit_s / 2))


def _store(place: Place, options: RunOptions) -> TCPStore:
    serves = place.listen_fd is not None
    try:
        return TCPStore(
            place.host,
            place.port,
            place.ranks,
            is_master=serves,
            timeout=start_limit(options),
            wait_for_workers=False,
            master_listen_fd=place.listen_fd,
        )
    except (dist.DistError, RuntimeError) as error:
        where = f"{place.host}:{place.port}"
        text = f"cannot listen on {where}" if serves else f"rank 0 did not answer at {where}"
        raise ExecutionError(f"rank {place.rank}: {text} ({in_short(error)})") from None


def _join(store: PrefixStore, place: Place, options: RunOptions) -> None:
    """Wait until every rank is there; rank 0 says who is missing, so that all give up together."""
    limit = start_limit(options)
    store.set(f"joined/{place.rank}", "yes")
    if place.rank == 0:
        store.set("missing", json.dumps(_missing(store, place, limit)))
    try:
        store.wait(["missing"], limit + _TELL)
        missing = json.loads(store.get("missing"))
    except (dist.DistError, RuntimeError):
        missing = [0]
    if not missing:
        return
    store.set(f"told/{place.rank}", "yes")
    if place.rank == 0:  # it may serve the store that the others read
        with contextlib.suppress(dist.DistError, RuntimeError):
            store.wait(
                [f"told/{rank}" for rank in range(place.ranks) if rank not in missing], _TELL
            )
    text = f"{named(missing)} did not start within {plain(limit.total_seconds(), 6)} s"
    raise ExecutionError(f"{text} (rank {place.rank} waited)")


def _missing(store: PrefixStore, place: Place, limit: timedelta) -> list[int]:
    """Ranks that have not joined after ``limit``."""
    try:
        store.wait([f"joined/{rank}" for rank in range(place.ranks)], limit)
    except (dist.DistError, RuntimeError):
        return [rank for rank in range(place.ranks) if not store.check([f"joined/{rank}"])]
    return []


def _exchange(
    store: PrefixStore, place: Place, report: RankReport, limit: timedelta
) -> list[RankReport] | None:
    """Hand in a report; rank 0 waits for those of all."""
    store.set(f"report/{place.rank}", json.dumps(asdict(report)))
    if place.rank:
        return None
    keys = [f"report/{rank}" for rank in range(place.ranks)]
    store.wait(keys, limit)
    return [report_of(json.loads(store.get(key))) for key in keys]
