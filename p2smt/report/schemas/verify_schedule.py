"""`verify --json` of a schedule."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import (
    Bytes,
    Chunk,
    Count,
    Output,
    OutputPart,
    PayloadBytes,
    Rank,
    Ratio,
    Seconds,
)
from p2smt.schedules.verify.report import Kind, Verdict


class ScheduleStep(OutputPart):
    """Where a step stands."""

    rank: Rank
    block: int
    step: Annotated[int, Field(ge=0, description="In its thread block, from 0.")]
    inner: Annotated[
        int | None, Field(description="Which operation inside that step; null: it is all of it.")
    ]
    kind: Annotated[str, Field(description="As the file writes it.")]
    line: Annotated[int | None, Field(description="In the file, from 1; null: not known.")]


class InterleavedStep(ScheduleStep):
    """An entry of an interleaving."""

    part: Annotated[str, Field(description="Which part of the step; empty: the whole.")]


class ScheduleViolation(OutputPart):
    """What is wrong with a schedule, and an interleaving that shows it."""

    kind: Kind
    rank: Rank | None
    chunk: Chunk | None
    step: Annotated[int | None, Field(description="Of the first step that it names.")]
    message: str
    steps: Annotated[list[ScheduleStep], Field(description="The steps at fault.")]
    details: list[str]
    interleaving: list[InterleavedStep]


class CheckedSchedule(OutputPart):
    """What was checked."""

    name: str
    format: str
    collective: str
    in_place: bool
    ranks: Annotated[int, Field(ge=1)]
    steps: Count


class RepairedStep(ScheduleStep):
    """The step to change, and how."""

    change: str


class RepairOutput(OutputPart):
    """The repair, or how far the search for one went."""

    repair: RepairedStep | None
    tried: Annotated[Count, Field(description="Changes of one step that were tried.")]
    complete: Annotated[bool, Field(description="Every change of one step was tried.")]


class ScheduleCostOutput(OutputPart):
    """The predicted time on a topology."""

    seconds: Seconds
    bound_s: Annotated[Seconds, Field(description="Seconds that no run can beat.")]
    payload_bytes: PayloadBytes
    bottleneck: Annotated[str | None, Field(description="The busiest link.")]
    bottleneck_bytes: Annotated[Bytes | None, Field(description="Bytes over that link.")]
    bottleneck_busy_share: Annotated[Ratio, Field(description="Of the time; at most 1.")]
    critical_path: list[ScheduleStep]
    approximate: bool


class VerifyScheduleOutput(Output):
    """The verdict on a schedule, over all its interleavings."""

    verdict: Verdict
    violations: list[ScheduleViolation]
    warnings: list[str]
    schedule: CheckedSchedule
    fifo_depth: Annotated[int, Field(ge=1, description="Messages that a connection holds.")]
    min_fifo_depth: Annotated[
        int | None, Field(description="From this depth on every step gets its turn; null: none.")
    ]
    racy_chunks: Annotated[Count, Field(description="Chunks accessed in no certain order.")]
    races_harmless: Annotated[bool | None, Field(description="null: there are none.")]
    unused_messages: Annotated[
        Count | None, Field(description="Messages whose data no output needs; null: not counted.")
    ]
    memory_rule: Annotated[
        str | None,
        Field(description="By which the order of data was judged; null: no packets are used."),
    ]
    runtime: Annotated[str | None, Field(description="That is meant; null: p2smt alone.")]
    runnable: Annotated[bool, Field(description="That runtime would run it.")]
    reasons: Annotated[list[str], Field(description="Why it would not.")]
    reason: Annotated[str, Field(description="Why nothing is known; empty: it is.")]
    fix: Annotated[RepairOutput | None, Field(description="With --fix.")] = None
    cost: Annotated[ScheduleCostOutput | None, Field(description="With --cost.")] = None
    notes: Annotated[
        list[str] | None, Field(description="With --cost, where no time can be told: why.")
    ] = None
