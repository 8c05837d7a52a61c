"""`crossings --sufficient --json`, and `verify --json` of its certificate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import Count, Output, Seconds
from p2smt.report.schemas.crossings.flat_cells import FlatCell
from p2smt.report.schemas.crossings.symbolic import FormPart, Rational

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
