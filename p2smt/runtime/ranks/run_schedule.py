"""Runs a schedule on the backend that is asked for, and says together what its ranks report."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.ranks.memory_check import check_memory
from p2smt.runtime.ranks.on_ranks import on_ranks
from p2smt.runtime.ranks.place import existing_place, local_ranks
from p2smt.runtime.schedules.reference import ReferenceRun, run_reference
from p2smt.runtime.schedules.schedule_job import ScheduleJob, check_backend, check_two_sided
from p2smt.runtime.summary import CheckedRun, Times, slowest
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify

_MOST_ERRORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult(CheckedRun):
    """A schedule on all ranks.

    verdict: of the checker, about every interleaving ("": not asked).
    interleavings: how many the reference executor has tried; 0 on real ranks.
    """

    job: ScheduleJob
    verdict: str
    interleavings: int

    def payload_bytes(self, options: RunOptions) -> int:
        """The larger of input and output of a rank, as it was run."""
        chunks = max(max(sizes.input, sizes.output) for sizes in self.job.schedule.sizes)
        if options.backend == "reference":
            return chunks * self.job.reference_width * 8
        return chunks * self.job.width(options.data_type) * options.data_type.item_bytes


def run_schedule(
    job: ScheduleJob, options: RunOptions, *, port: int = 0, unverified: bool = False
) -> ScheduleResult | None:
    """Verify a schedule, then run it; None on every rank but 0 of ranks that existed already.

    On the reference executor ``options.repeat`` interleavings are tried (at least one).
    ``unverified``: run it whatever the checker would say.

    Raises:
        InputError: it is not right in every interleaving, or the backend cannot carry it out.
        BackendError, ExecutionError: as for :func:`p2smt.runtime.ranks.on_ranks.on_ranks`.
    """
    check_backend(options)
    if options.backend != "reference":
        check_two_sided(job.schedule)
        # Ranks weigh it again when they start: what the checker does may take long.
        check_memory(job, options, local_ranks(existing_place(), job.ranks))
    verdict = "" if unverified else _verdict(job)
    if options.backend == "reference":
        return _on_reference(job, options, verdict)
    reports = on_ranks(job, options, port=port)
    return None if reports is None else _joined(job, verdict, reports)


def _verdict(job: ScheduleJob) -> str:
    report = verify(job.schedule, job.fifo_depth)
    if report.verdict is Verdict.INVALID:
        raise InputError(
            f"schedule {job.schedule.name}",
            f"is not right in every interleaving ({report.violations[0].message})",
            "p2smt verify says more; --unverified runs it all the same",
        )
    return report.verdict.value


def _joined(job: ScheduleJob, verdict: str, reports: Sequence[RankReport]) -> ScheduleResult:
    runs = [report.requests[0] for report in reports]
    return ScheduleResult(
        job=job,
        verdict=verdict,
        errors=tuple(error for run in runs for error in run.errors),
        checked=all(run.checked for run in runs),
        float_checked=all(run.float_checked for run in runs),
        repetitions_checked=min(run.repetitions_checked for run in runs),
        total=slowest([run.total_s for run in runs]),
        interleavings=0,
        machines=tuple(report.machine for report in reports),
    )


def _on_reference(job: ScheduleJob, options: RunOptions, verdict: str) -> ScheduleResult:
    """As many interleavings as repetitions are asked for, or as there is time for."""
    check_memory(job, options, range(job.ranks))
    end, errors, count = time.monotonic() + options.time_limit_s, list[str](), 0
    for seed in range(options.seed, options.seed + max(1, options.repeat)):
        if count and time.monotonic() > end:
            break
        run = run_reference(job.schedule, seed, job.fifo_depth, width=job.reference_width)
        errors += _errors(job.schedule, run) if len(errors) < _MOST_ERRORS else []
        count += 1
    machine = {"host": platform.node(), "python": platform.python_version(), "device": "numpy"}
    return ScheduleResult(
        job=job,
        verdict=verdict,
        errors=tuple(errors),
        checked=True,
        float_checked=False,
        repetitions_checked=0,
        total=Times(()),
        interleavings=count,
        machines=(machine,) * job.ranks,
    )


def _errors(schedule: Schedule, run: ReferenceRun) -> list[str]:
    """What is wrong with a run, in words."""
    where, steps = f"interleaving {run.seed}", schedule.steps
    found = [run.error] if run.error else []
    if run.deadlock:
        waiting = ", ".join(str(steps[number]) for number in run.stuck[:_MOST_ERRORS])
        left = run.total - len(run.order)
        found.append(f"deadlock: {left} steps are never done, these wait: {waiting}")
    found += [
        f"rank {goal.rank}: output chunk {goal.chunk} does not hold what it must"
        for goal in run.wrong[:_MOST_ERRORS]
    ]
    if not run.deadlock:
        found += [f"{count} messages are left on {c}" for c, count in run.unreceived]
    return [f"{where}: {text}" for text in found]
