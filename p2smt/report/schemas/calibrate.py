"""`calibrate --json`, of links and of training runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel
from p2smt.collectives.names import Collective
from p2smt.report.schemas.orders import Count, Error, Output, OutputPart, PayloadBytes, Seconds

HeldOut = Annotated[
    list[Error | None], Field(description="Relative errors on held-out times: 1, 2, 3 pieces.")
]


MeasuredOperation = Collective | Literal["all-to-all", "send"]
"""Operations that can be measured."""


class Outlier(OutputPart):
    """A time that was left out of the fit, or that it does not explain."""

    payload_bytes: PayloadBytes
    measured_s: Seconds
    predicted_s: Seconds
    source: Annotated[str, Field(description="File and line, or run.")]


class FittedCollective(OutputPart):
    """How well the calibrated model meets the times of one collective."""

    collective: MeasuredOperation
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


class LibraryConstant(OutputPart):
    """A constant of a library on the topology."""

    level: Annotated[str | None, Field(description="null: of the whole topology.")]
    quantity: Literal["efficiency", "hop", "call"]
    name: Annotated[str, Field(description="Algorithm, family and protocol, or operation.")]
    value: Annotated[
        float, Field(ge=0, description="Part of the nominal bandwidth; seconds of a hop or call.")
    ]
    fitted: Annotated[
        bool, Field(description="false: the times do not determine it, and it was kept.")
    ]
    before: Annotated[float, Field(ge=0, description="What the topology, or its library, had.")]


class MeasuredTable(OutputPart):
    """How well one table is met; errors are max(predicted / measured, measured / predicted) - 1."""

    source: str
    operation: MeasuredOperation
    times: Annotated[Count, Field(description="Rows of the table.")]
    median_error: Error
    max_error: Error
    left_out_error: Annotated[
        Error | None, Field(description="The median by a fit to the other tables; null: none.")
    ]


class CalibrateOutput(Output):
    """The topology with links fitted to measured times."""

    topology: TopologyModel
    levels: Annotated[list[FittedLevel], Field(description="Without a library: outermost first.")]
    constants: Annotated[list[LibraryConstant], Field(description="With a library.")]
    tables: Annotated[list[MeasuredTable], Field(description="In the order of the files.")]
    unexplained: Annotated[
        list[Outlier], Field(description="Times far from what a library's constants predict.")
    ]
    unexplained_beyond: Annotated[
        float, Field(ge=1, description="Off by more than this factor; 1 without a library.")
    ]
    warnings: Annotated[
        list[str], Field(description="Tables that are met badly, and implausible rates.")
    ]
    wrong_results: Annotated[list[str], Field(description="Rows left out: wrong results.")]


PeakPart = Annotated[float, Field(gt=0, le=1, description="Part of the peak.")]


class FittedRun(OutputPart):
    """A measured run beside its predictions."""

    run: str
    group: str
    measured_s: Seconds
    predicted_s: Annotated[float, Field(ge=0, description="By the constant of all runs.")]
    left_out_s: Annotated[float, Field(ge=0, description="By that of the other groups.")]
    left_out_fraction: PeakPart


class FittedEfficiency(OutputPart):
    """The constant of a framework on a family of devices; errors with groups left out."""

    name: str
    device: str
    framework: str
    fraction: PeakPart
    layer_s: Annotated[float, Field(ge=0, description="Launches of a layer, not fitted.")]
    groups: list[str]
    mean_error: Error
    median_error: Error
    max_error: Error
    runs: list[FittedRun]


class RefusedRun(OutputPart):
    """A row that is no run the model predicts."""

    run: str
    why: str


class CalibrateRunsOutput(Output):
    """Constants fitted to measured training runs."""

    efficiencies: list[FittedEfficiency]
    not_counted: Annotated[list[str], Field(description="Runs published without mbs, vpp or dp.")]
    without_framework: Annotated[
        list[str], Field(description="Runs that name no framework: taken as Megatron's.")
    ]
    refused: list[RefusedRun]
