"""``run --json`` of a plan or a program, of a redistribution and of a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from p2smt.collectives.names import RequestKind
from p2smt.report.outputs.shape import (
    Count,
    Nth,
    Output,
    Part,
    PayloadBytes,
    Rank,
    Ratio,
    Said,
    Seconds,
)

# `run --json` of a plan or a program.


@dataclass(frozen=True, kw_only=True)
class MeasuredTimes(Part):
    """Times of the slowest rank, one per repetition; null without repetitions."""

    measured_s: Annotated[Seconds | None, Said("Seconds: their median.")]
    spread_s: Annotated[Seconds | None, Said("Seconds: interquartile range.")]
    samples_s: Sequence[Seconds]


@dataclass(frozen=True, kw_only=True)
class MeasuredStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    instruction: str
    groups: Sequence[Sequence[Rank]]
    predicted_s: Seconds


@dataclass(frozen=True, kw_only=True)
class NumberedStep(MeasuredStep):
    """A step of one of the requests."""

    request: Nth


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest(MeasuredTimes):
    """A request: whether its result is right, and how long it took."""

    request: str
    kind: RequestKind
    payload_bytes: PayloadBytes
    times: Annotated[int, Said("Executions in an iteration.", ge=1)]
    chunks: Annotated[int, Said(ge=1)]
    groups: Sequence[Sequence[Rank]]
    verified: bool
    errors: Annotated[Sequence[str], Said("Results that are wrong.")]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    float_checked: Annotated[bool, Said("Random floating-point data was checked too.")]
    replicas_agree: Annotated[
        bool | None, Said("A group has the same bits; null: nothing to compare.")
    ]
    predicted_s: Seconds
    baseline_predicted_s: Annotated[
        Seconds | None, Said("Seconds of the single collective; null: none.")
    ]
    baseline_s: Annotated[Seconds | None, Said("Seconds, measured.")]
    baseline_spread_s: Seconds | None
    baseline_samples_s: Sequence[Seconds]
    speedup: Annotated[Ratio | None, Said("Baseline over program.")]
    steps: Sequence[MeasuredStep]


@dataclass(frozen=True, kw_only=True)
class HowRun(Part):
    """The options of a run, as they took effect."""

    backend: str
    device: str
    dtype: str
    warmup: Count
    repeat: Count
    seed: int


@dataclass(frozen=True, kw_only=True)
class HowPlanRun(HowRun):
    """The same for a plan."""

    ranks_per_gpu: Annotated[int, Said(ge=1)]


@dataclass(frozen=True, kw_only=True)
class RunVersions(Part):
    """What it ran with."""

    p2smt: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class RunPlanOutput(Output):
    """What running a plan or a program gave."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    steps: Annotated[Sequence[NumberedStep], Said("The steps of all requests.")]
    measured_s: Annotated[Seconds | None, Said("Seconds of an iteration.")]
    baseline_s: Annotated[Seconds | None, Said("Seconds with single collectives.")]
    speedup: Annotated[Ratio | None, Said("Baseline over measured.")]
    requests: Sequence[MeasuredRequest]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[Sequence[Mapping[str, str]], Said("What each rank ran on.")]


# `run --json` of a redistribution.


@dataclass(frozen=True, kw_only=True)
class RunArrayStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    kind: str
    text: str
    predicted_s: Seconds


@dataclass(frozen=True, kw_only=True)
class RunRedistributionOutput(MeasuredTimes, Output):
    """What running a redistribution gave."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    mesh: str
    shape: Annotated[Sequence[int], Said("Of the array, padded where its types are.")]
    dtype: str
    errors: Annotated[Sequence[str], Said("Results that are wrong.")]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    float_checked: Annotated[bool, Said("Random floating-point data was checked too.")]
    predicted_s: Seconds
    memory_bytes: Annotated[
        PayloadBytes | None,
        Said("The most that a rank held of the array; null: not measured."),
    ]
    predicted_bytes: Annotated[
        PayloadBytes, Said("Input, output and pack buffer of the dearest step.")
    ]
    steps: Sequence[RunArrayStep]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[Sequence[Mapping[str, str]], Said("What each rank ran on.")]


# `run --json` of a schedule.


@dataclass(frozen=True, kw_only=True)
class RunScheduleOutput(MeasuredTimes, Output):
    """What running a schedule gave."""

    verified: Annotated[bool, Said("Every rank has the right result.")]
    verdict: Annotated[str | None, Said("Of the checker; null: it was not asked.")]
    schedule: str
    form: Annotated[str, Said("The format that it came from.")]
    collective: str
    in_place: bool
    steps_count: Count
    payload_bytes: PayloadBytes
    fifo_depth: Annotated[int, Said(ge=1)]
    errors: Sequence[str]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    float_checked: bool
    interleavings: Annotated[Count, Said("Tried by the reference backend.")]
    options: HowRun
    versions: RunVersions
    ranks: Annotated[Sequence[Mapping[str, str]], Said("What each rank ran on.")]
