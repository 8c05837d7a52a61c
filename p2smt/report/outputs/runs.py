"""``run --json`` of a plan or a program, of a redistribution and of a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from p2smt.collectives.dispatch import KindName
from p2smt.report.outputs.shape import (
    AtLeastOne,
    Count,
    Nth,
    Output,
    OutputPart,
    PayloadBytes,
    Rank,
    Ratio,
    Said,
    Seconds,
)

# `run --json` of a plan or a program.


class MeasuredTimes(OutputPart):
    """Times of the slowest rank, one per repetition; null without repetitions."""

    measured_s: Annotated[Seconds | None, Said("Seconds: their median.")]
    spread_s: Annotated[Seconds | None, Said("Seconds: interquartile range.")]
    samples_s: Sequence[Seconds]


class PredictedStep(OutputPart):
    """A step, as predicted."""

    instruction: str
    groups: Sequence[Sequence[Rank]]
    predicted_s: Seconds


class MeasuredStep(MeasuredTimes, PredictedStep):
    """A step, as predicted and as measured."""


class OfNumber(OutputPart):
    """Of which of the requests something is."""

    request: Nth


class NumberedStep(MeasuredStep, OfNumber):
    """A step of one of the requests."""


class PredictedRequest(OutputPart):
    """A request as it was run, and whether its result is right."""

    request: str
    kind: KindName
    payload_bytes: PayloadBytes
    times: Annotated[int, Said("Executions in an iteration.", ge=1)]
    chunks: AtLeastOne
    groups: Sequence[Sequence[Rank]]
    verified: bool
    errors: Annotated[Sequence[str], Said("Results that are wrong.")]
    float_checked: Annotated[bool, Said("Random floating-point data was checked too.")]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    replicas_agree: Annotated[
        bool | None, Said("A group has the same bits; null: nothing to compare.")
    ]
    predicted_s: Seconds


class MeasuredRequest(MeasuredTimes, PredictedRequest):
    """A request: whether its result is right, and how long it took."""

    baseline_predicted_s: Annotated[
        Seconds | None, Said("Seconds of the single collective; null: none.")
    ]
    baseline_s: Annotated[Seconds | None, Said("Seconds, measured.")]
    baseline_spread_s: Seconds | None
    baseline_samples_s: Sequence[Seconds]
    speedup: Annotated[Ratio | None, Said("Baseline over program.")]
    steps: Sequence[MeasuredStep]


class HowRun(OutputPart):
    """The options of a run, as they took effect."""

    backend: str
    device: str
    dtype: str
    warmup: Count
    repeat: Count
    seed: int


class HowPlanRun(HowRun):
    """The same for a plan."""

    ranks_per_gpu: AtLeastOne


class RunVersions(OutputPart):
    """What it ran with."""

    p2smt: str
    platform: str


class RanOn(OutputPart):
    """With which versions, and on what."""

    versions: RunVersions
    ranks: Annotated[Sequence[Mapping[str, str]], Said("What each rank ran on.")]


class PlanRun(OutputPart):
    """What running the requests of a plan gave."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    steps: Annotated[Sequence[NumberedStep], Said("The steps of all requests.")]
    measured_s: Annotated[Seconds | None, Said("Seconds of an iteration.")]
    baseline_s: Annotated[Seconds | None, Said("Seconds with single collectives.")]
    speedup: Annotated[Ratio | None, Said("Baseline over measured.")]
    requests: Sequence[MeasuredRequest]
    options: HowPlanRun


class RunPlanOutput(RanOn, PlanRun, Output):
    """What running a plan or a program gave."""


# `run --json` of a redistribution.


class PredictedArrayStep(OutputPart):
    """A step, as predicted."""

    kind: str
    text: str
    predicted_s: Seconds


class RunArrayStep(MeasuredTimes, PredictedArrayStep):
    """A step, as predicted and as measured."""


class CheckedArrayRun(OutputPart):
    """A redistribution as it was run, and whether its result is right."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    mesh: str
    shape: Annotated[Sequence[int], Said("Of the array, padded where its types are.")]
    dtype: str
    errors: Annotated[Sequence[str], Said("Results that are wrong.")]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    float_checked: Annotated[bool, Said("Random floating-point data was checked too.")]
    predicted_s: Seconds


class RunArrays(OutputPart):
    """What it needed, step by step."""

    memory_bytes: Annotated[
        PayloadBytes | None, Said("The most that a rank held of the array; null: not measured.")
    ]
    predicted_bytes: Annotated[
        PayloadBytes, Said("Input, output and pack buffer of the dearest step.")
    ]
    steps: Sequence[RunArrayStep]
    options: HowPlanRun


class RunRedistributionOutput(RanOn, RunArrays, MeasuredTimes, CheckedArrayRun, Output):
    """What running a redistribution gave."""


# `run --json` of a schedule.


class CheckedScheduleRun(OutputPart):
    """A schedule as it was run, and whether its result is right."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    verdict: Annotated[str | None, Said("Of the checker; null: it was not asked.")]
    schedule: str
    form: Annotated[str, Said("The format that it came from.")]
    collective: str
    in_place: bool
    steps_count: Count
    payload_bytes: PayloadBytes
    fifo_depth: AtLeastOne
    errors: Sequence[str]
    float_checked: bool
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    interleavings: Annotated[Count, Said("Tried by the reference backend.")]


class OptionsOfRun(OutputPart):
    """How it was run."""

    options: HowRun


class RunScheduleOutput(RanOn, OptionsOfRun, MeasuredTimes, CheckedScheduleRun, Output):
    """What running a schedule gave."""
