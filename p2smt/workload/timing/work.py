"""What strategies take without communication, and what their communication can hide under."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.device import Device
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.workload.batch import Batch
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.formulas.quantities import Quantities, quantities, with_seconds
from p2smt.workload.formulas.stages import Stages
from p2smt.workload.formulas.table import formula_table
from p2smt.workload.timing.request_columns import RequestColumn, request_columns
from p2smt.workload.transformer import Transformer

MEMORY = ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
"""Rows that add up to the memory of a stage."""


@dataclass(frozen=True, slots=True)
class CoveredRequest:
    """A request with the seconds that it may hide under, of shape (strategies, stages).

    They are those of a micro-batch, or for one that is ``once`` in an iteration those on the first
    stage.  ``edge``: calls of an iteration that have nothing to hide under.
    """

    column: RequestColumn
    cover_s: FloatArray
    edge: int


@dataclass(frozen=True, slots=True)
class StrategyWork:
    """Work of strategies: arrays of shape (strategies,) or (strategies, stages).

    ``compute_s``: a micro-batch forward and backward on a stage, without communication;
    ``memory_parts``: bytes by stage, in the order of ``MEMORY``.  ``flops``: of the model in an
    iteration.
    """

    micro_batches: FloatArray
    vpp: IntArray
    stages: Stages
    compute_s: FloatArray
    backward_s: FloatArray
    optimizer_s: FloatArray
    memory_parts: tuple[FloatArray, ...]
    requests: tuple[CoveredRequest, ...]
    flops: float

    @property
    def memory_bytes(self) -> FloatArray:
        """Of the stage that needs most: shape (strategies,).

        Each part is rounded up to whole bytes by itself, as it is in a prediction.
        """
        worst = np.sum(self.memory_parts, axis=0).argmax(axis=1)[:, None]
        whole = np.ceil(self.memory_parts).sum(axis=0)
        return np.asarray(np.take_along_axis(whole, worst, axis=1)[:, 0])

    def take(self, rows: IntArray | BoolArray) -> StrategyWork:
        """The work of some of the strategies, by index or by mask."""
        return replace(
            self,
            micro_batches=self.micro_batches[rows],
            vpp=self.vpp[rows],
            stages=self.stages.take(rows),
            compute_s=self.compute_s[rows],
            backward_s=self.backward_s[rows],
            optimizer_s=self.optimizer_s[rows],
            memory_parts=tuple(part[rows] for part in self.memory_parts),
            requests=tuple(
                replace(one, column=one.column.take(rows), cover_s=one.cover_s[rows])
                for one in self.requests
            ),
        )


def work(
    model: Transformer,
    batch: Batch,
    columns: StrategyColumns,
    device: Device,
    efficiency: Efficiency,
) -> StrategyWork:
    """The work of strategies on a device.

    Raises:
        InputError: a split does not fit the model, or the device has no peak for a data type.
    """
    counted = quantities(model, batch, columns, efficiency.framework)
    timed = with_seconds(counted, columns, device, efficiency)
    backward_s = timed.of_stage("stage_backward_s")
    return StrategyWork(
        micro_batches=timed.of_strategy("micro_batches"),
        vpp=columns.vpp,
        stages=timed.stages,
        compute_s=timed.of_stage("stage_forward_s") + backward_s,
        backward_s=backward_s,
        optimizer_s=np.asarray(timed.of_stage("optimizer_s").max(axis=1)),
        memory_parts=tuple(timed.of_stage(name) for name in MEMORY),
        requests=_covered(timed, columns),
        flops=float(timed.values["model_flops"]),
    )


def _covered(timed: Quantities, columns: StrategyColumns) -> tuple[CoveredRequest, ...]:
    sent = request_columns(timed, columns)
    return tuple(
        CoveredRequest(column, timed.of_stage(row.row("cover_s").name), row.edge)
        for row, column in zip(formula_table().traffic, sent, strict=True)
    )
