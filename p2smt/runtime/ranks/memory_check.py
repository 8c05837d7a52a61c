"""Refuses work that this machine's memory cannot hold, each kind weighed by what it allocates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from p2smt.collectives.dispatch import Dispatch
from p2smt.errors import InputError
from p2smt.runtime.arrays import rank_steps as of_arrays
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.schedules import schedule_job as of_schedules
from p2smt.runtime.schedules.schedule_job import ScheduleJob
from p2smt.runtime.transfers import transfer_job as of_transfers
from p2smt.runtime.transfers.transfer_job import TransferJob
from p2smt.runtime.work import Work
from p2smt.units import counted, format_bytes


@dataclass(frozen=True, slots=True)
class Need:
    """Memory that ``what`` needs on this machine, and what to do where there is less."""

    what: str
    total_bytes: int
    remedy: str


def need_of(work: Work, options: RunOptions, local: Sequence[int]) -> Need:
    """What the ranks ``local`` of a work need; the reference executor runs all of them here."""
    match work:
        case Job():
            each = format_bytes(largest_payload_bytes(work))
            total = rank_bytes(work, options) * len(local)
            return Need(f"{each} on each of {len(local)} ranks", total, _smaller("16MiB"))
        case ScheduleJob():
            if options.backend == "reference":
                total = of_schedules.reference_bytes(work)
            else:
                total = of_schedules.ranks_bytes(work, options.data_type, local)
            return Need(
                f"schedule {work.schedule.name} on {work.ranks} ranks", total, _smaller("1MiB")
            )
        case ArrayJob():
            each = format_bytes(of_arrays.predicted_bytes(work))
            if options.backend == "reference":
                total = of_arrays.array_reference_bytes(work)
            else:
                total = of_arrays.array_rank_bytes(work) * len(local)
            what = f"{each} on each of {len(local)} ranks"
            return Need(what, total, "plan a smaller array for this check")
        case TransferJob():
            if options.backend == "reference":
                total = of_transfers.transfer_reference_bytes(work)
            else:
                total = sum(
                    of_transfers.transfer_rank_bytes(work, work.devices[rank]) for rank in local
                )
            what = f"{counted(len(work.before.tensors), 'tensor')} on {len(local)} ranks"
            remedy = "plan a smaller model for this check, of a config.json with fewer layers"
            return Need(what, total, remedy)
        case _:
            assert_never(work)


def _smaller(payload: str) -> str:
    """The remedy for work whose payload can be chosen."""
    return f"give a smaller payload, such as --payload {payload}"


def check_memory(work: Work, options: RunOptions, local: Sequence[int]) -> None:
    """Refuse work that needs more than is free; what GPUs have is not known here.

    Raises:
        InputError: naming how much it needs, and how much there is.
    """
    free, need = free_bytes(), need_of(work, options, local)
    if options.device == "cpu" and free is not None and need.total_bytes > free:
        total = format_bytes(need.total_bytes)
        raise InputError(
            need.what,
            f"needs about {total} of memory, {format_bytes(free)} are free",
            need.remedy,
        )


def free_bytes() -> int | None:
    """Memory that could be used without swapping (Linux; elsewhere None)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


# What a job needs of memory on each rank: as much as its largest request.


_COPIES = 3  # payload, its source, and buffers of rows that are not in one run
_CHECKED_BYTES = 48  # per element: what is found, expected and allowed is held in 64 bits each


def largest_payload_bytes(job: Job) -> int:
    """The largest payload of a rank."""
    return max(map(_held_bytes, job.requests), default=0)


def _held_bytes(request: JobRequest) -> int:
    """A payload; of a dispatch with the copies that a rank gets of the others' tokens."""
    if not isinstance(request.kind, Dispatch):
        return request.payload_bytes
    return request.payload_bytes * (1 + min(request.kind.active, request.size))


def rank_bytes(job: Job, options: RunOptions) -> int:
    """About the memory that each rank needs."""
    copies = _CHECKED_BYTES // options.data_type.item_bytes if options.check else _COPIES
    return copies * largest_payload_bytes(job)
