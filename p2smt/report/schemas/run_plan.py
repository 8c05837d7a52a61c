"""`run --json` of a plan or a program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import (
    Count,
    Nth,
    Output,
    OutputPart,
    PayloadBytes,
    Rank,
    Ratio,
    Seconds,
)


class MeasuredTimes(OutputPart):
    """Times of the slowest rank, one per repetition; null without repetitions."""

    measured_s: Annotated[Seconds | None, Field(description="Seconds: their median.")]
    spread_s: Annotated[Seconds | None, Field(description="Seconds: interquartile range.")]
    samples_s: list[Seconds]


class MeasuredStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    instruction: str
    groups: list[list[Rank]]
    predicted_s: Seconds


class NumberedStep(MeasuredStep):
    """A step of one of the requests."""

    request: Nth


class MeasuredRequest(MeasuredTimes):
    """A request: whether its result is right, and how long it took."""

    request: str
    kind: RequestKind
    payload_bytes: PayloadBytes
    times: Annotated[int, Field(ge=1, description="Executions in an iteration.")]
    chunks: Annotated[int, Field(ge=1)]
    groups: list[list[Rank]]
    verified: bool
    errors: Annotated[list[str], Field(description="Results that are wrong.")]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: Annotated[bool, Field(description="Random floating-point data was checked too.")]
    replicas_agree: Annotated[
        bool | None, Field(description="A group has the same bits; null: nothing to compare.")
    ]
    predicted_s: Seconds
    baseline_predicted_s: Annotated[
        Seconds | None, Field(description="Seconds of the single collective; null: none.")
    ]
    baseline_s: Annotated[Seconds | None, Field(description="Seconds, measured.")]
    baseline_spread_s: Seconds | None
    baseline_samples_s: list[Seconds]
    speedup: Annotated[Ratio | None, Field(description="Baseline over program.")]
    steps: list[MeasuredStep]


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

    ranks_per_gpu: Annotated[int, Field(ge=1)]


class RunVersions(OutputPart):
    """What it ran with."""

    p2smt: str
    platform: str


class RunPlanOutput(Output):
    """What running a plan or a program gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    steps: Annotated[list[NumberedStep], Field(description="The steps of all requests.")]
    measured_s: Annotated[Seconds | None, Field(description="Seconds of an iteration.")]
    baseline_s: Annotated[Seconds | None, Field(description="Seconds with single collectives.")]
    speedup: Annotated[Ratio | None, Field(description="Baseline over measured.")]
    requests: list[MeasuredRequest]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]
