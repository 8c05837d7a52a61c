"""`crossings --json` without --sufficient: cells in which one program is best."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import Count, Output, OutputPart, RankMatrix
from p2smt.report.schemas.crossings.flat_cells import EqualCosts, FlatCell, NumberRange
from p2smt.report.schemas.crossings.least_set import LevelSizes
from p2smt.report.schemas.crossings.symbolic import (
    AnyFormPart,
    FormPart,
    NumbersPart,
    Rational,
)

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
