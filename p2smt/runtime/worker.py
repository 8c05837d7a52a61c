"""A rank as a process: it joins the others, runs the job and hands in its report."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import (  # type: ignore[attr-defined]  # exported at run time only
    PrefixStore,
    TCPStore,
)

from p2smt.errors import BackendError, ExecutionError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RankReport, RunOptions, named, report_of
from p2smt.runtime.place import Place
from p2smt.runtime.torch_groups import Groups
from p2smt.runtime.torch_prepared import Site
from p2smt.runtime.torch_rank import run_rank
from p2smt.runtime.torch_time import Tell

START_LIMIT_S = 60.0
"""Ranks must have joined after so long, or after the time limit if that is shorter."""
_MULTI_RANK_NCCL = (2, 30)


def run_worker(job: Job, options: RunOptions, place: Place, tell: Tell) -> list[RankReport] | None:
    """Run a rank to its end; rank 0 gets the reports of all.

    Raises:
        BackendError: the backend is not built into this torch.
        ExecutionError: other ranks did not join, or there are too few GPUs.
    """
    device = _device(options, place)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // place.local_ranks))
    tell("joining the others")
    store = _store(place, options)
    _join(store, place, options)
    limit = timedelta(seconds=options.time_limit_s)
    dist.init_process_group(
        options.backend,
        store=PrefixStore("p2smt", store),
        rank=place.rank,
        world_size=place.ranks,
        timeout=limit,
    )
    site = Site(place.rank, place.ranks, device, Groups(place.ranks))
    report = run_rank(job, options, site, tell)
    tell("handing in the report")
    reports = _exchange(store, place, report, limit)
    dist.destroy_process_group()
    return reports


def _device(options: RunOptions, place: Place) -> torch.device:
    if options.backend == "nccl" and not (dist.is_nccl_available() and torch.cuda.is_available()):
        raise BackendError(
            "backend nccl: this torch finds no CUDA GPU, or has no NCCL; install a CUDA build of "
            "torch on a machine with GPUs, or use --backend gloo"
        )
    if options.device == "cpu":
        return torch.device("cpu")
    gpu, count = place.local_rank // options.ranks_per_gpu, torch.cuda.device_count()
    if gpu >= count:
        raise ExecutionError(
            f"rank {place.rank}: needs GPU {gpu}, but this machine has {count}; start fewer ranks, "
            "or put several on a GPU with --ranks-per-gpu (a check of results, not of times)"
        )
    if options.ranks_per_gpu > 1:
        _share_gpu(place)
    torch.cuda.set_device(gpu)
    return torch.device("cuda", gpu)


def _share_gpu(place: Place) -> None:
    """Let NCCL accept several ranks on one GPU.

    NCCL refuses two ranks with the same host and GPU.  From 2.30 it has a switch for that;
    before, each rank claims a host of its own, which also makes it use the network transport.
    """
    version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    if version[:2] >= _MULTI_RANK_NCCL:
        os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    else:
        os.environ["NCCL_HOSTID"] = f"p2smt-rank-{place.rank}"


def _store(place: Place, options: RunOptions) -> TCPStore:
    limit = timedelta(seconds=min(START_LIMIT_S, options.time_limit_s))
    serves = place.serves or place.listen_fd is not None
    try:
        return TCPStore(
            place.host,
            place.port,
            place.ranks,
            is_master=serves,
            timeout=limit,
            wait_for_workers=False,
            master_listen_fd=place.listen_fd,
        )
    except (dist.DistError, RuntimeError) as error:
        where = f"{place.host}:{place.port}"
        text = f"cannot listen on {where}" if serves else f"rank 0 did not answer at {where}"
        raise ExecutionError(f"rank {place.rank}: {text} ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:200]


def _join(store: TCPStore, place: Place, options: RunOptions) -> None:
    """Wait until every rank is there."""
    limit = timedelta(seconds=min(START_LIMIT_S, options.time_limit_s))
    store.set(f"joined/{place.rank}", "yes")
    try:
        store.wait([f"joined/{rank}" for rank in range(place.ranks)], limit)
    except (dist.DistError, RuntimeError):
        missing = [r for r in range(place.ranks) if not store.check([f"joined/{r}"])]
        raise ExecutionError(
            f"{named(missing)} did not start within {limit.total_seconds():g} s "
            f"(rank {place.rank} waited)"
        ) from None


def _exchange(
    store: TCPStore, place: Place, report: RankReport, limit: timedelta
) -> list[RankReport] | None:
    """Hand in a report; rank 0 waits for those of all."""
    store.set(f"report/{place.rank}", json.dumps(asdict(report)))
    if place.rank:
        return None
    keys = [f"report/{rank}" for rank in range(place.ranks)]
    store.wait(keys, limit)
    return [report_of(json.loads(store.get(key))) for key in keys]
