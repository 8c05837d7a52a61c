"""The requests of strategies, for arrays of strategies or for one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.workload.batch import Batch
from p2smt.workload.efficiency import Framework
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.formulas.quantities import Quantities, quantities
from p2smt.workload.formulas.table import formula_table
from p2smt.workload.requests import AxisRequest, Cover
from p2smt.workload.strategy import AXES, Strategy
from p2smt.workload.transformer import Transformer


@dataclass(frozen=True, slots=True)
class RequestColumn:
    """One request of every strategy.

    ``payload_bytes``: shape (strategies,).  ``calls``: for a micro-batch of a stage, or in an
    iteration where it is ``once``: shape (strategies, stages), 0 where its axes have one rank.
    ``part`` of its time may hide (same shape).  ``axes`` are those that it may run along: of a
    strategy, those of more than one rank.
    """

    name: str
    kind: RequestKind
    axes: tuple[str, ...]
    payload_bytes: IntArray
    calls: FloatArray
    part: FloatArray
    once: bool
    cover: Cover

    def most_calls(self, micro_batches: FloatArray) -> FloatArray:
        """Calls in an iteration on the stage with most: shape (strategies,)."""
        most = np.asarray(self.calls.max(axis=1))
        return most if self.once else most * micro_batches

    def take(self, rows: IntArray | BoolArray) -> RequestColumn:
        """That of some of the strategies, by index or by mask."""
        return replace(
            self,
            payload_bytes=self.payload_bytes[rows],
            calls=self.calls[rows],
            part=self.part[rows],
        )


def request_columns(counted: Quantities, columns: StrategyColumns) -> tuple[RequestColumn, ...]:
    """Every request that a strategy may have, in the order of the table."""
    found = []
    for row in formula_table().traffic:
        ranks = np.prod([getattr(columns, axis) for axis in row.axes], axis=0)
        payload = counted.of_stage(row.row("payload").name).max(axis=1)
        calls = counted.of_stage(row.row("calls").name) * (ranks > 1)[:, None]
        found.append(
            RequestColumn(
                row.name,
                row.kind,
                row.axes,
                np.ceil(payload).astype(np.int64),
                calls,
                counted.of_stage(row.row("part").name),
                row.once,
                row.cover,
            )
        )
    return tuple(found)


def axis_requests(
    model: Transformer, batch: Batch, strategy: Strategy, framework: Framework
) -> tuple[AxisRequest, ...]:
    """Every request of a strategy, each with its calls in an iteration on the stage with most.

    That need not be one stage: the first has an embedding, the last has logits.

    Raises:
        InputError: the split does not fit the model.
    """
    columns = StrategyColumns.of((strategy,))
    counted = quantities(model, batch, columns, framework)
    micro_batches = counted.of_strategy("micro_batches")
    found = []
    for column in request_columns(counted, columns):
        calls = round(float(column.most_calls(micro_batches)[0]))
        if calls:
            found.append(axis_request(column, strategy, 0, calls))
    return tuple(found)


def axis_request(column: RequestColumn, strategy: Strategy, row: int, calls: int) -> AxisRequest:
    """The request of the strategy in that row of the column, along axes with ranks."""
    sizes = dict(zip(AXES, strategy.sizes, strict=True))
    axes = tuple(axis for axis in column.axes if sizes[axis] > 1)
    payload_bytes = int(column.payload_bytes[row])
    cover = column.cover if column.part[row].any() else Cover.NOTHING
    return AxisRequest(column.name, column.kind, axes, payload_bytes, calls, cover)
