"""`placements --json` and `programs --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Count, Output, OutputPart, RankMatrix, Seconds, SizedName
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


class ListedProgram(OutputPart):
    """A program of a list of all."""

    text: str
    instructions: list[str]


class TimedProgram(ListedProgram):
    """A program of a list of the best."""

    seconds: Annotated[Seconds | None, Field(description="Seconds; null: no size was given.")]
    checked: Annotated[str, Field(description="What it was simulated on.")]


class _Programs(Output):
    status: Status
    count: Count
    count_by_length: Annotated[
        list[Count], Field(description="How many have one instruction, two, and so on.")
    ]


class ProgramsOutput(_Programs):
    """Every valid reduction program."""

    checked: Annotated[str, Field(description="What the programs were simulated on.")]
    programs: list[ListedProgram]


class BestProgramsOutput(_Programs):
    """The best programs (``--top``): by time, or without a size by length."""

    programs: list[TimedProgram]
