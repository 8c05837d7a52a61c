"""Answers side by side: ``compare --json`` of two files, and what is run now beside the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from p2smt.report.outputs.changed_numbers import GainRatio
from p2smt.report.outputs.shape import (
    Count,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    RankMatrix,
    Ratio,
    Said,
    Seconds,
)
from p2smt.result import Status


class ComparedAnswer(OutputPart):
    """An answer as its file has it."""

    path: str
    asked: Annotated[Mapping[str, str], Said("What it answers, by name, in words.")]
    answer: Annotated[str, Said("A strategy, a matrix, or steps.")]
    seconds: Annotated[Seconds, Said("Of an iteration, or of all steps.")]
    range_s: RangeSeconds
    parts: Annotated[Mapping[str, Seconds], Said("What the time is made of.")]
    memory_bytes: Annotated[PayloadBytes, Said("That a device needs.")]
    status: Annotated[str | None, Said("null: nothing was searched, or the file does not say.")]


class CompareAnswersOutput(Output):
    """Two answers of a kind side by side."""

    kind: Annotated[str, Said("training, placement or redistribution.")]
    gain: Annotated[
        float,
        Said(
            ge=-1,
            description="By how much more the second does in a second (tokens of a training), as a "
            "part of what the first does.",
        ),
    ]
    gain_range: Annotated[
        Sequence[float] | None,
        Said("Low and high, errors of both having nothing in common; null: a range lacks."),
    ]
    sure: Annotated[bool, Said("The gain has one sign in all of its range.")]
    unlike: Annotated[Sequence[str], Said("Names of what they do not ask alike.")]
    first: ComparedAnswer
    second: ComparedAnswer


# `plan --compare --json`.


_Strategy = Annotated[str, Said("As --strategy takes it.")]
_GainRange = Annotated[
    Sequence[GainRatio] | None,
    Said("Low and high: links as fast or as slow as they may be, alike before and after."),
]


class ComparedFigures(OutputPart):
    """A strategy in an order of ranks; `estimate --json` has all of it."""

    strategy: _Strategy
    global_batch: Count
    devices: Count
    tokens_per_s: Annotated[Ratio, Said("Of all devices.")]
    iteration_s: Seconds
    range_s: Annotated[RangeSeconds, Said("Of an iteration, by errors of constants and links.")]
    basis: PriceBasisWord
    parts: Annotated[
        Mapping[str, Seconds],
        Said("compute, bubble, what shows of each axis, optimizer: they sum up."),
    ]
    memory_bytes: Annotated[PayloadBytes, Said("That a device needs.")]
    fits: bool
    matrix: Annotated[
        RankMatrix | None, Said("null: ranks lie on named hosts, or as no matrix expresses.")
    ]
    expert_matrix: Annotated[RankMatrix | None, Said("Of a mixture; null: of others.")]
    host_order: Annotated[
        Sequence[str] | None,
        Said(
            "Named hosts in the order of their ranks, each with a node's; null: a matrix says it."
        ),
    ]
    idle: Annotated[Sequence[str] | None, Said("Of the job's hosts those without ranks.")]


class ComparedChange(OutputPart):
    """A valid strategy that differs from yours in one field, launched alike."""

    change: Annotated[str, Said("Such as tp 8 -> 4; dp follows.")]
    strategy: _Strategy
    global_batch: Count
    iteration_s: Seconds
    memory_bytes: Annotated[PayloadBytes, Said("That a device needs.")]
    gain: Annotated[GainRatio | None, Said("In tokens a second; null: yours has no time.")]


class MeasuredLike(OutputPart):
    """Of what is as good as the best what is nearest to a measured run."""

    figures: ComparedFigures
    run: Annotated[str, Said("The measured run.")]
    distance: Annotated[Ratio, Said("In doublings of degrees and switches that differ.")]


class ComparisonFields(OutputPart):
    """What is run now, the same in its best order, and the best."""

    launched: Annotated[str, Said("The axes over which ranks are numbered, the fastest first.")]
    strategy: Annotated[str, Said("Of yours, as --strategy takes it.")]
    yours: Annotated[ComparedFigures | None, Said("null: it breaks a rule.")]
    broken: Annotated[str | None, Said("The rule, in words.")]
    ordered: Annotated[
        ComparedFigures | None, Said("Yours in its best order; null: that was not searched for.")
    ]
    ordered_status: Annotated[Status, Said("optimal: no order is faster.")]
    ordered_reason: Annotated[str | None, Said("Why there is none, in words.")]
    best: ComparedFigures | None
    beyond: Annotated[bool, Said("Yours in its best order is faster than all that was searched.")]
    measured: MeasuredLike | None
    gain: Annotated[GainRatio | None, Said("Of the best over yours in tokens a second.")]
    gain_range: _GainRange
    gain_order: Annotated[GainRatio | None, Said("What of it the order of ranks gains alone.")]
    gain_order_range: _GainRange
    gain_degrees: Annotated[float | None, Said("The rest of it: both parts sum up to the gain.")]
    gain_per_device: Annotated[
        GainRatio | None,
        Said("In tokens a second of a device; null: the best has as many devices as yours."),
    ]
    inside_error: Annotated[
        bool, Said("Yours takes no longer than the best may by the error of the model.")
    ]
    changes: Annotated[
        Sequence[ComparedChange],
        Said("Single ones that are faster than yours; where yours cannot run, those that can."),
    ]
    unsearched: Annotated[
        Sequence[str], Said("Fields of yours that are not searched for, and that the best lacks.")
    ]
    assumed: Annotated[
        Sequence[str],
        Said("What the text of yours does not say and its time depends on, such as mbs=1."),
    ]
