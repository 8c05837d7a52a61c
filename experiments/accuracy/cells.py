"""Predicted beside measured: one cell per row of a table.

The prediction is the cost model's time of one collective over the table's ranks in device order,
on the preset as it is: nothing is fitted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.tables.tables import Published
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import step_model
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.loads.level_use import Footprint
from p2smt.cost.step_time import StepCostModel, StepTime

KIB, MIB = 2**10, 2**20
Predictor = Callable[[int], StepTime]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """One size of a table: ``size_bytes`` per rank, times in seconds.

    ``bound_s`` is the least time that the preset's nominal links allow.
    """

    size_bytes: int
    measured_s: float
    predicted_s: float
    algorithm: str
    protocol: str
    bound_s: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted_s / self.measured_s

    @property
    def error(self) -> float:
        """abs(predicted / measured - 1)."""
        return abs(self.ratio - 1)

    @property
    def factor(self) -> float:
        """How many times too long or too short the prediction is: at least 1."""
        return max(self.ratio, 1 / self.ratio)


def cells_of(table: Published, topology: Topology) -> tuple[Cell, ...]:
    """The cells of a table, in its order."""
    predict = predictor(topology, table.ranks, RequestKind(table.collective))
    found = []
    for size, seconds in table.rows:
        time = predict(size)
        bound = bound_s(topology, table.ranks, RequestKind(table.collective), size)
        found.append(Cell(size, seconds, time.seconds, time.algorithm, time.protocol, bound))
    return tuple(found)


def predictor(topology: Topology, ranks: int, kind: RequestKind) -> Predictor:
    """The time of a collective over the first so many devices, by payload."""
    return step_model_of(topology, ranks, kind).time


def step_model_of(topology: Topology, ranks: int, kind: RequestKind) -> StepCostModel:
    """The ways to run a collective over the first so many devices, and who chooses.

    Of a send, each device sends to the next.
    """
    return step_model(topology, footprint_of(topology, ranks, kind), operation_of(kind))


def footprint_of(topology: Topology, ranks: int, kind: RequestKind) -> Footprint:
    """How the first so many devices lie: no rate of a link matters to it."""
    devices = np.arange(ranks)
    if kind is RequestKind.SEND:
        return explicit_send(topology, devices[:-1], devices[1:])
    return explicit_footprint(topology, devices[np.newaxis])


def operation_of(kind: RequestKind) -> Operation:
    """What runs for a request: one collective, or an exchange between peers."""
    if kind is RequestKind.SEND:
        return kind
    return DIRECT.get(kind) or RequestKind.ALL_TO_ALL


def bound_s(topology: Topology, ranks: int, kind: RequestKind, size: int) -> float:
    """The link-level bound of a request over the first so many devices."""
    return link_bound_s(topology, digits_of_first(topology, ranks), kind, size)


def digits_of_first(topology: Topology, ranks: int) -> tuple[Digits, ...]:
    """The digits, outermost first, of an axis over the first so many devices.

    Raises:
        ValueError: they are not whole entities, or neighbours in one.
    """
    found: list[Digits] = []
    rest = ranks
    for size in reversed(topology.sizes):
        here = min(size, rest)
        if rest % here:
            raise ValueError(f"{ranks} ranks do not fill {topology.name} {topology.sizes}")
        rest //= here
        found.insert(0, ((here, 1),) if here > 1 else ())
    if rest > 1:
        raise ValueError(f"{topology.name} has fewer than {ranks} devices")
    return tuple(found)
