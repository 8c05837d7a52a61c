"""`verify --json` of a plan; `cost --json` of one adds its requests, and seeks no proof."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.plans.solution import ProofStatus
from p2smt.programs.basis import ProofBasis
from p2smt.report.schemas.base import Chunk, Nth, Output, OutputPart, Rank, Seconds
from p2smt.report.schemas.solve import RankedPlacement


class PlanViolation(OutputPart):
    """What is wrong with a plan; null where it is not about one request, step, rank or chunk."""

    kind: Annotated[
        str, Field(description="The rule; cost, ranks, bound and restriction: what is misstated.")
    ]
    request: Nth | None
    step: Annotated[int | None, Field(description="Of the program; the first is 1.")]
    rank: Rank | None
    chunk: Chunk | None
    message: str


class ProofOfPlan(OutputPart):
    """What solving the plan's problem again says."""

    status: Annotated[
        ProofStatus, Field(description="proved: none is faster; refuted; open: a limit was met.")
    ]
    basis: Annotated[list[ProofBasis], Field(description="Why no program is missed, of a proof.")]
    objective_s: Annotated[
        Seconds | None,
        Field(description="Seconds of the plan; null: bandwidths of uplinks are not stated."),
    ]
    bound_s: Annotated[
        Seconds | None,
        Field(
            description="Seconds that no placement matrix beats; null: of a rank list, or as above."
        ),
    ]
    better: Annotated[RankedPlacement | None, Field(description="A faster answer.")]
    better_hosts: Annotated[
        list[str] | None, Field(description="On named hosts: that of each of its ranks.")
    ]
    false: Annotated[list[str], Field(description="Bounds that are contradicted.")]
    unsettled: Annotated[
        list[str], Field(description="Bounds that are neither contradicted nor proved.")
    ]
    weaker: Annotated[list[str], Field(description="True bounds that are less than is proved.")]


class VerifyPlanOutput(Output):
    """The verdict on a plan file."""

    verdict: Literal["valid", "invalid"]
    violations: list[PlanViolation]
    objective_s: Annotated[
        Seconds | None,
        Field(description="Seconds, computed anew; null: bandwidths of uplinks are not stated."),
    ]
    seconds: Annotated[
        list[Seconds] | None,
        Field(description="Of one execution of each request; 0: it is not valid; null: as above."),
    ]
    checked: Annotated[list[str], Field(description="What was held against the plan.")]
    not_checked: Annotated[list[str], Field(description="What nothing has looked at.")]
    checked_on: Annotated[
        list[str], Field(description="What the program of each request was simulated on.")
    ]
    proof: Annotated[ProofOfPlan | None, Field(description="With --prove, of a valid plan.")]
