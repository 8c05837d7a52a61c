"""Runs cases on ranks, several in one launch, and finds out which of them fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.gpu_check.cases import Case
from p2smt.errors import BackendError, ExecutionError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions
from p2smt.runtime.summary import RunResult

Run = Callable[[Job, RunOptions], RunResult]
"""Runs a job on ranks of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a case: ``reason`` is None if every rank had the right result."""

    backend: str
    device: str
    ranks: int
    ranks_per_gpu: int
    data_type: str
    case: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks cases of one number of ranks with the same options.

    A launch that breaks says nothing about its single cases, so it is halved until the case that
    breaks it is alone.
    """

    run: Run
    options: RunOptions

    def rows(self, cases: Sequence[Case]) -> list[Row]:
        """A row per case.  The first goes alone: if it does not run, the others are not tried."""
        first = self._rows(cases[:1])
        reason = first[0].reason
        if reason is None:
            return first + self._rows(cases[1:])
        return first + [self._row(case, f"not tried: {reason}") for case in cases[1:]]

    def _rows(self, cases: Sequence[Case]) -> list[Row]:
        if not cases:
            return []
        job = Job(cases[0].ranks, tuple(case.request for case in cases))
        try:
            result = self.run(job, self.options)
        except (BackendError, ExecutionError) as error:
            return self._after(error, cases)
        return [
            self._row(case, next(iter(found.errors), None))
            for case, found in zip(cases, result.requests, strict=True)
        ]

    def _after(self, error: Exception, cases: Sequence[Case]) -> list[Row]:
        if len(cases) == 1:
            return [self._row(cases[0], " ".join(str(error).split()))]
        half = len(cases) // 2
        return self._rows(cases[:half]) + self._rows(cases[half:])

    def _row(self, case: Case, reason: str | None) -> Row:
        chosen = self.options
        return Row(
            chosen.backend,
            chosen.device,
            case.ranks,
            chosen.ranks_per_gpu,
            chosen.data_type.value,
            case.name,
            reason,
        )


def options_on(options: RunOptions, ranks: int, gpus: int) -> RunOptions:
    """The options with as few ranks on a GPU as its number allows."""
    return replace(options, ranks_per_gpu=max(1, -(-ranks // gpus))) if gpus else options
