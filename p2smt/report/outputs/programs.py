"""``programs --json``: every valid program, or the best ones, of a request or of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from p2smt.collectives.names import RequestKind
from p2smt.programs.program import ProofBasis
from p2smt.report.outputs.shape import (
    Count,
    Output,
    OutputPart,
    PriceBasisWord,
    RangeSeconds,
    Said,
    Seconds,
)
from p2smt.result import Status


class NamedAlgorithm(OutputPart):
    """The cheapest way that a library has for a collective, where its rule takes another."""

    algorithm: str
    protocol: str
    seconds: Seconds
    settings: Annotated[
        str | None,
        Said("Variables that name it, such as NCCL_ALGO=Ring; null: there are none."),
    ]
    chosen_algorithm: Annotated[str, Said("What its rule takes.")]
    chosen_protocol: str
    chosen_s: Annotated[Seconds, Said("Seconds of one execution by that.")]


class ProgramEntry(OutputPart):
    """A program of a list of all."""

    text: str
    instructions: Sequence[str]


class TimedProgramEntry(ProgramEntry):
    """A program of a list of the best."""

    seconds: Annotated[Seconds | None, Said("Seconds; null: no size was given.")]
    checked: Annotated[str, Said("What it was simulated on.")]
    range_s: RangeSeconds
    basis: PriceBasisWord


class CountedPrograms(OutputPart):
    status: Status
    basis: Annotated[Sequence[ProofBasis], Said("Why no program is missed; empty: some may be.")]
    count: Count
    count_by_length: Annotated[
        Sequence[Count], Said("How many have one instruction, two, and so on.")
    ]


class EveryProgram(CountedPrograms):
    """Every valid program."""

    checked: Annotated[str, Said("What the programs were simulated on.")]
    programs: Sequence[ProgramEntry]


class BestPrograms(CountedPrograms):
    """The best programs: by time, or without a size by length.

    By time they stand beside the single collective of the request.
    """

    single_collective_s: Annotated[
        Seconds | None, Said("Seconds, as the library chooses it; null: not priced.")
    ]
    range_s: RangeSeconds
    range_basis: Annotated[PriceBasisWord, Said("What that time and its range rest on.")]
    program_gain: Annotated[
        float | None,
        Said("That over the best program's time, less one; null: no gain.", ge=0),
    ]
    gain_by_choice: Annotated[
        float | None,
        Said(
            ge=0,
            description="The same of naming an algorithm without a program; null: no gain.",
        ),
    ]
    named_algorithm: Annotated[
        NamedAlgorithm | None, Said("That one; null: the library chooses it anyway.")
    ]
    programs: Sequence[TimedProgramEntry]


class _WithRequest(OutputPart):
    kind: RequestKind
    axes: Sequence[str]


class EveryProgramOfRequest(EveryProgram, _WithRequest):
    """Every valid program of one of several requests."""


class BestProgramsOfRequest(BestPrograms, _WithRequest):
    """The best programs of one of several requests."""


class EveryProgramOutput(EveryProgram, Output):
    """Of one request, or of factors."""


class BestProgramsOutput(BestPrograms, Output):
    """The same with --top."""


class RequestProgramsOutput(Output):
    """Of several requests."""

    status: Annotated[Status, Said("complete: every list is.")]
    requests: Sequence[EveryProgramOfRequest] | Sequence[BestProgramsOfRequest]


ProgramsOutput = EveryProgramOutput | BestProgramsOutput | RequestProgramsOutput
"""Which of these it is follows from the options."""
