"""`cost --symbolic --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.orders import Count, Output, OutputPart, RankMatrix, Seconds

Rational = Annotated[
    str, Field(pattern=r"^[0-9]+(/[0-9]+)?$", description="An exact number such as 31/16.")
]
PerLevel = Annotated[list[Rational], Field(description="A number for each level.")]


class NumbersPart(OutputPart):
    """What the symbols are on a topology: numbers that give its times in seconds."""

    c: Annotated[Rational, Field(description="Seconds of a call.")]
    alpha: Annotated[list[Rational], Field(description="Seconds of a message, for each level.")]
    beta: Annotated[
        list[Rational], Field(description="Seconds per byte of payload n, for each level.")
    ]


class FillPart(OutputPart):
    """Filling a pipeline: min(sqrt(factor n W S), most S).

    W is the largest of the loads' beta, S the sum over rows of the largest of their alpha.
    """

    factor: Rational
    loads: PerLevel
    stages: list[PerLevel]
    most: Annotated[Rational | None, Field(description="null: the root alone.")]


class FormPart(OutputPart):
    """A cost of which each step runs in one way: c calls + sum of A alpha + n sum of maxima."""

    calls: Annotated[Count, Field(description="The factor of c, the cost of a call.")]
    latency: Annotated[PerLevel, Field(description="A: the factors of the levels' alpha.")]
    maxima: Annotated[
        list[PerLevel], Field(description="Factors of beta: n times the largest of each is added.")
    ]


class AnyFormPart(OutputPart):
    """The same with parts of calls, and with fills, which are added."""

    calls: Annotated[Count | Rational, Field(description="The factor of c, the cost of a call.")]
    latency: Annotated[PerLevel, Field(description="A: the factors of the levels' alpha.")]
    maxima: Annotated[
        list[PerLevel], Field(description="Factors of beta: n times the largest of each is added.")
    ]
    fills: Annotated[list[FillPart], Field(description="Of steps that are pipelined.")]


class SymbolicWayPart(OutputPart):
    """One algorithm with one protocol for a step."""

    algorithm: str
    protocol: str
    calls: Annotated[Rational, Field(description="What its call costs, in units of c.")]
    latency: Annotated[PerLevel, Field(description="The factors of the levels' alpha.")]
    loads: Annotated[PerLevel, Field(description="The factors of beta: the largest counts.")]
    fill: Annotated[FillPart | None, Field(description="null: it is not pipelined.")]


class ChoicePart(OutputPart):
    """From ``low`` to ``high`` bytes of n a library takes one way."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    below: Annotated[bool, Field(description="At high itself the next one holds.")]
    way: Annotated[Count, Field(description="Its place in ways.")]


class SymbolicStepPart(OutputPart):
    """A step; of its ways the fastest runs, and without any it costs nothing."""

    instruction: str
    ways: list[SymbolicWayPart]
    choice: Annotated[
        list[ChoicePart], Field(description="Which way a library takes; empty: the fastest.")
    ]


class FormCellPart(OutputPart):
    """From ``low`` to ``high`` bytes a program has one form, by a library's choice."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    below: Annotated[bool, Field(description="At high itself the next one holds.")]
    form: AnyFormPart
    ways: Annotated[list[str], Field(description="Algorithm and protocol of each step.")]
    text: str
    latex: str


class SymbolicRequest(OutputPart):
    """A request with a program, and its cost."""

    kind: RequestKind
    axes: list[str]
    program: Annotated[str | None, Field(description="null: one fixed step, or nothing to do.")]
    steps: list[SymbolicStepPart]
    form: Annotated[AnyFormPart | None, Field(description="null: a step may run in several ways.")]
    cells: Annotated[
        list[FormCellPart], Field(description="By n, where a library chooses; else empty.")
    ]
    text: str
    latex: str


class SymbolicOutput(Output):
    """Costs before any number is known: several programs of one request, or several requests."""

    levels: Annotated[list[str], Field(description="Levels, outermost first.")]
    numbers: Annotated[
        NumbersPart | None, Field(description="What the symbols are there; null: no request.")
    ]
    requests: list[SymbolicRequest]


# Cells by themselves: what is best, and from where to where each number goes.


EqualCosts = Annotated[Count, Field(description="How many other costs are equal there.")]


class NumberRange(OutputPart):
    """From where to where a number goes."""

    from_: Annotated[Rational, Field(alias="from")]
    to: Annotated[Rational | None, Field(description="null: without end.")]


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
    inner_bandwidth_ratios: list[Rational]
    inner_latency_ratios: list[Rational]
    equal: EqualCosts


# `crossings --sufficient --json`, and `verify --json` of its certificate.


LevelSizes = list[Annotated[int, Field(ge=1)]]


class MemberPart(FormPart):
    """A cost of the set, with its programs, the shortest first."""

    programs: list[str]
    text: str
    latex: str
    alone_at: Annotated[
        list[Rational] | None,
        Field(description="Numbers for the unknowns where it alone is least; null: none known."),
    ]


class LeastSetOutput(Output):
    """The fewest programs of which one is always best."""

    status: Literal["optimal", "unknown"]
    request: RequestKind
    factors: LevelSizes
    ports: Annotated[LevelSizes, Field(description="Of an entity of each level.")]
    max_length: Annotated[int, Field(ge=1, description="Most instructions of a program.")]
    calls: Annotated[bool, Field(description="Whether the cost of a call is an unknown.")]
    unknowns: Annotated[list[str], Field(description="What the numbers of a point belong to.")]
    programs: Annotated[Count, Field(description="Valid programs in all.")]
    costs: Annotated[Count, Field(description="Different costs that these have.")]
    sufficient: Annotated[
        list[str], Field(description="A program of each cost of the set; empty: nothing is proved.")
    ]
    members: Annotated[list[MemberPart], Field(description="The set; empty: nothing is proved.")]
    excluded: Annotated[Count, Field(description="Costs with multipliers that exclude them.")]
    cases: Annotated[Count, Field(description="Cases of their maxima in all.")]
    open: Annotated[list[str], Field(description="A program of each cost that is not decided.")]
    cells: Annotated[
        list[FlatCell],
        Field(description="Where which is best, at some ratios; empty: one level, or no proof."),
    ]
    certificate: Annotated[str | None, Field(description="The file that it was written to.")]
    wall_s: Seconds


class VerifyLeastSetOutput(Output):
    """The verdict on a certificate."""

    verdict: Literal["valid", "invalid"]
    violations: list[str]
    members: Annotated[list[str], Field(description="The set; empty where it is not proved.")]
    max_length: Annotated[
        int, Field(ge=1, description="Most instructions of the programs that it is claimed of.")
    ]
    checked: list[str]
    not_checked: list[str]


# `crossings --json` without --sufficient: cells in which one program is best.


CellStatus = Annotated[
    Literal["complete", "unknown"],
    Field(description="unknown: the time ran out before the programs were listed."),
]


class LargePayloadCell(OutputPart):
    """Of large payloads, from where to where one cost is least."""

    program: str
    bandwidth_ratio: NumberRange
    equal: EqualCosts


class CrossingProgram(FormPart):
    """A cost that is least somewhere, with its programs, the shortest first."""

    name: str
    programs: list[str]
    text: str


class CrossingsOutput(Output):
    """Which program is best, by ratios between levels and by the payload."""

    status: CellStatus
    request: RequestKind
    factors: LevelSizes
    ports: Annotated[LevelSizes, Field(description="Of an entity of each level.")]
    max_length: Annotated[int, Field(ge=1, description="Most instructions of a program.")]
    programs: list[CrossingProgram]
    large_payloads: Annotated[
        list[LargePayloadCell],
        Field(description="By the bandwidth ratio of the outermost level; empty: one was given."),
    ]
    cells: Annotated[
        list[FlatCell], Field(description="Those of the payload, for each bandwidth ratio.")
    ]


class PlacedProgramPart(AnyFormPart):
    """A program on a placement, its steps by these algorithms and protocols."""

    name: str
    program: str
    text: str
    placement: RankMatrix
    ways: Annotated[list[str], Field(description="Of each step that sends something.")]


class PayloadCell(OutputPart):
    """From where to where, in bytes of payload, one program is best.

    Where the next cell begins behind the end, the crossing is in between, a root of a quadratic.
    At a bound where a library goes over to another way, ``cost --symbolic`` says which side holds.
    """

    best: Annotated[str, Field(description="The name of a program with its placement and ways.")]
    program: str
    payload: NumberRange
    equal: EqualCosts


class CrossingsPayloadOutput(Output):
    """Which program of a request is best, by the payload in bytes, on a topology."""

    status: CellStatus
    request: RequestKind
    axes: list[str]
    levels: list[str]
    library: Annotated[str | None, Field(description="What chooses algorithms; null: nothing.")]
    placements: Annotated[Count, Field(description="How many there are in all.")]
    numbers: Annotated[
        NumbersPart | None, Field(description="What symbols are there; null: the time ran out.")
    ]
    programs: list[PlacedProgramPart]
    cells: list[PayloadCell]
    open_from: Annotated[
        Rational | None, Field(description="From where on the time ran out; null: nowhere.")
    ]


class PlacementCell(OutputPart):
    """From where to where, by payloads' ratio, one placement is best."""

    placement: RankMatrix
    equal: Annotated[Count, Field(description="How many others are equal there.")]
    ratio: NumberRange
    s_per_byte: Annotated[
        list[Rational],
        Field(description="Seconds that a byte takes there: of the first request, of all others."),
    ]


class CrossingsPlacementOutput(Output):
    """Which placement is best for several requests, by payloads' ratio, for large payloads."""

    status: CellStatus
    axes: list[str]
    requests: Annotated[list[str], Field(description="The ratio is of the first to the second.")]
    shares: Annotated[
        list[Rational], Field(description="Payloads from the second request on over its own.")
    ]
    placements: Annotated[Count, Field(description="How many there are in all.")]
    cells: list[PlacementCell]
