"""Runs sets of cases on ranks, one start after the other, and finds out which cases fail."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.gpu_check.case_sets import CaseSet
from p2smt.errors import BackendError, ExecutionError
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.payload import RankReport, RequestRun, RunOptions
from p2smt.runtime.summary import summarize
from p2smt.runtime.work import Work

Run = Callable[[Work, RunOptions], list[RankReport]]
"""Runs work on ranks of its own."""

VERIFIED, FAILED, NOT_RUN = "verified", "failed", "not run"
START_S = 75.0
"""A start of ranks is ended after so long, or when the time of all is over."""
LEAST_S = 15.0
"""With less time than this nothing more is started."""
_REQUEST = re.compile(r"\brequest (\d+) \(")


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, its median time (the slowest rank's), and the cost model's."""

    name: str
    measured_s: float | None
    predicted_s: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a case.

    ``state``: verified, failed or not run; ``said``: what was compared, or why it was not.
    ``steps``: their times, where the case is for times.
    """

    backend: str
    device: str
    ranks: int
    ranks_per_gpu: int
    data_type: str
    case_set: str
    case: str
    state: str
    said: str
    measured_s: float | None = None
    predicted_s: float | None = None
    steps: tuple[StepRow, ...] = ()


@dataclass(slots=True)
class Clock:
    """The time there is for everything, and for one start of ranks."""

    budget_s: float
    start_s: float = START_S
    begin: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.budget_s - (time.monotonic() - self.begin)

    @property
    def limit_s(self) -> float | None:
        """The time limit of what is started now; None: there is too little time."""
        limit = min(self.start_s, self.left_s)
        return limit if limit >= LEAST_S else None


@dataclass(slots=True)
class Checker:
    """Runs sets with the same options.

    A start that breaks is repeated with the case alone that its error names, and without it; if it
    names none, in halves, until the case that breaks it is alone.  A time limit says too little of
    one case among several: slow ones come before it.  ``refused``: why the backend does not run on
    these ranks at all, once its first case did not.
    """

    run: Run
    options: RunOptions
    clock: Clock
    machines: list[dict[str, str]] = field(default_factory=list)
    refused: str = ""
    works: bool = False

    def rows(self, one: CaseSet) -> list[Row]:
        """A row per case of a set."""
        repeat = 2 if one.large else 3
        options = replace(self.options, repeat=repeat) if one.timed else self.options
        if not isinstance(one.work, Job) or self.works:
            return self._rows(one, options)
        first, rest = _parts(one, 1)
        found = self._rows(first, options)
        if found[0].state == FAILED:
            self.refused = found[0].said
        return found + (self._rows(rest, options) if rest else [])

    def _rows(self, one: CaseSet, options: RunOptions) -> list[Row]:
        if self.refused:
            return self._none(one, options, f"{options.backend} did not run: {self.refused}")
        limit = self.clock.limit_s
        if limit is None:
            return self._none(one, options, "the time is over")
        try:
            reports = self.run(one.work, replace(options, time_limit_s=limit))
        except (BackendError, ExecutionError) as error:
            return self._after(" ".join(str(error).split()), one, options)
        self.works = True
        self.machines += [report.machine for report in reports]
        return list(_found(one, options, reports))

    def _after(self, error: str, one: CaseSet, options: RunOptions) -> list[Row]:
        if len(one.cases) == 1:
            return [_row(one, options, one.cases[0], FAILED, error)]
        named = [int(number) for number in _REQUEST.findall(error)]
        at = min(named) - 1 if named else len(one.cases) // 2
        before, after = _parts(one, at)
        rows = self._rows(before, options) if before else []
        if named:
            culprit, after = _parts(after, 1)
            (alone,) = self._rows(culprit, options)
            together = f"{alone.said}; but in one start with others: {error}"
            rows.append(replace(alone, said=together) if alone.state == VERIFIED else alone)
        return rows + (self._rows(after, options) if after else [])

    def _none(self, one: CaseSet, options: RunOptions, why: str) -> list[Row]:
        return [_row(one, options, case, NOT_RUN, why) for case in one.cases]


def _parts(one: CaseSet, at: int) -> tuple[Any, Any]:
    """The first ``at`` requests of a set of programs, and the rest; None where there are none."""
    assert isinstance(one.work, Job)
    work = one.work

    def part(requests: tuple[JobRequest, ...]) -> CaseSet | None:
        return replace(one, work=replace(work, requests=requests)) if requests else None

    return part(work.requests[:at]), part(work.requests[at:])


def _row(one: CaseSet, options: RunOptions, case: str, state: str, said: str) -> Row:
    work = one.work
    kind = work.frame.element.value if isinstance(work, ArrayJob) else options.data_type.value
    where = (options.backend, options.device, work.ranks, options.ranks_per_gpu)
    return Row(*where, kind, one.name, case, state, said)


def _found(one: CaseSet, options: RunOptions, reports: Sequence[RankReport]) -> Iterator[Row]:
    work = one.work
    if isinstance(work, Job):
        for request, result in zip(work.requests, summarize(work, reports).requests, strict=True):
            said = _said(result.checked, result.float_checked, result.repetitions_checked)
            state = VERIFIED if result.verified else FAILED
            row = _row(one, options, request.name, state, next(iter(result.errors), said))
            steps = tuple(
                StepRow(step.name, times.median_s, step.predicted_s)
                for step, times in zip(request.steps, result.steps, strict=True)
            )
            timed = replace(
                row, measured_s=result.total.median_s, predicted_s=request.predicted_s, steps=steps
            )
            yield timed if one.timed else row
        return
    runs = [report.requests[0] for report in reports]
    errors = [error for run in runs for error in run.errors]
    checked = all(run.checked for run in runs)
    least = min(run.repetitions_checked for run in runs)
    said = _said(checked, all(run.float_checked for run in runs), least)
    row = _row(one, options, one.name, VERIFIED if checked and not errors else FAILED, said)
    row = replace(
        row, said=next(iter(errors), said), measured_s=_slowest([r.total_s for r in runs])
    )
    yield replace(row, predicted_s=_predicted_s(one), steps=_steps(work, runs))


def _said(checked: bool, floats: bool, repetitions: int) -> str:
    if not checked:
        return "a rank has not compared its result"
    numbers = "exact values and random numbers" if floats else "exact values"
    return f"every element on every rank: {numbers}, and after {repetitions} timed repetition(s)"


def _predicted_s(one: CaseSet) -> float | None:
    return sum(one.work.predicted_s) if isinstance(one.work, ArrayJob) else one.predicted_s


def _steps(work: Work, runs: Sequence[RequestRun]) -> tuple[StepRow, ...]:
    """Of a redistribution; the steps of a schedule overlap."""
    if not isinstance(work, ArrayJob):
        return ()
    return tuple(
        StepRow(step.kind.value, _slowest([run.steps_s[at] for run in runs]), predicted)
        for at, (step, predicted) in enumerate(zip(work.steps, work.predicted_s, strict=True))
    )


def _slowest(samples: Sequence[Sequence[float]]) -> float | None:
    """Median over the repetitions of the slowest rank's time."""
    worst = [max(times) for times in zip(*samples, strict=True)]
    return statistics.median(worst) if worst else None
