"""`solve --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.plans.explanation import FlipOutcome, NumberKind, ProgramVerdict
from p2smt.plans.file_model import PlanModel
from p2smt.plans.solution import ProofStatus
from p2smt.programs.check import ProofBasis
from p2smt.report.schemas.orders import (
    Bytes,
    Chunk,
    Count,
    Error,
    Gap,
    NamedAlgorithm,
    Nth,
    OrderBeside,
    Output,
    OutputPart,
    PayloadBytes,
    Rank,
    RankMatrix,
    Ratio,
    Seconds,
)
from p2smt.result import Status

# `explanation` in `solve --json`.


class NumberFlip(OutputPart):
    """By how much a number has to change before another answer wins, all others staying."""

    what: NumberKind
    of: Annotated[str | None, Field(description="Its level or request; null: the cost of calls.")]
    grows: Annotated[bool, Field(description="Multiplied by the factor; else divided by it.")]
    request: Annotated[
        str | None, Field(description="Whose program changes; null: the placement does.")
    ]
    outcome: Annotated[
        FlipOutcome,
        Field(
            description="flip: confirmed on both sides by solving again; none: none up to "
            "`searched`; open: not settled."
        ),
    ]
    factor: Annotated[float | None, Field(ge=1, description="null: no flip was found.")]
    exact: Annotated[
        str | None, Field(description="The factor as a fraction; null: costs are not linear.")
    ]
    proved: Annotated[
        bool, Field(description="None is nearer, or there is none; else by the factors tried.")
    ]
    tried: Annotated[Count, Field(description="Factors that were looked at.")]
    matrix: Annotated[RankMatrix | None, Field(description="The placement that wins beyond it.")]
    program: Annotated[str | None, Field(description="The program that wins beyond it.")]
    why: Annotated[str | None, Field(description="Why it is open; null: it is not.")]


class EverywhereProgram(OutputPart):
    """What holds of a request's program for every latency, bandwidth, payload and cost of calls.

    It is held against the programs up to the longest asked for that the restrictions allow.
    """

    request: str
    program: str
    verdict: Annotated[
        ProgramVerdict,
        Field(
            description="best: none is ever cheaper on this placement; sufficient: one of those in "
            "`among`; other: none of those; open: not settled."
        ),
    ]
    among: Annotated[
        list[str], Field(description="Fewest programs of which one is always a best one.")
    ]
    why: Annotated[str | None, Field(description="Why it is open; null: it is not.")]


class EverywherePlacements(OutputPart):
    """Which placements can win for some bandwidths, payloads, costs of calls and latencies.

    Of latencies none is shorter than that of a level further in.
    """

    others: Annotated[Count, Field(description="Placements beside the answer's, looked at.")]
    never_better: Annotated[Count, Field(description="Of these, proved never to be better.")]
    rivals: Annotated[list[RankMatrix], Field(description="The rest.")]
    unsettled: Annotated[Count, Field(description="Rivals for want of time, or of a linear cost.")]
    axes: Annotated[
        list[str], Field(description="Axes that lie alike in the answer and in every rival.")
    ]
    whole: Annotated[bool, Field(description="These are all placements.")]


class ExplainedAnswer(OutputPart):
    """What the answer rests on."""

    why: Annotated[str | None, Field(description="Why it is not explained; null: it is.")]
    linear: Annotated[bool, Field(description="Costs are linear: factors are exact.")]
    searched: Annotated[Count, Field(description="Factors from 1 to this.")]
    nearest: Annotated[
        str | None,
        Field(description="The nearest flip of the placement found, in words; null: none."),
    ]
    nearest_proved: Annotated[
        bool, Field(description="No flip of the placement is nearer; without one there is none.")
    ]
    nearest_unsettled: Annotated[
        Count, Field(description="Flips of the placement that are open: one may be nearer.")
    ]
    nearest_by_hardware: Annotated[
        str | None, Field(description="The nearest one that no payload makes; null: none.")
    ]
    nearest_by_hardware_proved: Annotated[bool, Field(description="The same of these.")]
    nearest_by_hardware_unsettled: Annotated[Count, Field(description="The same of these.")]
    flips: list[NumberFlip]
    model: Annotated[
        Literal["rings, one protocol"], Field(description="In which what follows holds.")
    ]
    programs: list[EverywhereProgram]
    placements: EverywherePlacements | None


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


# `verify --json` of a plan; `cost --json` of one adds its requests, and seeks no proof.


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
