"""Symbolic costs, crossings and least sufficient sets: what holds for every hardware."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from p2smt.collectives.names import RequestKind
from p2smt.report.outputs.shape import (
    Count,
    Output,
    OutputPart,
    RankMatrix,
    Said,
    Seconds,
    ShapedAs,
)

_RATIONAL = r"^[0-9]+(/[0-9]+)?$"
Rational = Annotated[
    Fraction, ShapedAs(lambda: str), Said("An exact number such as 31/16.", pattern=_RATIONAL)
]
PerLevel = Annotated[Sequence[Rational], Said("A number for each level.")]


class NumbersPart(OutputPart):
    """What the symbols are on a topology: numbers that give its times in seconds."""

    c: Annotated[Rational, Said("Seconds of a call.")]
    alpha: Annotated[Sequence[Rational], Said("Seconds of a message, for each level.")]
    beta: Annotated[Sequence[Rational], Said("Seconds per byte of payload n, for each level.")]


class FillPart(OutputPart):
    """Filling a pipeline: min(sqrt(factor n W S), most S).

    W is the largest of the loads' beta, S the sum over rows of the largest of their alpha.
    """

    factor: Rational
    loads: PerLevel
    stages: Sequence[PerLevel]
    most: Annotated[Rational | None, Said("null: the root alone.")]


class CostTerms(OutputPart):
    """What a cost sums up beside the calls: sum of A alpha + n sum of maxima."""

    latency: Annotated[PerLevel, Said("A: the factors of the levels' alpha.")]
    maxima: Annotated[
        Sequence[PerLevel],
        Said("Factors of beta: n times the largest of each is added."),
    ]


class WholeCalls(OutputPart):
    """Calls of which none is a part."""

    calls: Annotated[Count, Said("The factor of c, the cost of a call.")]


class FormPart(CostTerms, WholeCalls):
    """A cost of which each step runs in one way."""


class AnyCalls(OutputPart):
    """Calls, and parts of them."""

    calls: Annotated[Count | Rational, Said("The factor of c, the cost of a call.")]


class AnyFormPart(CostTerms, AnyCalls):
    """The same with parts of calls, and with fills, which are added."""

    fills: Annotated[Sequence[FillPart], Said("Of steps that are pipelined.")]


class SymbolicWayPart(OutputPart):
    """One algorithm with one protocol for a step."""

    algorithm: str
    protocol: str
    calls: Annotated[Rational, Said("What its call costs, in units of c.")]
    latency: Annotated[PerLevel, Said("The factors of the levels' alpha.")]
    loads: Annotated[PerLevel, Said("The factors of beta: the largest counts.")]
    fill: Annotated[FillPart | None, Said("null: it is not pipelined.")]


class FormRange(OutputPart):
    """From ``low`` to ``high`` bytes of n."""

    low: Rational
    high: Annotated[Rational | None, Said("null: without end.")]
    below: Annotated[bool, Said("At high itself the next one holds.")]


class ChoicePart(FormRange):
    """There a library takes one way."""

    way: Annotated[Count, Said("Its place in ways.")]


class SymbolicStepPart(OutputPart):
    """A step; of its ways the fastest runs, and without any it costs nothing."""

    instruction: str
    ways: Sequence[SymbolicWayPart]
    choice: Annotated[Sequence[ChoicePart], Said("Which way a library takes; empty: the fastest.")]


class FormCellPart(FormRange):
    """There a program has one form, by a library's choice."""

    form: AnyFormPart
    ways: Annotated[Sequence[str], Said("Algorithm and protocol of each step.")]
    text: str
    latex: str


class SymbolicRequest(OutputPart):
    """A request with a program, and its cost."""

    kind: RequestKind
    axes: Sequence[str]
    program: Annotated[str | None, Said("null: one fixed step, or nothing to do.")]
    steps: Sequence[SymbolicStepPart]
    form: Annotated[AnyFormPart | None, Said("null: a step may run in several ways.")]
    cells: Annotated[Sequence[FormCellPart], Said("By n, where a library chooses; else empty.")]
    text: str
    latex: str


class SymbolicOutput(Output):
    """Costs before any number is known: several programs of one request, or several requests."""

    levels: Annotated[Sequence[str], Said("Levels, outermost first.")]
    numbers: Annotated[NumbersPart | None, Said("What the symbols are there; null: no request.")]
    requests: Sequence[SymbolicRequest]


# Cells by themselves: what is best, and from where to where each number goes.


EqualCosts = Annotated[Count, Said("How many other costs are equal there.")]


class NumberRange(OutputPart):
    """From where to where a number goes."""

    from_: Rational
    to: Annotated[Rational | None, Said("null: without end.")]


class FlatCell(OutputPart):
    """A cell by itself: its best program, and from where to where each number goes.

    Ratios are of the outermost level to the innermost, the payload is x = n beta / alpha of the
    innermost; ``inner_`` ratios are those of the levels between.
    """

    program: str
    payload: NumberRange
    bandwidth_ratio: NumberRange
    latency_ratio: NumberRange
    cost_per_call: NumberRange
    inner_bandwidth_ratios: Sequence[Rational]
    inner_latency_ratios: Sequence[Rational]
    equal: EqualCosts


# `crossings --sufficient --json`, and `verify --json` of its certificate.


LevelSizes = Sequence[Annotated[int, Said(ge=1)]]


class WithPrograms(OutputPart):
    """The programs of a cost, the shortest first."""

    programs: Sequence[str]


class MemberPart(FormPart, WithPrograms):
    """A cost of the set, with its programs."""

    text: str
    latex: str
    alone_at: Annotated[
        Sequence[Rational] | None,
        Said("Numbers for the unknowns where it alone is least; null: none known."),
    ]


class LeastSetOutput(Output):
    """The fewest programs of which one is always best."""

    status: Literal["optimal", "unknown"]
    request: RequestKind
    factors: LevelSizes
    ports: Annotated[LevelSizes, Said("Of an entity of each level.")]
    max_length: Annotated[int, Said("Most instructions of a program.", ge=1)]
    calls: Annotated[bool, Said("Whether the cost of a call is an unknown.")]
    unknowns: Annotated[Sequence[str], Said("What the numbers of a point belong to.")]
    programs: Annotated[Count, Said("Valid programs in all.")]
    costs: Annotated[Count, Said("Different costs that these have.")]
    sufficient: Annotated[
        Sequence[str],
        Said("A program of each cost of the set; empty: nothing is proved."),
    ]
    members: Annotated[Sequence[MemberPart], Said("The set; empty: nothing is proved.")]
    excluded: Annotated[Count, Said("Costs with multipliers that exclude them.")]
    cases: Annotated[Count, Said("Cases of their maxima in all.")]
    open: Annotated[Sequence[str], Said("A program of each cost that is not decided.")]
    cells: Annotated[
        Sequence[FlatCell],
        Said("Where which is best, at some ratios; empty: one level, or no proof."),
    ]
    certificate: Annotated[str | None, Said("The file that it was written to.")]
    wall_s: Seconds


class VerifyLeastSetOutput(Output):
    """The verdict on a certificate."""

    verdict: Literal["valid", "invalid"]
    violations: Sequence[str]
    members: Annotated[Sequence[str], Said("The set; empty where it is not proved.")]
    max_length: Annotated[
        int, Said("Most instructions of the programs that it is claimed of.", ge=1)
    ]
    checked: Sequence[str]
    not_checked: Sequence[str]


# `crossings --json` without --sufficient: cells in which one program is best.


CellStatus = Annotated[
    Literal["complete", "unknown"],
    Said("unknown: the time ran out before the programs were listed."),
]


class LargePayloadCell(OutputPart):
    """Of large payloads, from where to where one cost is least."""

    program: str
    bandwidth_ratio: NumberRange
    equal: EqualCosts


class NamedCost(OutputPart):
    """The letter of a cost."""

    name: str


class CrossingProgram(FormPart, WithPrograms, NamedCost):
    """A cost that is least somewhere, with its programs."""

    text: str


class CrossingsOutput(Output):
    """Which program is best, by ratios between levels and by the payload."""

    status: CellStatus
    request: RequestKind
    factors: LevelSizes
    ports: Annotated[LevelSizes, Said("Of an entity of each level.")]
    max_length: Annotated[int, Said("Most instructions of a program.", ge=1)]
    programs: Sequence[CrossingProgram]
    large_payloads: Annotated[
        Sequence[LargePayloadCell],
        Said("By the bandwidth ratio of the outermost level; empty: one was given."),
    ]
    cells: Annotated[Sequence[FlatCell], Said("Those of the payload, for each bandwidth ratio.")]


class PlacedWays(NamedCost):
    """A program on a placement, its steps by these algorithms and protocols."""

    program: str
    placement: RankMatrix
    ways: Annotated[Sequence[str], Said("Of each step that sends something.")]


class PlacedProgramPart(AnyFormPart, PlacedWays):
    """The same with its cost."""

    text: str


class PayloadCell(OutputPart):
    """From where to where, in bytes of payload, one program is best.

    Where the next cell begins behind the end, the crossing is in between, a root of a quadratic.
    At a bound where a library goes over to another way, ``cost --symbolic`` says which side holds.
    """

    best: Annotated[str, Said("The name of a program with its placement and ways.")]
    program: str
    payload: NumberRange
    equal: EqualCosts


class CrossingsPayloadOutput(Output):
    """Which program of a request is best, by the payload in bytes, on a topology."""

    status: CellStatus
    request: RequestKind
    axes: Sequence[str]
    levels: Sequence[str]
    library: Annotated[str | None, Said("What chooses algorithms; null: nothing.")]
    placements: Annotated[Count, Said("How many there are in all.")]
    numbers: Annotated[NumbersPart | None, Said("What symbols are there; null: the time ran out.")]
    programs: Sequence[PlacedProgramPart]
    cells: Sequence[PayloadCell]
    open_from: Annotated[Rational | None, Said("From where on the time ran out; null: nowhere.")]


class PlacementCell(OutputPart):
    """From where to where, by payloads' ratio, one placement is best."""

    placement: RankMatrix
    equal: Annotated[Count, Said("How many others are equal there.")]
    ratio: NumberRange
    s_per_byte: Annotated[
        Sequence[Rational],
        Said("Seconds that a byte takes there: of the first request, of all others."),
    ]


class CrossingsPlacementOutput(Output):
    """Which placement is best for several requests, by payloads' ratio, for large payloads."""

    status: CellStatus
    axes: Sequence[str]
    requests: Annotated[Sequence[str], Said("The ratio is of the first to the second.")]
    shares: Annotated[Sequence[Rational], Said("Payloads from the second request on over its own.")]
    placements: Annotated[Count, Said("How many there are in all.")]
    cells: Sequence[PlacementCell]
