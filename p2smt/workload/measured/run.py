"""A training run whose iteration somebody measured and published."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.workload.run import TrainingRun


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What ran, where, and the seconds of an iteration.

    ``group``: runs of one model from one source, which are left out together; ``sweep``: runs
    that differ in the strategy only, or empty.  ``framework`` and ``hardware`` are names.
    ``assumed``: what the source does not say.  ``counted``: whether the strategy is published
    well enough to judge a prediction by the run; ``names_framework``: whether the file says what
    trained it, or its group is one of published runs.
    """

    name: str
    group: str
    sweep: str
    framework: str
    hardware: str
    training: TrainingRun
    step_s: float
    assumed: str = ""
    counted: bool = True
    names_framework: bool = True


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The runs of a file, and what of it is no run that can be predicted: (row, why)."""

    runs: tuple[MeasuredRun, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def counted(self) -> tuple[MeasuredRun, ...]:
        """The runs that predictions are judged by."""
        return tuple(run for run in self.runs if run.counted)
