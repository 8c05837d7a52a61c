"""`placements --json` and `programs --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from p2smt.collectives.names import RequestKind
from p2smt.programs.basis import ProofBasis
from p2smt.report.schemas.base import (
    Count,
    NamedAlgorithm,
    Output,
    OutputPart,
    RankMatrix,
    Seconds,
    SizedName,
)
from p2smt.result import Status


class PlacementsOutput(Output):
    """Every parallelism matrix of a cluster and its axes, each once."""

    status: Status
    count: Count
    levels: Annotated[list[SizedName], Field(description="Outermost first.")]
    axes: list[SizedName]
    placements: Annotated[
        list[RankMatrix], Field(description="A row per axis, an entry per level.")
    ]
    conflict: Annotated[
        list[str], Field(description="Restrictions that leave no answer; of an infeasible one.")
    ]
    notes: Annotated[list[str], Field(description="What else is to be known, in words.")]


class ProgramEntry(OutputPart):
    """A program of a list of all."""

    text: str
    instructions: list[str]


class TimedProgramEntry(ProgramEntry):
    """A program of a list of the best."""

    seconds: Annotated[Seconds | None, Field(description="Seconds; null: no size was given.")]
    checked: Annotated[str, Field(description="What it was simulated on.")]


class _Counted(OutputPart):
    status: Status
    basis: Annotated[
        list[ProofBasis], Field(description="Why no program is missed; empty: some may be.")
    ]
    count: Count
    count_by_length: Annotated[
        list[Count], Field(description="How many have one instruction, two, and so on.")
    ]


class EveryProgram(_Counted):
    """Every valid program."""

    checked: Annotated[str, Field(description="What the programs were simulated on.")]
    programs: list[ProgramEntry]


class BestPrograms(_Counted):
    """The best programs: by time, or without a size by length.

    By time they stand beside the single collective of the request.
    """

    programs: list[TimedProgramEntry]
    single_collective_s: Annotated[
        Seconds | None, Field(description="Seconds, as the library chooses it; null: not priced.")
    ]
    program_gain: Annotated[
        float | None,
        Field(ge=0, description="That over the best program's time, less one; null: no gain."),
    ]
    gain_by_choice: Annotated[
        float | None,
        Field(
            ge=0,
            description="The same of naming an algorithm without a program; null: no gain.",
        ),
    ]
    named_algorithm: Annotated[
        NamedAlgorithm | None, Field(description="That one; null: the library chooses it anyway.")
    ]


class _WithRequest(OutputPart):
    kind: RequestKind
    axes: list[str]


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

    status: Annotated[Status, Field(description="complete: every list is.")]
    requests: list[EveryProgramOfRequest] | list[BestProgramsOfRequest]


class ProgramsOutput(RootModel[EveryProgramOutput | BestProgramsOutput | RequestProgramsOutput]):
    """Every valid program, or the best ones: which of these it is follows from the options."""
