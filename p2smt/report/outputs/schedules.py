"""``verify --json`` of a schedule, at one size or at many, and of a bound's certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.report.outputs.shape import (
    Bytes,
    Chunk,
    Count,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    Rank,
    Ratio,
    Said,
    Seconds,
)
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.synthesis.certificate.certificate import BoundedCollective, BoundKind

# `verify --json` of a schedule.


class ScheduleStep(OutputPart):
    """Where a step stands."""

    rank: Rank
    block: int
    step: Annotated[int, Said("In its thread block, from 0.", ge=0)]
    inner: Annotated[int | None, Said("Which operation inside that step; null: it is all of it.")]
    kind: Annotated[str, Said("As the file writes it.")]
    line: Annotated[int | None, Said("In the file, from 1; null: not known.")]


class InterleavedStep(ScheduleStep):
    """An entry of an interleaving."""

    part: Annotated[str, Said("Which part of the step; empty: the whole.")]


class KindAndPlace(OutputPart):
    """What is wrong, and where."""

    kind: Kind
    rank: Rank | None
    chunk: Chunk | None


class ScheduleViolation(KindAndPlace):
    """What is wrong with a schedule, and an interleaving that shows it."""

    step: Annotated[int | None, Said("Of the first step that it names.")]
    message: str
    steps: Annotated[Sequence[ScheduleStep], Said("The steps at fault.")]
    details: Sequence[str]
    interleaving: Sequence[InterleavedStep]


class CheckedSchedule(OutputPart):
    """What was checked."""

    name: str
    format: str
    collective: str
    in_place: bool
    ranks: Annotated[int, Said(ge=1)]
    steps: Count


class FoldedSchedule(OutputPart):
    """Of a schedule with `symmetry`, what its verdict rests on."""

    orbits: Annotated[Count, Said("Orbits of ranks, each with a program.")]
    program_steps: Annotated[Count, Said("Steps of all programs.")]
    generators: Annotated[Count, Said("Symmetries that the file names.")]
    order: Annotated[Count, Said("Symmetries that can be made of them.")]
    fabric: Annotated[str | None, Said("Whose symmetries they are as well; null: none was named.")]


class RepairedStep(ScheduleStep):
    """The step to change, and how."""

    change: str


class RepairOutput(OutputPart):
    """The repair, or how far the search for one went."""

    repair: RepairedStep | None
    tried: Annotated[Count, Said("Changes of one step that were tried.")]
    complete: Annotated[bool, Said("Every change of one step was tried.")]
    further: Annotated[Sequence[RepairedStep], Said("Steps to change besides, in the same way.")]


class ScheduleCostOutput(OutputPart):
    """The predicted time on a topology."""

    seconds: Seconds
    bound_s: Annotated[Seconds, Said("Seconds that no run can beat.")]
    payload_bytes: PayloadBytes
    bottleneck: Annotated[str | None, Said("The busiest link.")]
    bottleneck_bytes: Annotated[Bytes | None, Said("Bytes over that link.")]
    bottleneck_busy_share: Annotated[Ratio, Said("Of the time; at most 1.")]
    critical_path: Sequence[ScheduleStep]
    approximate: bool
    devices: Annotated[Sequence[int], Said("Of each rank, by their order.", ge=0)]
    range_s: RangeSeconds
    basis: PriceBasisWord


class VerifyScheduleOutput(Output):
    """The verdict on a schedule, over all its interleavings."""

    verdict: Verdict
    violations: Sequence[ScheduleViolation]
    warnings: Sequence[str]
    schedule: CheckedSchedule
    fifo_depth: Annotated[int, Said("Messages that a connection holds.", ge=1)]
    min_fifo_depth: Annotated[
        int | None, Said("From this depth on every step gets its turn; null: none.")
    ]
    unused_messages: Annotated[
        Count | None, Said("Messages whose data no output needs; null: not counted.")
    ]
    racy_chunks: Annotated[Count, Said("Chunks accessed in no certain order.")]
    races_harmless: Annotated[bool | None, Said("null: there are none.")]
    reason: Annotated[str, Said("Why nothing is known; empty: it is.")]
    memory_rule: Annotated[
        str | None,
        Said("By which the order of data was judged; null: no packets are used."),
    ]
    runtime: Annotated[str | None, Said("That is meant; null: p2smt alone.")]
    runnable: Annotated[bool, Said("That runtime would run it.")]
    reasons: Annotated[Sequence[str], Said("Why it would not.")]
    fix: Annotated[RepairOutput | None, Said("With --fix.")] = None
    notes: Annotated[
        Sequence[str] | None, Said("What is to be said of the time, or of others.")
    ] = None
    symmetry: Annotated[
        FoldedSchedule | None, Said("Of a schedule that is told by its orbits.")
    ] = None
    cost: Annotated[ScheduleCostOutput | None, Said("With --cost.")] = None


# `verify --json` of a symbolic schedule (``--upto``), or of a program.


class InstanceViolation(KindAndPlace):
    """What is wrong at one size."""

    message: str


class CheckedInstance(OutputPart):
    """One size, checked in every interleaving."""

    parameters: Mapping[str, int]
    ranks: Annotated[int, Said(ge=1)]
    verdict: Verdict
    min_fifo_depth: int | None
    violations: Sequence[InstanceViolation]


class VerifyFamilyOutput(Output):
    """The verdict on a schedule at many sizes."""

    verdict: Verdict
    claims: Annotated[Sequence[str], Said("What is proved, and for which sizes.")]
    all_sizes: Annotated[bool, Said("Proved for every size, beyond those checked.")]
    instances: Sequence[CheckedInstance]


# `verify --json` of the certificate of a bound.


Exact = Annotated[
    str, Said(pattern=r"^(0|[1-9][0-9]*)(/[1-9][0-9]*)?$", description="A fraction: 7/24.")
]


class ClaimVerdict(OutputPart):
    """What a file claims of schedules on a fabric, and whether it is so."""

    verdict: Literal["valid", "invalid"]
    violations: Sequence[str]
    claim: Annotated[str, Said("What it claims, in words.")]
    collective: BoundedCollective
    root: Annotated[Rank | None, Said("null: the collective has none.")]
    fabric: Annotated[str, Said("Its name in the file.")]
    ranks: Count


class VerifyCertificateOutput(ClaimVerdict, Output):
    """The verdict on the certificate of a bound."""

    steps: Annotated[int | None, Said("null: any number of steps.", ge=1)]
    bound_kind: BoundKind
    bound: Annotated[Exact, Said("What is claimed.")]
    proved: Annotated[Exact | None, Said("What the prices prove; null: nothing.")]
    generators: Count
    checked: Annotated[Sequence[str], Said("What was held against the certificate.")]
    not_checked: Annotated[Sequence[str], Said("What nothing has looked at.")]


class VerifySizesOutput(Output):
    """The verdict on the certificate of a range of payloads."""

    verdict: Literal["valid", "invalid"]
    violations: Sequence[str]
    collective: BoundedCollective
    root: Annotated[Rank | None, Said("null: the collective has none.")]
    fabric: Annotated[str, Said("Its name in the file.")]
    ranks: Count
    from_bytes: PayloadBytes
    to_bytes: PayloadBytes
    alpha_s: Annotated[Exact, Said("Seconds of a step.")]
    beta_s: Annotated[Exact, Said("Seconds of a byte where R/C is 1.")]
    ratio: Annotated[Exact, Said("The largest of time and bound, as claimed.")]
    schedules: Annotated[Sequence[str], Said("Steps, rounds and chunks of each.")]
    not_checked: Annotated[Sequence[str], Said("What nothing has looked at.")]


class VerifyForestOutput(ClaimVerdict, Output):
    """The verdict on a forest."""

    time: Annotated[Exact, Said("Seconds for a byte of each root, or rounds for a chunk.")]
    bound: Annotated[Exact, Said("What no forest is below.")]
    optimal: Annotated[bool, Said("The time is the bound.")]
    trees: Count
    symmetries: Annotated[Count, Said("Generators in the file.")]
    compared: Annotated[str | None, Said("The fabric it was held against; null: none.")]


# JSON of `convert`.


class ConvertedFile(OutputPart):
    """A schedule that was written."""

    file: str
    steps: Count
    ranks: Count
    group: Annotated[int | None, Said("Of a plan's request: which group, from 1; null: all.")]


class ConvertOutput(Output):
    """A schedule in another format."""

    files: Sequence[ConvertedFile]
    plan_s: Annotated[Seconds | None, Said("Of a plan: the request's time there, if known.")]
    lost: Annotated[Sequence[str], Said("What is not about what it computes, and not kept.")]
