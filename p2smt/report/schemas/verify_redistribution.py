"""`verify --json` of a redistribution's plan; `cost --json` of one adds its steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.plans.solution import ProofStatus
from p2smt.report.schemas.arrays.redistribute import RedistributionStepEntry
from p2smt.report.schemas.base import Nth, Output, OutputPart, PayloadBytes, Rank, Seconds


class RedistributionViolation(OutputPart):
    """What is wrong with a plan; null where it is not about one step, rank or element."""

    kind: Annotated[
        str, Field(description="rule, meaning, groups, memory, cost or bound: what is not so.")
    ]
    step: Nth | None
    rank: Rank | None
    chunk: Annotated[
        list[Annotated[int, Field(ge=0)]] | None,
        Field(description="The dimension and the global index of the first element concerned."),
    ]
    message: str


class ProofOfRedistribution(OutputPart):
    """What solving the plan's question again says."""

    status: Annotated[
        ProofStatus, Field(description="proved: none is faster; refuted; open: a limit was met.")
    ]
    objective_s: Annotated[Seconds, Field(description="Seconds of the plan.")]
    bound_s: Annotated[Seconds, Field(description="Seconds that no plan beats.")]
    max_steps: Annotated[
        int | None, Field(description="Of plans of at most so many steps; null: of any length.")
    ]
    better_s: Annotated[Seconds | None, Field(description="Seconds of a faster plan.")]
    better_steps: list[RedistributionStepEntry] | None


class VerifyRedistributionOutput(Output):
    """The verdict on the plan of a redistribution."""

    verdict: Literal["valid", "invalid"]
    violations: list[RedistributionViolation]
    objective_s: Annotated[
        Seconds | None, Field(description="Seconds, computed anew; null: its steps are none.")
    ]
    peak_bytes: Annotated[PayloadBytes | None, Field(description="The largest state, on a device.")]
    peak_step_bytes: Annotated[
        PayloadBytes | None, Field(description="Input, output and pack buffer of a step.")
    ]
    checked: Annotated[list[str], Field(description="What was held against the plan.")]
    not_checked: Annotated[list[str], Field(description="What nothing has looked at.")]
    proof: Annotated[
        ProofOfRedistribution | None, Field(description="With --prove, of a valid plan.")
    ]


class CostRedistributionOutput(VerifyRedistributionOutput):
    """The verdict on a plan, and the steps of one whose steps are any."""

    proof: Annotated[None, Field(description="Only `verify --prove` seeks one.")]
    steps: list[RedistributionStepEntry]
