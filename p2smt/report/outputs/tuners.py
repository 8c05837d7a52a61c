"""``verify FILE --json`` of a file that tells a library which algorithm to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from p2smt.report.outputs.shape import Count, Output, OutputPart, Said


class TunerFault(OutputPart):
    """Something that nobody can have meant."""

    name: Annotated[str, Said("Short, such as gap.")]
    line: Annotated[int, Said("From 1; 0: of the whole file.", ge=0)]
    what: str


class TunerRow(OutputPart):
    """What runs for the sizes from first to last, both included."""

    collective: str
    comm: Annotated[str, Said("Nodes x ranks per node.")]
    first: Annotated[Count, Said("Bytes of the whole vector.")]
    last: Annotated[Count, Said("Bytes of the whole vector.")]
    algorithm: Annotated[str | None, Said("null: the library's own choice.")]
    protocol: Annotated[str | None, Said("null: the library's own choice.")]
    settings: Annotated[str, Said("Numbers that go with it, such as channels=1.")]


class VerifyTunerOutput(Output):
    """What a file makes its library do."""

    verdict: Literal["right", "faults"]
    format: str
    faults: Sequence[TunerFault]
    notes: Sequence[str]
    table: Sequence[TunerRow]
