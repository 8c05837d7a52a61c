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
    PayloadBytes,
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
GroupOrder = Annotated[
    int, Said("Of the group of symmetries; 1: without.  It can exceed 2^53.", ge=1)
]
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
    unsearched: Annotated[
        str | None, Said("What is not searched, and why; null: no open point of those listed.")
    ]
    limit: Annotated[FractionText | None, Said("Of R/C in any number of steps.")]
    limit_kind: BoundKindText
    limit_certificate: Annotated[str | None, Said("The file of that bound.")]
    points: Sequence[SynthesizePoint]
    outside: Annotated[str, Said("What no bound says anything about.")]
    wall_s: Seconds


# `synthesize --size --json`.


class SizedSpan(OutputPart):
    """Payloads for which the schedules meet the bound, or for which they do not."""

    from_bytes: Annotated[FractionText, Said("The first payload.")]
    to_bytes: Annotated[FractionText, Said("The last one.")]
    ratio: Annotated[
        FractionText, Said("The largest of their time and the bound; 1: nothing takes less.")
    ]


class SizedAnswer(OutputPart):
    """The schedule that takes least for some payloads."""

    from_bytes: PayloadBytes
    to_bytes: PayloadBytes
    found: SynthesisAnswer


class SizedTime(OutputPart):
    """A payload: times in the model, and prices beside the library's own."""

    size_bytes: PayloadBytes
    steps: Least1
    rounds: Least1
    chunks: Least1
    seconds: Annotated[Seconds, Said("Steps and rounds of the schedule, in the model.")]
    bound_s: Annotated[Seconds, Said("What no schedule is below, in the model.")]
    price_s: Annotated[
        Seconds, Said("Of the schedule, a call's included, with latencies and contention.")
    ]
    protocol: Annotated[str, Said("That of the price; the best one.")]
    library_s: Annotated[Seconds | None, Said("Of the library's choice; null: it has none.")]
    library_way: Annotated[str | None, Said("The algorithm and protocol that it chooses.")]


class FasterFrom(OutputPart):
    """From some payload on, up to the next of these."""

    from_bytes: PayloadBytes
    name: Annotated[str, Said("synthesized, or the library; of files their names.")]


class SynthesizeSizesOutput(SynthesisSubject):
    """The best schedules of a range of payloads."""

    status: Literal["proved", "open"]
    ending: Annotated[str, Said("Why nothing more was searched.")]
    unsearched: Annotated[str | None, Said("As that of a frontier.")]
    topology: Annotated[str, Said("Whose latencies and library they are priced by.")]
    library: Annotated[str | None, Said("null: it runs no such collective, or there is none.")]
    from_bytes: PayloadBytes
    to_bytes: PayloadBytes
    alpha_s: Annotated[FractionText | None, Said("Seconds of a step; null: there is no fabric.")]
    beta_s: Annotated[
        FractionText | None, Said("Seconds of a byte where R/C is 1; null: there is no fabric.")
    ]
    ratio: Annotated[
        FractionText | None,
        Said("The largest of time and bound in the range; null: no schedule, or no bound."),
    ]
    spans: Annotated[Sequence[SizedSpan], Said("Where they are proved, and where not.")]
    pieces: Annotated[Sequence[SizedAnswer], Said("Which schedule is for which payloads.")]
    sizes: Annotated[Sequence[SizedTime], Said("Times at the payloads asked about.")]
    faster: Annotated[
        Sequence[FasterFrom], Said("Whose price is the lower one, from the first size on.")
    ]
    certificate: Annotated[str | None, Said("The file of what is proved.")]
    svg: Annotated[str | None, Said("The picture of the times.")]
    left_out: Annotated[str, Said("What prices leave out.")]
    outside: Annotated[str, Said("What no bound says anything about.")]
    wall_s: Seconds


# `synthesize --objective throughput --json`.


class ForestTree(OutputPart):
    """A tree of the forest, which symmetries take to others of the same weight."""

    root: Rank
    weight: Annotated[FractionText, Said("Its part of the root's data: 1 in all.")]
    height: Annotated[int, Said("Messages on its longest way.", ge=1)]
    adds: Annotated[bool, Said("It adds up towards its root; else it copies from it.")]


class ForestSchedule(OutputPart):
    """The forest as a schedule, replayed and verified."""

    pieces: Annotated[int, Said("Of each root's data.", ge=1)]
    steps: Least1
    rounds: Annotated[int, Said("In each the slowest link carries a piece.", ge=1)]
    chunks: Least1
    time: Annotated[FractionText, Said("As that of the forest, step by step.")]
    verdict: Verdict


class SynthesizeThroughputOutput(WithOutside, SynthesisSubject):
    """The greatest throughput, and a forest that has it."""

    status: Literal["optimal", "gap", "unknown"]
    without: Annotated[Sequence[str], Said("What has failed, as given.")]
    measured: Annotated[
        bool | None,
        Said("Bandwidths are bytes a second, else chunks a round; null: unknown."),
    ]
    time: Annotated[
        FractionText | None,
        Said("Seconds for a byte of each root (or rounds for a chunk); null: no forest was found."),
    ]
    bound: Annotated[FractionText | None, Said("The least time of all forests, proved.")]
    throughput: Annotated[
        FractionText | None, Said("Bytes a second (or chunks a round) of all that is brought.")
    ]
    gap: Annotated[FractionText | None, Said("Of the bound to the time, as a part of it.")]
    binding: Annotated[Sequence[str], Said("The links into the part that proves the bound.")]
    symmetries: Annotated[Count, Said("Generators that were used.")]
    flows: Annotated[Count, Said("Max flows that found the bound.")]
    height: Annotated[
        Count | None,
        Said("The most messages of a tree from its root that were allowed; null: any."),
    ]
    trees: Sequence[ForestTree]
    schedule: Annotated[ForestSchedule | None, Said("null: no pieces were asked for.")]
    files: SynthesisFiles
    wall_s: Seconds
