"""``solve --json``, and the verdict on a plan file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.plans.explanation import NumberKind, PlacementClaim, ProgramVerdict, TippingPointOutcome
from p2smt.plans.solution import ProofStatus
from p2smt.programs.program import ProofBasis
from p2smt.report.outputs.changed_numbers import WhatIfRows
from p2smt.report.outputs.orders import DecisiveLink, OrderBeside
from p2smt.report.outputs.programs import NamedAlgorithm
from p2smt.report.outputs.shape import (
    Bytes,
    Chunk,
    Count,
    Error,
    Gap,
    Noted,
    Nth,
    Output,
    OutputPart,
    PayloadBytes,
    PlanData,
    PriceBasisWord,
    RangeSeconds,
    Rank,
    RankMatrix,
    Ratio,
    Said,
    Seconds,
)
from p2smt.result import Status

# `explanation` in `solve --json`.


class NumberFlip(OutputPart):
    """By how much a number has to change before another answer wins, all others staying."""

    what: NumberKind
    of: Annotated[str | None, Said("Its level or request; null: the cost of calls.")]
    grows: Annotated[bool, Said("Multiplied by the factor; else divided by it.")]
    request: Annotated[str | None, Said("Whose program changes; null: the placement does.")]
    outcome: Annotated[
        TippingPointOutcome,
        Said(
            "flip: confirmed on both sides by solving again; none: none up to "
            "`searched`; open: not settled."
        ),
    ]
    factor: Annotated[float | None, Said("null: no flip was found.", ge=1)]
    exact: Annotated[str | None, Said("The factor as a fraction; null: costs are not linear.")]
    proved: Annotated[bool, Said("None is nearer, or there is none; else by the factors tried.")]
    tried: Annotated[Count, Said("Factors that were looked at.")]
    matrix: Annotated[RankMatrix | None, Said("The placement that wins beyond it.")]
    program: Annotated[str | None, Said("The program that wins beyond it.")]
    why: Annotated[str | None, Said("Why it is open; null: it is not.")]


class EverywhereProgram(OutputPart):
    """What holds of a request's program for every latency, bandwidth, payload and cost of calls.

    It is held against the programs up to the longest asked for that the restrictions allow.
    """

    request: str
    program: str
    verdict: Annotated[
        ProgramVerdict,
        Said(
            "best: none is ever cheaper on this placement; sufficient: one of those in "
            "`among`; other: none of those; open: not settled."
        ),
    ]
    among: Annotated[Sequence[str], Said("Fewest programs of which one is always a best one.")]
    why: Annotated[str | None, Said("Why it is open; null: it is not.")]


EverywherePlacements = Annotated[
    PlacementClaim,
    Noted(
        others=Said("Placements beside the answer's, looked at.", ge=0),
        never_better=Said("Of these, proved never to be better.", ge=0),
        rivals=Said("The rest.", ge=1),
        unsettled=Said("Rivals for want of time, or of a linear cost.", ge=0),
        axes=Said("Axes that lie alike in the answer and in every rival."),
        whole=Said("These are all placements."),
    ),
    Said(
        "Which placements can win for some bandwidths, payloads, costs of calls and latencies, of "
        "which none is shorter than that of a level further in."
    ),
]


class ExplainedAnswer(OutputPart):
    """What the answer rests on."""

    why: Annotated[str | None, Said("Why it is not explained; null: it is.")]
    linear: Annotated[bool, Said("Costs are linear: factors are exact.")]
    searched: Annotated[Count, Said("Factors from 1 to this.")]
    nearest: Annotated[
        str | None,
        Said("The nearest flip of the placement found, in words; null: none."),
    ]
    nearest_proved: Annotated[
        bool, Said("No flip of the placement is nearer; without one there is none.")
    ]
    nearest_unsettled: Annotated[
        Count, Said("Flips of the placement that are open: one may be nearer.")
    ]
    nearest_by_hardware: Annotated[
        str | None, Said("The nearest one that no payload makes; null: none.")
    ]
    nearest_by_hardware_proved: Annotated[bool, Said("The same of these.")]
    nearest_by_hardware_unsettled: Annotated[Count, Said("The same of these.")]
    flips: Sequence[NumberFlip]
    model: Annotated[Literal["rings, one protocol"], Said("In which what follows holds.")]
    programs: Sequence[EverywhereProgram]
    placements: EverywherePlacements | None


Regime = Annotated[
    str | None,
    Said(
        "The largest part of a request's time: latency, cards (the nodes' network "
        "cards), node links (inside a node), or a level further out; null: it takes none."
    ),
]


class OfRequest(OutputPart):
    """What is said of a request of several."""

    request: str


class NamedRequest(NamedAlgorithm, OfRequest):
    """The same of a request of several."""


class TimedStep(OutputPart):
    """A step of a program; of a pipelined one, the numbers of one chunk."""

    instruction: str
    seconds: Annotated[
        Seconds | None,
        Said("Seconds; of a pipelined one, per chunk; null: not known."),
    ]
    bottleneck: Annotated[str | None, Said("The level whose worst link bounds the time.")]
    load_bytes: Annotated[Bytes, Said("Bytes on that link in one direction.")]
    range_s: RangeSeconds
    basis: PriceBasisWord


class RankedPlacement(OutputPart):
    """A placement with a program per request; lists are in the order of the requests."""

    matrix: Annotated[RankMatrix | None, Said("null: a rank list, which no matrix expresses.")]
    ranks: Annotated[Sequence[Rank] | None, Said("Of a rank list, the device of each rank.")]
    objective_s: Annotated[Seconds | None, Said("Seconds; null: not known.")]
    status: Annotated[Status, Said("optimal: each of its programs is.")]
    peak_bytes: Annotated[PayloadBytes, Said("The most bytes that a device holds.")]
    programs: Annotated[
        Sequence[str | None], Said("null: a single all-to-all, a send, or groups of one device.")
    ]
    chunks: Sequence[Annotated[int, Said(ge=1)]]
    checked_on: Annotated[Sequence[str], Said("What each program was simulated on.")]
    seconds: Annotated[Sequence[Seconds | None], Said("Of one execution of each; null: not known.")]
    regime: Sequence[Regime]
    steps: Sequence[Sequence[TimedStep]]
    range_s: RangeSeconds
    basis: PriceBasisWord


class NearPlacement(OutputPart):
    """A placement near the optimum with its best programs, in the order of the requests."""

    matrix: RankMatrix
    objective_s: Seconds
    status: Annotated[Status, Said("optimal: each of its programs is.")]
    programs: Annotated[
        Sequence[str | None], Said("null: a single all-to-all, a send, or groups of one device.")
    ]
    chunks: Sequence[Annotated[int, Said(ge=1)]]
    seconds: Annotated[Sequence[Seconds], Said("Of one execution of each request.")]
    regime: Sequence[Regime]
    range_s: RangeSeconds
    basis: PriceBasisWord
    gap: Annotated[Gap, Said("Slower than the answer by: 0.05 is five per cent.")]


class ComparedLayout(OutputPart):
    """Ranks on devices in some order, one collective per request."""

    name: str
    seconds: Annotated[Sequence[Seconds | None], Said("Of one execution of each; null: not known.")]
    objective_s: Annotated[Seconds | None, Said("Seconds; null: not known.")]
    matrix: Annotated[RankMatrix | None, Said("That expresses it; null: none does.")]
    breaks: Annotated[Sequence[str], Said("Restrictions that keep it from being an answer.")]
    range_s: RangeSeconds
    basis: PriceBasisWord


class ChangedTopology(OutputPart):
    """The winner on a cluster with one level's bandwidth, or the cost of every call, changed."""

    what: Literal["bandwidth", "call"]
    level: Annotated[str | None, Said("Whose bandwidth; null: the cost of calls.")]
    factor: Annotated[Ratio, Said("New bandwidth, or cost of a call, over old.")]
    winner_s: Seconds
    optimum_s: Seconds
    holds: Annotated[bool | None, Said("Still optimal; null: not settled.")]
    status: Status


class SearchStats(OutputPart):
    """How the answer was found."""

    solver: str
    wall_s: Seconds
    calls: Annotated[Count, Said("Calls of the solver.")]
    counters: Mapping[str, int]
    effort: Annotated[Count, Said("Work of the solver, in its own unit.")]
    reason: Annotated[str, Said("Why the status is unknown; empty: it is known.")]


class AnswerFields(OutputPart):
    """The answer, with a proof."""

    status: Status
    basis: Annotated[
        Sequence[ProofBasis],
        Said(
            "Why no program is missed, of an optimal answer; empty: it is not proved, "
            "has no programs, or is a rank list."
        ),
    ]
    interrupted: Annotated[bool, Said("Stopped by the user: the best so far.")]
    conflict: Annotated[
        Sequence[str], Said("Restrictions that leave no answer; of an infeasible one.")
    ]
    notes: Annotated[Sequence[str], Said("What else is to be known, in words.")]
    objective: Literal["sum", "max"]
    objective_s: Seconds | None
    bound_s: Annotated[
        Seconds | None,
        Said("Seconds: proved of all matrices; null: not known, or a rank list."),
    ]
    physical_bound_s: Annotated[
        Seconds | None,
        Said("Seconds: what the links allow any schedule; null: as above."),
    ]
    plan: Annotated[PlanData | None, Said("The plan file of the best alternative.")]
    ranking: Annotated[Status, Said("complete: proved to be the best ones, in this order.")]
    alternatives: Sequence[RankedPlacement]
    range_s: RangeSeconds
    range_basis: PriceBasisWord


class GainFields(OutputPart):
    """What is gained over the default layout, whether who measures would find it, and by what."""

    gain: Annotated[
        float | None,
        Said("Time of the default layout over the answer's, less one.", ge=-1),
    ]
    gain_measurable: Annotated[
        bool | None,
        Said("Whether the gain exceeds the ranges of both times; null: nobody measured such."),
    ]
    accuracy: Annotated[
        Error | None,
        Said("The largest part by which either time may be another; null: not known."),
    ]
    accuracy_basis: Annotated[
        Literal["in sample", "left out"] | None,
        Said(
            "What that was found on: measurements that the constants were fitted to, "
            "or (all of it) measurements left out of a fit; null: it is not known."
        ),
    ]
    accuracy_unknown: Annotated[
        str | None, Said("Why the accuracy is not known, in words; null: it is.")
    ]
    program_gain: Annotated[
        float | None,
        Said(
            ge=0,
            description="Time of one collective each on the answer's placement, as the library "
            "chooses it, over the answer's, less one; null: no program gains anything.",
        ),
    ]
    gain_by_choice: Annotated[
        float | None,
        Said(
            ge=0,
            description="Time of the same over that where the named algorithms run, less one: "
            "what naming them gives without a program; null: no program gains anything.",
        ),
    ]
    named_algorithms: Annotated[
        Sequence[NamedRequest],
        Said("Of requests whose program has several steps: what lowers the objective."),
    ]
    gain_shown: Annotated[str | None, Said("The same in words, and what to do; null: no gain.")]
    naming_advised: Annotated[
        bool,
        Said(
            "Each of these exceeds the ranges of both its times, and no tables of both algorithms "
            "say the reverse."
        ),
    ]


NearStatus = Literal["complete", "truncated"]


class NearFields(OutputPart):
    """How many placements are near the optimum."""

    near_optimal: Annotated[
        Count | None,
        Said("Placement matrices near the optimum, itself among them."),
    ]
    near_optimal_status: Annotated[
        NearStatus | None,
        Said("complete: there are no others; truncated: there are at least these."),
    ]
    near_optimal_within: Annotated[
        Gap | None, Said("How near: 0.05 is at most five per cent slower.")
    ]
    near_optimal_placements: Annotated[
        Sequence[NearPlacement] | None, Said("Those; null: --within was not given.")
    ]


class ComparedFields(OutputPart):
    """What the answer is compared with, and what it rests on."""

    default_layout: ComparedLayout | None
    compared_layout: ComparedLayout | None
    faster_layouts: Annotated[Sequence[str], Said("Compared layouts that are faster.")]
    sensitivity: Sequence[ChangedTopology]
    explanation: Annotated[ExplainedAnswer | None, Said("null: --explain was not given.")]


class NearHostOrder(OutputPart):
    """An order of hosts near the best, one collective per request."""

    objective_s: Seconds
    gap: Annotated[Gap, Said("Its time over that of the best order, less one.")]
    seconds: Annotated[Sequence[Seconds], Said("Of one execution of each request.")]
    alike: Annotated[Count, Said("Orders of this matrix inside and these times, it among them.")]
    inside: Annotated[RankMatrix, Said("Matrix inside each node.")]
    hosts: Annotated[Sequence[str], Said("Of each cell of the grid of nodes, row-major.")]


class NearHostOrders(OutputPart):
    """Orders of hosts near the best one."""

    within: Annotated[float, Said("So much longer at most: 0.05 is five per cent.", ge=0)]
    status: Annotated[NearStatus, Said("complete: there are no others.")]
    count: Annotated[Count, Said("Orders that are near; hosts under one switch are exchangeable.")]
    looked: Annotated[Count, Said("Orders that were looked at.")]
    orders: Annotated[Sequence[NearHostOrder], Said("Those alike once, the fastest first.")]


class BindingLinks(OutputPart):
    """What a request waits for in the best order, one collective for it."""

    request: str
    times: Annotated[Count, Said("Executions in an iteration.", ge=1)]
    seconds: Annotated[Seconds, Said("Of one execution.")]
    levels: Annotated[
        Mapping[str, Seconds],
        Said("By level, how long an execution occupies its fullest link."),
    ]
    decided_by: DecisiveLink


class HostFields(OutputPart):
    """What an answer on named hosts says besides."""

    hosts: Annotated[
        Sequence[str] | None,
        Said("The host of each rank, in rank order; null: nodes have no names."),
    ]
    idle: Annotated[Sequence[str] | None, Said("Hosts without ranks; null: as above.")]
    inside: Annotated[
        RankMatrix | None,
        Said("Matrix inside each node: axes by the levels there; null: as above."),
    ]
    with_programs_s: Annotated[
        Seconds | None,
        Said(
            "Seconds: objective with the best programs found on the same ranks; null: "
            "none is faster, or nodes have no names (then objective_s has them)."
        ),
    ]
    orders: Annotated[
        Sequence[OrderBeside] | None,
        Said("Orders that everyone has, one collective each; null: as above."),
    ]
    near_orders: Annotated[
        NearHostOrders | None, Said("With --within; null: not asked for, or as above.")
    ]
    binding: Annotated[
        Sequence[BindingLinks] | None, Said("With --explain; null: not asked for, or as above.")
    ]


class SolveOutput(HostFields, ComparedFields, NearFields, GainFields, AnswerFields, Output):
    """The best placement and programs, with a proof."""

    stats: SearchStats
    what_if: WhatIfRows = None


# `verify --json` of a plan; `cost --json` of one adds its requests, and seeks no proof.


class PlanViolation(OutputPart):
    """What is wrong with a plan; null where it is not about one request, step, rank or chunk."""

    kind: Annotated[str, Said("The rule; cost, ranks, bound and restriction: what is misstated.")]
    request: Nth | None
    step: Annotated[int | None, Said("Of the program; the first is 1.")]
    rank: Rank | None
    chunk: Chunk | None
    message: str


class ProofOfPlan(OutputPart):
    """What solving the plan's problem again says."""

    status: Annotated[ProofStatus, Said("proved: none is faster; refuted; open: a limit was met.")]
    basis: Annotated[Sequence[ProofBasis], Said("Why no program is missed, of a proof.")]
    objective_s: Annotated[
        Seconds | None,
        Said("Seconds of the plan; null: bandwidths of uplinks are not stated."),
    ]
    bound_s: Annotated[
        Seconds | None,
        Said("Seconds that no placement matrix beats; null: of a rank list, or as above."),
    ]
    better: Annotated[RankedPlacement | None, Said("A faster answer.")]
    better_hosts: Annotated[
        Sequence[str] | None, Said("On named hosts: that of each of its ranks.")
    ]
    false: Annotated[Sequence[str], Said("Bounds that are contradicted.")]
    unsettled: Annotated[Sequence[str], Said("Bounds that are neither contradicted nor proved.")]
    weaker: Annotated[Sequence[str], Said("True bounds that are less than is proved.")]


class WhatChecked(OutputPart):
    """What a check has looked at, and what not."""

    checked: Annotated[Sequence[str], Said("What was held against the plan.")]
    not_checked: Annotated[Sequence[str], Said("What nothing has looked at.")]


class PlanVerdict(OutputPart):
    """Whether a plan is valid, and how long it takes."""

    verdict: Literal["valid", "invalid"]
    violations: Sequence[PlanViolation]
    objective_s: Annotated[
        Seconds | None,
        Said("Seconds, computed anew; null: bandwidths of uplinks are not stated."),
    ]
    seconds: Annotated[
        Sequence[Seconds] | None,
        Said("Of one execution of each request; 0: it is not valid; null: as above."),
    ]


class VerifyPlanOutput(WhatChecked, PlanVerdict, Output):
    """The verdict on a plan file."""

    checked_on: Annotated[Sequence[str], Said("What the program of each request was simulated on.")]
    proof: Annotated[ProofOfPlan | None, Said("With --prove, of a valid plan.")]
