"""`solve --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.plans.file_model import PlanModel
from p2smt.programs.basis import ProofBasis
from p2smt.report.schemas.base import (
    Bytes,
    Count,
    Error,
    Gap,
    NamedAlgorithm,
    Output,
    OutputPart,
    PayloadBytes,
    Rank,
    RankMatrix,
    Ratio,
    Seconds,
)
from p2smt.report.schemas.explained.explanation import ExplainedAnswer
from p2smt.report.schemas.orders import OrderBeside
from p2smt.result import Status

Regime = Annotated[
    str | None,
    Field(
        description="The largest part of a request's time: latency, cards (the nodes' network "
        "cards), node links (inside a node), or a level further out; null: it takes none."
    ),
]


class NamedRequest(NamedAlgorithm):
    """The same of a request of several."""

    request: str


class TimedStep(OutputPart):
    """A step of a program; of a pipelined one, the numbers of one chunk."""

    instruction: str
    seconds: Annotated[
        Seconds | None,
        Field(description="Seconds; of a pipelined one, per chunk; null: not known."),
    ]
    bottleneck: Annotated[
        str | None, Field(description="The level whose worst link bounds the time.")
    ]
    load_bytes: Annotated[Bytes, Field(description="Bytes on that link in one direction.")]


class RankedPlacement(OutputPart):
    """A placement with a program per request; lists are in the order of the requests."""

    matrix: Annotated[
        RankMatrix | None, Field(description="null: a rank list, which no matrix expresses.")
    ]
    ranks: Annotated[
        list[Rank] | None, Field(description="Of a rank list, the device of each rank.")
    ]
    objective_s: Annotated[Seconds | None, Field(description="Seconds; null: not known.")]
    status: Annotated[Status, Field(description="optimal: each of its programs is.")]
    peak_bytes: Annotated[PayloadBytes, Field(description="The most bytes that a device holds.")]
    programs: Annotated[
        list[str | None], Field(description="null: all-to-all, send, or groups of one device.")
    ]
    chunks: list[Annotated[int, Field(ge=1)]]
    seconds: Annotated[
        list[Seconds | None], Field(description="Of one execution of each; null: not known.")
    ]
    regime: list[Regime]
    steps: list[list[TimedStep]]
    checked_on: Annotated[list[str], Field(description="What each program was simulated on.")]


class NearPlacement(OutputPart):
    """A placement near the optimum with its best programs, in the order of the requests."""

    matrix: RankMatrix
    objective_s: Seconds
    gap: Annotated[Gap, Field(description="Slower than the answer by: 0.05 is five per cent.")]
    status: Annotated[Status, Field(description="optimal: each of its programs is.")]
    programs: Annotated[
        list[str | None], Field(description="null: all-to-all, send, or groups of one device.")
    ]
    chunks: list[Annotated[int, Field(ge=1)]]
    seconds: Annotated[list[Seconds], Field(description="Of one execution of each request.")]
    regime: list[Regime]


class ComparedLayout(OutputPart):
    """Ranks on devices in some order, one collective per request."""

    name: str
    seconds: Annotated[
        list[Seconds | None], Field(description="Of one execution of each; null: not known.")
    ]
    objective_s: Annotated[Seconds | None, Field(description="Seconds; null: not known.")]
    matrix: Annotated[RankMatrix | None, Field(description="That expresses it; null: none does.")]
    breaks: Annotated[
        list[str], Field(description="Restrictions that keep it from being an answer.")
    ]


class ChangedTopology(OutputPart):
    """The winner on a cluster with one level's bandwidth, or the cost of every call, changed."""

    what: Literal["bandwidth", "call"]
    level: Annotated[str | None, Field(description="Whose bandwidth; null: the cost of calls.")]
    factor: Annotated[Ratio, Field(description="New bandwidth, or cost of a call, over old.")]
    winner_s: Seconds
    optimum_s: Seconds
    holds: Annotated[bool | None, Field(description="Still optimal; null: not settled.")]
    status: Status


class SearchStats(OutputPart):
    """How the answer was found."""

    solver: str
    wall_s: Seconds
    calls: Annotated[Count, Field(description="Calls of the solver.")]
    counters: dict[str, int]
    effort: Annotated[Count, Field(description="Work of the solver, in its own unit.")]
    reason: Annotated[str, Field(description="Why the status is unknown; empty: it is known.")]


class SolveOutput(Output):
    """The best placement and programs, with a proof."""

    status: Status
    basis: Annotated[
        list[ProofBasis],
        Field(
            description="Why no program is missed, of an optimal answer; empty: it is not proved, "
            "has no programs, or is a rank list."
        ),
    ]
    interrupted: Annotated[bool, Field(description="Stopped by the user: the best so far.")]
    objective: Literal["sum", "max"]
    objective_s: Seconds | None
    bound_s: Annotated[
        Seconds | None,
        Field(description="Seconds: proved of all matrices; null: not known, or a rank list."),
    ]
    physical_bound_s: Annotated[
        Seconds | None,
        Field(description="Seconds: what the links allow any schedule; null: as above."),
    ]
    plan: Annotated[PlanModel | None, Field(description="The plan file of the best alternative.")]
    ranking: Annotated[
        Status, Field(description="complete: proved to be the best ones, in this order.")
    ]
    alternatives: list[RankedPlacement]
    conflict: Annotated[
        list[str], Field(description="Restrictions that leave no answer; of an infeasible one.")
    ]
    notes: Annotated[list[str], Field(description="What else is to be known, in words.")]
    gain: Annotated[
        float | None,
        Field(ge=-1, description="Time of the default layout over the answer's, less one."),
    ]
    gain_measurable: Annotated[
        bool | None,
        Field(description="Whether the gain reaches the accuracy; null: that is not known."),
    ]
    accuracy: Annotated[
        Error | None,
        Field(description="Of predictions of such collectives on this system; null: not known."),
    ]
    accuracy_basis: Annotated[
        Literal["in sample", "left out"] | None,
        Field(
            description="What that was found on: measurements that the constants were fitted to, "
            "or (all of it) measurements left out of a fit; null: it is not known."
        ),
    ]
    accuracy_unknown: Annotated[
        str | None, Field(description="Why the accuracy is not known, in words; null: it is.")
    ]
    program_gain: Annotated[
        float | None,
        Field(
            ge=0,
            description="Time of one collective each on the answer's placement, as the library "
            "chooses it, over the answer's, less one; null: no program gains anything.",
        ),
    ]
    gain_by_choice: Annotated[
        float | None,
        Field(
            ge=0,
            description="Time of the same over that where the named algorithms run, less one: "
            "what naming them gives without a program; null: no program gains anything.",
        ),
    ]
    named_algorithms: Annotated[
        list[NamedRequest],
        Field(
            description="Of requests whose program has several steps: what lowers the objective."
        ),
    ]
    near_optimal: Annotated[
        Count | None,
        Field(description="Placement matrices near the optimum, itself among them."),
    ]
    near_optimal_status: Annotated[
        Literal["complete", "truncated"] | None,
        Field(description="complete: there are no others; truncated: there are at least these."),
    ]
    near_optimal_within: Annotated[
        Gap | None, Field(description="How near: 0.05 is at most five per cent slower.")
    ]
    near_optimal_placements: Annotated[
        list[NearPlacement] | None, Field(description="Those; null: --within was not given.")
    ]
    default_layout: ComparedLayout | None
    compared_layout: ComparedLayout | None
    faster_layouts: Annotated[list[str], Field(description="Compared layouts that are faster.")]
    hosts: Annotated[
        list[str] | None,
        Field(description="The host of each rank, in rank order; null: nodes have no names."),
    ]
    idle: Annotated[list[str] | None, Field(description="Hosts without ranks; null: as above.")]
    inside: Annotated[
        RankMatrix | None,
        Field(description="Matrix inside each node: axes by the levels there; null: as above."),
    ]
    with_programs_s: Annotated[
        Seconds | None,
        Field(
            description="Seconds: objective with the best programs found on the same ranks; null: "
            "none is faster, or nodes have no names (then objective_s has them)."
        ),
    ]
    orders: Annotated[
        list[OrderBeside] | None,
        Field(description="Orders that everyone has, one collective each; null: as above."),
    ]
    sensitivity: list[ChangedTopology]
    explanation: Annotated[
        ExplainedAnswer | None, Field(description="null: --explain was not given.")
    ]
    stats: SearchStats
