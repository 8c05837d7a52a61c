"""One rank of a job that is a schedule: runs it, checks its results and times it."""

from __future__ import annotations

import torch

from p2smt.runtime.options import RankReport, RequestRun, RunOptions
from p2smt.runtime.schedules.check import PeriodOf, RankValues
from p2smt.runtime.schedules.execution import RankSchedule, prepare_rank
from p2smt.runtime.schedules.job import ScheduleJob
from p2smt.runtime.schedules.rows import rows_of
from p2smt.runtime.site import Site, Tell, machine


def run_schedule_rank(job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run a schedule's part of a rank; the default process group must exist."""
    torch.set_num_threads(1)  # the chains of a rank run side by side already
    runner = _Runner(job, options, site, tell)
    runner.check_exact("check")
    if options.data_type.unit_roundoff:
        runner.check_random()
    for repetition in range(-options.warmup, options.repeat if options.repeat else -options.warmup):
        taken = runner.execute("repetition", runner.values.integers)
        if repetition >= 0:
            runner.run.total_s.append(taken)
    if options.repeat:
        runner.check_exact("check after the timed runs")
    return RankReport(site.rank, [runner.run], machine(site))


class _Runner:
    def __init__(self, job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> None:
        tell("preparation")
        rows = rows_of(job.schedule, site.rank)
        data_type: torch.dtype = getattr(torch, options.data_type.value)
        memory = torch.empty((rows.total, job.width(options.data_type)), dtype=data_type)
        self.site, self.tell, self.run = site, tell, RequestRun()
        self.program: RankSchedule = prepare_rank(job, site.rank, memory)
        self.values = RankValues.of_rank(
            job.schedule.contract, site.rank, rows, memory, options.data_type, options.seed
        )

    def check_exact(self, name: str) -> None:
        wrong: list[str] = []
        self.execute(name, self.values.integers, wrong, exact=True)
        self.run.errors += [] if self.run.errors else wrong
        self.run.checked = True

    def check_random(self) -> None:
        wrong: list[str] = []
        self.execute("check of random values", self.values.floats, wrong, exact=False)
        self.run.errors += [] if self.run.errors else wrong
        self.run.float_checked = self.values.bounded

    def execute(
        self,
        name: str,
        values: PeriodOf,
        wrong: list[str] | None = None,
        *,
        exact: bool = True,
    ) -> float:
        """Run once; seconds.  ``wrong``: compare when all but background steps are complete."""
        self.values.load(values)
        execution = self.program.start()
        self.tell(name)
        self.site.barrier()
        tell: Tell = lambda where: self.tell(f"{name}: {where}")  # noqa: E731
        taken = execution.run(tell)
        if wrong is not None:
            found = self.values.wrong(values, exact=exact)
            wrong += [found] if found else []
        execution.finish(tell)
        return taken
