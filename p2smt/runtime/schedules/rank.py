"""One rank of a job that is a schedule: runs it, checks its results and times it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from p2smt.collectives.contract import Contribution
from p2smt.runtime.options import RankReport, RequestRun, RunOptions
from p2smt.runtime.payload import Array
from p2smt.runtime.schedules.check import PeriodOf, RankValues
from p2smt.runtime.schedules.execution import RankSchedule, prepare_rank
from p2smt.runtime.schedules.job import ScheduleJob
from p2smt.runtime.schedules.rows import rows_of
from p2smt.runtime.site import Site, Tell, machine


def run_schedule_rank(job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run a schedule's part of a rank; the default process group must exist."""
    torch.set_num_threads(1)  # the chains of a rank run side by side already
    runner = _Runner(job, options, site, tell)
    runner.check_exact()
    if options.data_type.unit_roundoff:
        runner.check_random()
    for repetition in range(-options.warmup, options.repeat if options.repeat else -options.warmup):
        runner.time(repetition)
    return RankReport(site.rank, [runner.run], machine(site))


class _Runner:
    """``right`` is what every timed repetition must leave, made by the first check (None: it found
    a mistake, or was not made yet).
    """

    def __init__(self, job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> None:
        tell("preparation")
        rows = rows_of(job.schedule, site.rank)
        data_type: torch.dtype = getattr(torch, options.data_type.value)
        memory = torch.empty((rows.total, job.width(options.data_type)), dtype=data_type)
        self.site, self.options, self.tell = site, options, tell
        self.run = RequestRun()
        self.right: list[torch.Tensor] | None = None
        self.program: RankSchedule = prepare_rank(job, site.rank, memory)
        self.values = RankValues.of_rank(
            job.schedule.contract, site.rank, rows, memory, options.data_type, options.seed
        )

    def check_exact(self) -> None:
        """Run on integers, and compare."""

        def look() -> None:
            self._compare(self.values.integers, exact=True)
            self.right = None if self.run.errors else self.values.kept()

        self._execute("check", self.values.integers, look)
        self.run.checked = True

    def check_random(self) -> None:
        """Run on random numbers, and compare within the bound on rounding errors."""
        self._execute(
            "check of random values",
            self.values.floats,
            lambda: self._compare(self.values.floats, exact=False),
        )
        self.run.float_checked = self.values.bounded

    def time(self, repetition: int) -> None:
        """Run once more, note how long it takes, and compare.

        Signs change from one repetition to the next: nothing old can pass for a result.
        """
        sign = 1 if repetition % 2 else -1

        def values(part: Contribution) -> Array:
            return sign * self.values.integers(part)

        def look() -> None:
            if self.right is not None and not self.values.holds(self.right, sign):
                self._compare(values, exact=True, where=f" (in {self._named(repetition)})")

        taken = self._execute("repetition", values, look)
        if repetition >= 0:
            self.run.total_s.append(taken)
            self.run.repetitions_checked += self.right is not None

    def _named(self, repetition: int) -> str:
        warmup, repeat = self.options.warmup, self.options.repeat
        if repetition < 0:
            return f"warm-up {repetition + warmup + 1} of {warmup}"
        return f"timed repetition {repetition + 1} of {repeat}"

    def _compare(self, values: PeriodOf, *, exact: bool, where: str = "") -> None:
        """Note the first wrong element, of the first run that has one."""
        found = "" if self.run.errors else self.values.wrong(values, exact=exact)
        if found:
            self.run.errors.append(f"{found}{where}")

    def _execute(self, name: str, values: PeriodOf, look: Callable[[], None]) -> float:
        """Run once; seconds.  ``look`` when all but background steps are complete."""
        self.values.load(values)
        self.program.forget()
        execution = self.program.start()
        self.tell(name)
        self.site.barrier()
        tell: Tell = lambda where: self.tell(f"{name}: {where}")  # noqa: E731
        taken = execution.run(tell)
        look()
        execution.finish(tell)
        return taken
