"""``compare --json`` of two answers in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from p2smt.report.outputs.shape import (
    Output,
    OutputPart,
    PayloadBytes,
    RangeSeconds,
    Said,
    Seconds,
)


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
