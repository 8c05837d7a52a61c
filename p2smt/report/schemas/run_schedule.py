"""`run --json` of a schedule."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Count, Output, PayloadBytes
from p2smt.report.schemas.run_plan import HowRun, MeasuredTimes, RunVersions


class RunScheduleOutput(MeasuredTimes, Output):
    """What running a schedule gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    verdict: Annotated[str | None, Field(description="Of the checker; null: it was not asked.")]
    schedule: str
    form: Annotated[str, Field(description="The format that it came from.")]
    collective: str
    in_place: bool
    steps_count: Count
    payload_bytes: PayloadBytes
    fifo_depth: Annotated[int, Field(ge=1)]
    errors: list[str]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: bool
    interleavings: Annotated[Count, Field(description="Tried by the reference backend.")]
    options: HowRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]
