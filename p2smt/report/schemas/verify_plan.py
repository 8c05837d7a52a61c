"""`verify --json` of a plan; `cost --json` of a plan prints the same."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.report.schemas.base import Chunk, Number, Output, OutputPart, Rank, Seconds


class PlanViolation(OutputPart):
    """What is wrong with a plan; null where it is not about one request, step, rank or chunk."""

    kind: Annotated[str, Field(description="The rule; cost: a number is not what it must be.")]
    request: Number | None
    step: Annotated[int | None, Field(description="Of the program; the first is 1.")]
    rank: Rank | None
    chunk: Chunk | None
    message: str


class VerifyPlanOutput(Output):
    """The verdict on a plan file."""

    verdict: Literal["valid", "invalid"]
    violations: list[PlanViolation]
    objective_s: Annotated[Seconds, Field(description="Seconds, computed anew.")]
    seconds: Annotated[
        list[Seconds], Field(description="Of one execution of each request; 0: it is not valid.")
    ]
    checked: Annotated[list[str], Field(description="What each request was simulated on.")]
