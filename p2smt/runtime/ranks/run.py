"""Runs a job on the backend that is asked for, and joins what its ranks report."""

from __future__ import annotations

import os
from pathlib import Path

from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RankReport, RunOptions, named
from p2smt.runtime.programs.reference_run import run_reference
from p2smt.runtime.ranks.launch import LOCAL, Fleet, Machine, launch
from p2smt.runtime.ranks.place import existing_place
from p2smt.runtime.summary import RunResult, summarize
from p2smt.units import format_bytes

_COPIES = 3  # payload, its source, and buffers of rows that are not in one run
_CHECKED_BYTES = 48  # per element: what is found, expected and allowed is held in 64 bits each


def run_job(job: Job, options: RunOptions, *, port: int = 0) -> RunResult | None:
    """Run a job and join the reports of its ranks; as for :func:`execute`."""
    reports = execute(job, options, port=port)
    return None if reports is None else summarize(job, reports)


def execute(job: Job, options: RunOptions, *, port: int = 0) -> list[RankReport] | None:
    """Run a job: under torchrun or srun as one of its ranks, else on ranks of its own.

    Returns None on every rank but 0 of ranks that existed already.

    Raises:
        InputError: more ranks, or more memory, than there are.
        BackendError: torch or the backend is missing.
        ExecutionError: a rank died, failed, or did not finish within the time limit.
    """
    if options.backend == "reference":
        check_memory(job, options, job.ranks)
        return run_reference(job, options)
    place = existing_place()
    if place is None:
        check_memory(job, options, job.ranks)
        machine = LOCAL if "GLOO_SOCKET_IFNAME" not in os.environ else Machine()
        return launch(job, options, Fleet((machine,), port=port))
    if place.ranks != job.ranks:
        raise InputError(
            f"{place.ranks} ranks that a launcher started",
            f"the plan is for {job.ranks}",
            f"start {job.ranks}",
        )
    check_memory(job, options, place.local_ranks)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # what fails is told in one line of ours
    from p2smt.runtime.ranks.joined import run_joined

    reports = run_joined(job, options, place)
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


def check_memory(job: Job, options: RunOptions, local_ranks: int) -> None:
    """Refuse payloads that this machine's memory cannot hold for all its ranks."""
    free = free_bytes()
    each = max((request.payload_bytes for request in job.requests), default=0)
    copies = _CHECKED_BYTES // options.data_type.item_bytes if options.check else _COPIES
    need = copies * each * local_ranks
    if options.device == "cpu" and free is not None and need > free:
        raise InputError(
            f"{format_bytes(each)} on each of {local_ranks} ranks",
            f"needs about {format_bytes(need)} of memory, {format_bytes(free)} are free",
            "give a smaller payload, such as --payload 16MiB",
        )


def free_bytes() -> int | None:
    """Memory that could be used without swapping (Linux; elsewhere None)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None
