"""`calibrate --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel
from p2smt.collectives.names import Collective
from p2smt.report.schemas.base import Count, Error, Output, OutputPart, PayloadBytes, Seconds

HeldOut = Annotated[
    list[Error | None], Field(description="Relative errors on held-out times: 1, 2, 3 pieces.")
]


class Outlier(OutputPart):
    """A time that was left out of the fit."""

    payload_bytes: PayloadBytes
    measured_s: Seconds
    predicted_s: Seconds
    source: Annotated[str, Field(description="File and line, or run.")]


class FittedCollective(OutputPart):
    """How well the calibrated model meets the times of one collective."""

    collective: Collective
    own_pieces: Annotated[bool, Field(description="It has pieces of its own.")]
    times: Annotated[Count, Field(description="How many times were measured.")]
    median_error: Error
    max_error: Error
    held_out_errors: HeldOut
    outliers: list[Outlier]


class FittedLevel(OutputPart):
    """A level of the topology."""

    level: str
    measured: bool
    link_held_out_errors: HeldOut | None
    collectives: list[FittedCollective]


class CalibrateOutput(Output):
    """The topology with links fitted to measured times."""

    topology: TopologyModel
    levels: Annotated[list[FittedLevel], Field(description="Outermost first.")]
    wrong_results: Annotated[list[str], Field(description="Rows left out: wrong results.")]
