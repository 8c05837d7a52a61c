"""``calibrate --json``, of links and of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from p2smt.collectives.names import Collective
from p2smt.report.outputs.shape import (
    Count,
    Error,
    Output,
    OutputPart,
    PayloadBytes,
    Said,
    Seconds,
    TopologyData,
)

HeldOut = Annotated[
    Sequence[Error | None], Said("Relative errors on held-out times: 1, 2, 3 pieces.")
]


MeasuredOperation = Collective | Literal["all-to-all", "send"]
"""Operations that can be measured."""


class Outlier(OutputPart):
    """A time that was left out of the fit, or that it does not explain."""

    payload_bytes: PayloadBytes
    measured_s: Seconds
    predicted_s: Seconds
    source: Annotated[str, Said("File and line, or run.")]


class FittedCollective(OutputPart):
    """How well the calibrated model meets the times of one collective."""

    collective: MeasuredOperation
    own_pieces: Annotated[bool, Said("It has pieces of its own.")]
    times: Annotated[Count, Said("How many times were measured.")]
    median_error: Error
    max_error: Error
    held_out_errors: HeldOut
    outliers: Sequence[Outlier]


class FittedLevel(OutputPart):
    """A level of the topology."""

    level: str
    measured: bool
    link_held_out_errors: HeldOut | None
    collectives: Sequence[FittedCollective]


QuantityWord = Literal["efficiency", "hop", "call"]


class LibraryConstant(OutputPart):
    """A constant of a library on the topology."""

    level: Annotated[str | None, Said("null: of the whole topology.")]
    quantity: QuantityWord
    name: Annotated[str, Said("Algorithm, family and protocol, or operation.")]
    value: Annotated[float, Said("Part of the nominal bandwidth; seconds of a hop or call.", ge=0)]
    fitted: Annotated[bool, Said("false: the times do not determine it, and it was kept.")]
    before: Annotated[float, Said("What the topology, or its library, had.", ge=0)]


class PredictedRow(Outlier):
    """A time of a table with what is predicted for it."""

    left_out_s: Annotated[
        Seconds | None, Said("Predicted by a fit to the other tables; null: there is none.")
    ]


class MeasuredTable(OutputPart):
    """How well one table is met; errors are max(predicted / measured, measured / predicted) - 1."""

    source: str
    operation: MeasuredOperation
    times: Annotated[Count, Said("Rows of the table.")]
    median_error: Error
    max_error: Error
    left_out_error: Annotated[
        Error | None, Said("The median by a fit to the other tables; null: none.")
    ]
    left_out: Annotated[bool, Said("Such a fit was made.")]
    rows: Annotated[Sequence[PredictedRow], Said("In the order of the file.")]


class CalibrateOutput(Output):
    """The topology with links fitted to measured times."""

    topology: TopologyData
    levels: Annotated[Sequence[FittedLevel], Said("Without a library: outermost first.")]
    constants: Annotated[Sequence[LibraryConstant], Said("With a library.")]
    tables: Annotated[Sequence[MeasuredTable], Said("In the order of the files.")]
    unexplained: Annotated[
        Sequence[Outlier], Said("Times far from what a library's constants predict.")
    ]
    unexplained_beyond: Annotated[
        float, Said("Off by more than this factor; 1 without a library.", ge=1)
    ]
    warnings: Annotated[
        Sequence[str], Said("Tables that are met badly or disagree, and implausible rates.")
    ]
    wrong_results: Annotated[Sequence[str], Said("Rows left out: wrong results.")]
    unmeasured: Annotated[
        Sequence[str] | None,
        Said("Where all tables are of all-reduce: what a plan rests on besides."),
    ] = None


PeakPart = Annotated[float, Said(gt=0, le=1, description="Part of the peak.")]


class FittedRun(OutputPart):
    """A measured run beside its predictions."""

    run: str
    group: str
    measured_s: Seconds
    predicted_s: Annotated[float, Said("By the constant of all runs.", ge=0)]
    left_out_s: Annotated[float, Said("By that of the other groups.", ge=0)]
    left_out_fraction: PeakPart


class FittedEfficiency(OutputPart):
    """The constant of a framework on a family of devices; errors with groups left out."""

    name: str
    device: str
    framework: str
    fraction: PeakPart
    layer_s: Annotated[float, Said("Launches of a layer, not fitted.", ge=0)]
    groups: Sequence[str]
    mean_error: Error
    median_error: Error
    max_error: Error
    runs: Sequence[FittedRun]
    cannot_tell: Annotated[
        str | None, Said("Of one group, of which runs were left out: what they say nothing of.")
    ] = None


class RefusedRun(OutputPart):
    """A row that is no run the model predicts."""

    run: str
    why: str


class CalibrateRunsOutput(Output):
    """Constants fitted to measured training runs."""

    efficiencies: Sequence[FittedEfficiency]
    not_counted: Annotated[Sequence[str], Said("Runs published without mbs, vpp or dp.")]
    without_framework: Annotated[
        Sequence[str], Said("Runs that name no framework: taken as Megatron's.")
    ]
    refused: Sequence[RefusedRun]
