"""Runs work on the backend that is asked for, and joins what its ranks report."""

from __future__ import annotations

import os

from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RankReport, RunOptions, named
from p2smt.runtime.programs.reference_backend import run_reference
from p2smt.runtime.ranks.listen import serving
from p2smt.runtime.ranks.memory_check import check_memory
from p2smt.runtime.ranks.mpi_launch import on_mpi, ranks_here
from p2smt.runtime.ranks.place import check_gpus, existing_place, local_ranks
from p2smt.runtime.ranks.start_ranks import LOCAL, Fleet, StartCommand, launch
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
    if options.backend == "mpi":
        check_memory(work, options, ranks_here(work.ranks))
        found = on_mpi(work, options)
        return found and in_host_order(found)
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
    from p2smt.runtime.ranks.joined import run_joined

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
