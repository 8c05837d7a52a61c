"""``synthesize --json``, for one question and with ``--pareto``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from p2smt.problems.schedule import ScheduleClass
from p2smt.report.outputs.shape import (
    Count,
    FractionText,
    Output,
    OutputPart,
    Rank,
    Said,
    ScheduleData,
    Seconds,
)
from p2smt.result import Status
from p2smt.schedules.verify.report import Verdict
from p2smt.synthesis.certificate.certificate import BoundKind

RateText = Annotated[FractionText, Said("Rounds a chunk (R/C), a fraction.")]
BoundKindText = Annotated[
    BoundKind | None,
    Said("What the proof of the bound rests on; null: it was stopped before."),
]
ClassText = Annotated[
    ScheduleClass | None,
    Said("Of all-reduces (T, A, G); null: chunks are copied, or added at one rank."),
]
GroupOrder = Annotated[int, Said("Of the group of symmetries; 1: without.", ge=1)]
Least1 = Annotated[int, Said(ge=1)]


class SynthesisFiles(OutputPart):
    """The files that were written; null: none was asked for, or there was nothing to write."""

    output: str | None
    certificate: str | None
    svg: str | None


class SynthesisSearch(OutputPart):
    """A search for schedules of a class that a group takes to themselves."""

    group_order: GroupOrder
    class_: ClassText
    status: Literal[Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN]
    why: Annotated[str, Said("Why it is unknown; may be empty.")]
    wall_s: Seconds


AnswerWord = Literal["schedule", "no schedule", "no symmetric schedule", "unknown"]


class SynthesisAnswer(OutputPart):
    """The answer to one question."""

    status: AnswerWord
    reason: Annotated[str, Said("The answer in words, with what proves it.")]
    detail: str
    steps: Least1
    rounds: Least1
    chunks: Annotated[
        int,
        Said(
            ge=1,
            description="Per rank (all-gather, reduce-scatter), per pair that sends (all-to-all, "
            "scatter, gather), or in all.",
        ),
    ]
    rate: RateText
    bound: Annotated[
        FractionText | None,
        Said("Of R/C in so many steps; of kind distance, of the steps."),
    ]
    bound_kind: BoundKindText
    optimal: Annotated[bool, Said("The rate is the bound.")]
    class_: ClassText
    group_order: GroupOrder | None
    origin: Annotated[
        str | None, Said("Of what it was made, where no search found it; null: one did, or none.")
    ]
    verdict: Annotated[
        Literal[Verdict.VALID, Verdict.UNKNOWN] | None, Said("In every interleaving.")
    ]
    schedule: Annotated[
        ScheduleData | None,
        Said("The schedule file as data; null: there is none, or it was written."),
    ]
    files: SynthesisFiles
    searches: Sequence[SynthesisSearch]
    wall_s: Seconds


class SynthesisSubject(Output):
    """What is asked about."""

    fabric: str
    ranks: Annotated[Count | None, Said("null: the time came before the fabric was made.")]
    collective: str
    root: Rank | None


class WithOutside(OutputPart):
    """What bounds leave out."""

    outside: Annotated[str, Said("What no bound says anything about.")]


class SynthesizeOutput(WithOutside, SynthesisAnswer, SynthesisSubject):
    """One question."""


class SynthesizePoint(OutputPart):
    """So many steps."""

    steps: Least1
    bound: RateText
    bound_kind: BoundKindText
    best: Annotated[RateText | None, Said("Found in so many steps or fewer.")]
    gap: Annotated[FractionText | None, Said("Of the bound to it, as a part of it.")]
    proved: bool
    certificate: Annotated[str | None, Said("The file of its bound.")]
    found: SynthesisAnswer | None


class SynthesizeParetoOutput(SynthesisSubject):
    """The frontier."""

    status: Literal["proved", "open"]
    ending: str
    limit: Annotated[FractionText | None, Said("Of R/C in any number of steps.")]
    limit_kind: BoundKindText
    limit_certificate: Annotated[str | None, Said("The file of that bound.")]
    points: Sequence[SynthesizePoint]
    outside: Annotated[str, Said("What no bound says anything about.")]
    wall_s: Seconds
