"""`crossings --json` without --sufficient: cells in which one program is best."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import Count, Output, OutputPart, RankMatrix
from p2smt.report.schemas.crossings.least_set import LevelSizes
from p2smt.report.schemas.crossings.symbolic import FormPart, PerLevel, Rational

CellStatus = Annotated[
    Literal["complete", "unknown"],
    Field(description="unknown: the time ran out before the programs were listed."),
]


class CrossingCell(OutputPart):
    """From ``low`` to ``high`` one cost is least."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    best: Annotated[str, Field(description="The name of a program.")]
    equal: Annotated[Count, Field(description="How many other costs are equal there.")]


class CrossingProgram(FormPart):
    """A cost that is least somewhere, with its programs, the shortest first."""

    name: str
    programs: list[str]
    text: str


class CrossingRow(OutputPart):
    """The cells of the payload x = n beta / alpha, in numbers of the innermost level."""

    latency_ratios: PerLevel
    bandwidth_ratios: PerLevel
    cost_per_call: Annotated[Rational, Field(description="Over the innermost latency.")]
    cells: list[CrossingCell]


class CrossingsOutput(Output):
    """Which program is best, by ratios between levels and by the payload."""

    status: CellStatus
    request: RequestKind
    factors: LevelSizes
    ports: Annotated[LevelSizes, Field(description="Of an entity of each level.")]
    max_length: Annotated[int, Field(ge=1, description="Most instructions of a program.")]
    programs: list[CrossingProgram]
    rows: list[CrossingRow]
    large_payloads: Annotated[
        list[CrossingCell],
        Field(description="By the bandwidth ratio of the outermost level; empty: one was given."),
    ]


class CrossingsPayloadOutput(Output):
    """Which program of a request is best, by the payload in bytes, on a topology."""

    status: CellStatus
    request: RequestKind
    axes: list[str]
    levels: list[str]
    programs: list[CrossingProgram]
    cells: list[CrossingCell]


class PlacementCell(OutputPart):
    """From ``low`` to ``high`` one placement is best."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    placement: RankMatrix
    equal: Annotated[Count, Field(description="How many others are equal there.")]
    s_per_byte: Annotated[
        list[Rational], Field(description="Seconds that a byte of each request takes there.")
    ]


class CrossingsPlacementOutput(Output):
    """Which placement is best for two requests, by their payloads' ratio, for large payloads."""

    status: CellStatus
    axes: list[str]
    requests: Annotated[list[str], Field(description="The ratio is of the first to the second.")]
    placements: Annotated[Count, Field(description="How many there are in all.")]
    cells: list[PlacementCell]
