"""`cost --json` of a program; of a plan file it prints what `verify` does."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Output, Seconds
from p2smt.report.schemas.solve import TimedStep


class CostedStep(TimedStep):
    """A step, and how the library carries it out."""

    algorithm: str
    protocol: str


class CostOutput(Output):
    """The predicted time of a program."""

    program: str
    chunks: Annotated[int, Field(ge=1, description="In which it is pipelined; 1: it is not.")]
    seconds: Annotated[Seconds, Field(description="Seconds, of all chunks.")]
    single_collective_s: Annotated[
        Seconds, Field(description="Seconds of the one collective that answers the request.")
    ]
    physical_bound_s: Annotated[Seconds, Field(description="Seconds that the links allow at best.")]
    checked: Annotated[str, Field(description="What the program was simulated on.")]
    steps: list[CostedStep]
