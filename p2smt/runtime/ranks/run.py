"""Runs work on the backend that is asked for, and joins what its ranks report."""

from __future__ import annotations

import os
import socket
import threading
import time

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RankReport, RunOptions, in_short, named
from p2smt.runtime.programs.reference import run_reference
from p2smt.runtime.ranks.launch import LOCAL, Fleet, StartCommand, launch
from p2smt.runtime.ranks.listen import serving
from p2smt.runtime.ranks.memory import check_memory
from p2smt.runtime.ranks.place import Place, check_gpus, existing_place, local_ranks
from p2smt.runtime.ranks.worker import run_worker, start_limit
from p2smt.runtime.summary import RunResult, summarize
from p2smt.runtime.work import Work


def run_job(job: Job, options: RunOptions, *, port: int = 0) -> RunResult | None:
    """Run a job and join the reports of its ranks; as for :func:`execute`."""
    reports = execute(job, options, port=port)
    return None if reports is None else summarize(job, reports)


def execute(job: Job, options: RunOptions, *, port: int = 0) -> list[RankReport] | None:
    """Run a job on the reference executor, or as for :func:`on_ranks`."""
    if options.backend == "reference":
        check_memory(job, options, range(job.ranks))
        return run_reference(job, options)
    return on_ranks(job, options, port=port)


def on_ranks(work: Work, options: RunOptions, *, port: int = 0) -> list[RankReport] | None:
    """Run work on real ranks: under torchrun or srun as one of them, else on ranks of its own.

    Returns None on every rank but 0 of ranks that existed already.

    Raises:
        InputError: more ranks, or more memory, than there are.
        BackendError: torch, the backend or any GPU is missing.
        ExecutionError: the port is in use, GPUs are too few, a rank died, failed, or did not
            finish within the time limit.
    """
    place = existing_place()
    if place is not None and place.ranks != work.ranks:
        raise InputError(
            f"{place.ranks} ranks that a launcher started",
            f"the plan is for {work.ranks}",
            f"start {work.ranks}",
        )
    check_memory(work, options, local_ranks(place, work.ranks))
    check_gpus(options, place, work.ranks)
    if place is None:
        machine = LOCAL if "GLOO_SOCKET_IFNAME" not in os.environ else StartCommand()
        return launch(work, options, Fleet((machine,), port=port))
    if place.serves:
        place = serving(place)  # before torch is imported, which takes long
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # what fails is told in one line of ours
    from p2smt.runtime.ranks.run import run_joined

    reports = run_joined(work, options, place)
    return reports and in_host_order(reports)


def in_host_order(reports: list[RankReport]) -> list[RankReport]:
    """The reports, if the ranks of each host follow each other.

    Raises:
        InputError: they do not; ranks are then not the devices that the topology says.
    """
    hosts = [report.machine["host"] for report in reports]
    starts = [host for rank, host in enumerate(hosts) if rank == 0 or hosts[rank - 1] != host]
    for host in starts:
        if starts.count(host) > 1:
            ranks = [rank for rank, found in enumerate(hosts) if found == host]
            raise InputError(
                f"{named(ranks)} on host {host}",
                "ranks must be numbered host by host, as devices are",
                "start them so, with srun --distribution=block for instance",
            )
    return reports


# This process as one rank among those that torchrun, srun or somebody's script started.


_RETRY_S = 0.2


def run_joined(work: Work, options: RunOptions, place: Place) -> list[RankReport] | None:
    """Run work as one rank; rank 0 gets the reports of all.

    Raises:
        BackendError, ExecutionError: as for :func:`p2smt.runtime.ranks.worker.run_worker`; also if
            the connection to another rank is lost, or the time limit is reached.
    """
    doing = ["its start"]
    outcome: list[list[RankReport] | Exception | None] = []

    def run() -> None:
        try:
            _reach_rank_0(place, start_limit(options).total_seconds())
            outcome.append(run_worker(work, options, place, lambda text: doing.append(text)))
        except Exception as error:  # handed to the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(options.time_limit_s)
    where = f"rank {place.rank}"
    if not outcome:
        text = f"no result within {options.time_limit_s:g} s (it was at {doing[-1]})"
        raise ExecutionError(f"{where}: {text}")
    result = outcome[0]
    if isinstance(result, BackendError | ExecutionError | InputError):
        raise result
    if isinstance(result, Exception):
        text = f"{type(result).__name__} during {doing[-1]}: {in_short(result)}"
        raise ExecutionError(f"{where}: {text}")
    return result


def _reach_rank_0(place: Place, limit_s: float) -> None:
    """Wait until the store can be reached: torch's own attempts may take twice their limit."""
    end = time.monotonic() + limit_s
    while place.listen_fd is None:
        try:
            left_s = max(0.1, end - time.monotonic())
            socket.create_connection((place.host, place.port), left_s).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                where = f"{place.host}:{place.port} ({error.strerror or error})"
                text = f"rank 0 did not answer within {limit_s:g} s at {where}"
                raise ExecutionError(f"rank {place.rank}: {text}") from None
            time.sleep(_RETRY_S)
