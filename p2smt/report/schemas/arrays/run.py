"""`run --json` of a redistribution."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Count, Output, PayloadBytes, Seconds
from p2smt.report.schemas.run_plan import HowPlanRun, MeasuredTimes, RunVersions


class RunArrayStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    kind: str
    text: str
    predicted_s: Seconds


class RunRedistributionOutput(MeasuredTimes, Output):
    """What running a redistribution gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    mesh: str
    shape: Annotated[list[int], Field(description="Of the array, padded where its types are.")]
    dtype: str
    errors: Annotated[list[str], Field(description="Results that are wrong.")]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: Annotated[bool, Field(description="Random floating-point data was checked too.")]
    predicted_s: Seconds
    memory_bytes: Annotated[
        PayloadBytes | None,
        Field(description="The most that a rank held of the array; null: not measured."),
    ]
    predicted_bytes: Annotated[
        PayloadBytes, Field(description="Input, output and pack buffer of the dearest step.")
    ]
    steps: list[RunArrayStep]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]
