"""``transfer --json``, the verdict on the plan of a transfer, and what running it gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from p2smt.report.outputs.runs import HowPlanRun, MeasuredTimes, RanOn
from p2smt.report.outputs.shape import (
    Bytes,
    Count,
    Gap,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    Said,
    Seconds,
)
from p2smt.report.outputs.solve import WhatChecked
from p2smt.result import Status


class TransferLevelEntry(OutputPart):
    """What messages load the ports of a level with."""

    level: Annotated[str, Said("The level's name.")]
    bytes: Annotated[Bytes, Said("Of all messages that cross it.")]
    seconds: Annotated[Seconds, Said("Of its busiest port.")]
    port: Annotated[str, Said("That port.")]


class ComparedRuleEntry(OutputPart):
    """What the rule of another tool takes for the same transfer, written anew: no tool was run."""

    rule: Annotated[str, Said("What it is called.")]
    seconds: Annotated[Seconds, Said("Of the bytes, at the busiest port of each of its steps.")]
    times_bound: Annotated[float | None, Said("Over the bound; null: nothing is proved.", ge=0)]
    port: Annotated[str, Said("The busiest one of its longest step; empty: nothing moves.")]


class TransferOutput(Output):
    """The plan of a transfer from one mesh to another, its time and its proof."""

    status: Annotated[
        Literal[Status.OPTIMAL, Status.FEASIBLE], Said("optimal: by the certificate alone.")
    ]
    total_s: Annotated[Seconds, Said("Of the bytes, with latencies and filling.")]
    range_s: Annotated[RangeSeconds, Said("Of that.")]
    basis: PriceBasisWord
    bandwidth_s: Annotated[Seconds, Said("Of the bytes alone, at the busiest port.")]
    fill_s: Annotated[Seconds, Said("What latencies and the filling of the longest chain add.")]
    bound_s: Annotated[Seconds, Said("No plan moves the bytes faster; 0: nothing is proved.")]
    relayed_bound_s: Annotated[
        Seconds | None,
        Said("Nor do plans that borrow the cards of neighbours take less; null: not derived."),
    ]
    gap: Annotated[Gap | None, Said("Of the bytes' time over its bound; null: nothing is proved.")]
    binding: Annotated[str, Said("Where the bound binds; empty: nothing moves, or nothing is.")]
    nominal: Annotated[bool, Said("At nominal rates; false: at what sends reach.")]
    tensors: Annotated[int, Said("How many there are.", ge=1)]
    classes: Annotated[int, Said("Of elements with equal holders and equal needers.", ge=0)]
    pieces: Annotated[int, Said("That classes are cut into, each with its tree.", ge=0)]
    messages: Annotated[int, Said("Edges of all trees.", ge=0)]
    sent_bytes: Annotated[PayloadBytes, Said("Of all messages.")]
    kept_bytes: Annotated[PayloadBytes, Said("What devices have before and after, summed up.")]
    receives_bytes: Annotated[PayloadBytes, Said("The most that a device gets.")]
    receivers: Annotated[int, Said("Devices that get something.", ge=0)]
    buckets: Annotated[Count, Said("Rounds, each with the same part of every piece.")]
    rounded: Annotated[bool, Said("Optimal in one bucket: the gap is of whole elements alone.")]
    staging_bytes: Annotated[PayloadBytes, Said("The most that a device stages in one of them.")]
    levels: Annotated[Sequence[TransferLevelEntry], Said("Those that messages cross.")]
    relayed: Annotated[bool, Said("Devices may pass on what they neither hold nor need.")]
    compared: Annotated[Sequence[ComparedRuleEntry], Said("What was asked to be compared.")]


class VerifyTransferOutput(WhatChecked, Output):
    """The verdict on the plan of a transfer."""

    verdict: Literal["valid", "invalid"]
    faults: Annotated[Sequence[str], Said("What is wrong.")]
    bandwidth_s: Annotated[Seconds | None, Said("Of the bytes, anew; null: they do not arrive.")]
    bound_s: Annotated[Seconds | None, Said("What the prices prove; null: nothing was derived.")]
    gap: Annotated[Gap | None, Said("Of the time over the bound; null: nothing is proved.")]
    classes: Annotated[Count | None, Said("null: nothing moves, or layouts are none.")]


class CheckedTransferRun(OutputPart):
    """A transfer as it was run, and whether its result is right."""

    verified: Annotated[bool, Said("Every rank has the right result, staged as planned.")]
    tensors: Annotated[int, Said("How many there are.", ge=1)]
    item_bytes: Annotated[int, Said("Of an element.", ge=1)]
    buckets: Annotated[Count, Said("In which it was sent.")]
    messages: Annotated[int, Said("Edges of all pieces.", ge=0)]
    sent_bytes: Annotated[PayloadBytes, Said("Of all messages.")]
    compared: Annotated[Count, Said("Values that receivers have in the end, all compared.")]
    errors: Annotated[Sequence[str], Said("What is wrong, of each rank the first.")]
    repetitions_checked: Annotated[Count, Said("Repetitions with checked results.")]
    predicted_s: Annotated[Seconds, Said("The plan's, on the cluster that it is for.")]
    staged_bytes: Annotated[
        PayloadBytes | None, Said("The most that a rank staged; null: not measured.")
    ]
    staging_bytes: Annotated[PayloadBytes, Said("The same by the plan.")]
    options: HowPlanRun


class RunTransferOutput(RanOn, MeasuredTimes, CheckedTransferRun, Output):
    """What running a transfer gave."""
