"""JSON of `synthesize`, for one question and with ``--pareto``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from p2smt.report.schemas.orders import Count, FractionText, Output, OutputPart, Rank, Seconds
from p2smt.schedules.language.file_model import FileModel

RateText = Annotated[FractionText, Field(description="Rounds a chunk (R/C), a fraction.")]
BoundKindText = Annotated[
    Literal["distance", "degree", "cut", "gossip", "flow"] | None,
    Field(description="What the proof of the bound rests on; null: it was stopped before."),
]
ClassText = Annotated[
    Literal["trees", "accumulators", "partial-sums"] | None,
    Field(description="Of all-reduces (T, A, G); null: chunks are copied, or added at one rank."),
]
GroupOrder = Annotated[int, Field(ge=1, description="Of the group of symmetries; 1: without.")]
Least1 = Annotated[int, Field(ge=1)]


class SynthesisFiles(OutputPart):
    """The files that were written; null: none was asked for, or there was nothing to write."""

    output: str | None
    certificate: str | None
    svg: str | None


class SynthesisSearch(OutputPart):
    """A search for schedules of a class that a group takes to themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    group_order: GroupOrder
    family: Annotated[ClassText, Field(alias="class")]
    status: Literal["feasible", "infeasible", "unknown"]
    why: Annotated[str, Field(description="Why it is unknown; may be empty.")]
    wall_s: Seconds


class SynthesisAnswer(OutputPart):
    """The answer to one question."""

    status: Literal["schedule", "no schedule", "no symmetric schedule", "unknown"]
    reason: Annotated[str, Field(description="The answer in words, with what proves it.")]
    detail: str
    steps: Least1
    rounds: Least1
    chunks: Annotated[
        int,
        Field(
            ge=1,
            description="Per rank (all-gather, reduce-scatter), per pair that sends (all-to-all, "
            "scatter, gather), or in all.",
        ),
    ]
    rate: RateText
    bound: Annotated[
        FractionText | None,
        Field(description="Of R/C in so many steps; of kind distance, of the steps."),
    ]
    bound_kind: BoundKindText
    optimal: Annotated[bool, Field(description="The rate is the bound.")]
    family: Annotated[ClassText, Field(alias="class")]
    group_order: GroupOrder | None
    verdict: Annotated[
        Literal["valid", "unknown"] | None, Field(description="In every interleaving.")
    ]
    schedule: Annotated[
        FileModel | None,
        Field(description="The schedule file as data; null: there is none, or it was written."),
    ]
    files: SynthesisFiles
    searches: list[SynthesisSearch]
    wall_s: Seconds


class SynthesisSubject(Output):
    """What is asked about."""

    fabric: str
    ranks: Annotated[
        Count | None, Field(description="null: the time came before the fabric was made.")
    ]
    collective: str
    root: Rank | None
    outside: Annotated[str, Field(description="What no bound says anything about.")]


class SynthesizeOutput(SynthesisAnswer, SynthesisSubject):
    """One question."""


class SynthesizePoint(OutputPart):
    """So many steps."""

    steps: Least1
    bound: RateText
    bound_kind: BoundKindText
    best: Annotated[RateText | None, Field(description="Found in so many steps or fewer.")]
    gap: Annotated[FractionText | None, Field(description="Of the bound to it, as a part of it.")]
    proved: bool
    certificate: Annotated[str | None, Field(description="The file of its bound.")]
    found: SynthesisAnswer | None


class SynthesizeParetoOutput(SynthesisSubject):
    """The frontier."""

    status: Literal["proved", "open"]
    ending: str
    limit: Annotated[FractionText | None, Field(description="Of R/C in any number of steps.")]
    limit_kind: BoundKindText
    limit_certificate: Annotated[str | None, Field(description="The file of that bound.")]
    points: list[SynthesizePoint]
    wall_s: Seconds
