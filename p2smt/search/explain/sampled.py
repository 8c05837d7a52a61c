"""What steps cost as one number grows, by the numeric model: at some factors, for any costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import SEARCHED, ChangedNumber
from p2smt.search.explain.numbers import changed_bytes, changed_topology
from p2smt.search.explain.tables import ProgramTable, StepKey

STEPS = 12
"""So many factors are tried from 1 to the largest, each as many times the one before."""


@dataclass(frozen=True, slots=True)
class SampledCosts:
    """Costs of steps of a problem, whatever chooses among algorithms."""

    problem: Problem
    _clusters: dict[tuple[ChangedNumber, float], Topology] = field(default_factory=dict)

    def points(self) -> FloatArray:
        """The factors that are tried, from 1 on."""
        return np.asarray(SEARCHED ** (np.arange(STEPS + 1) / STEPS))

    def step_s(self, number: ChangedNumber, table: ProgramTable, xs: FloatArray) -> FloatArray:
        """Times of the steps of a table where the number is multiplied by x (a bandwidth: divided).

        Shape (keys, points).
        """
        rows = [[self._second(number, table, key, float(x)) for x in xs] for key in table.keys]
        return np.array(rows).reshape(len(rows), len(xs))

    def _second(self, number: ChangedNumber, table: ProgramTable, key: StepKey, x: float) -> float:
        topology, request = self.problem.topology, self.problem.requests[table.number]
        payload_bytes = request.payload_bytes
        if number.what == "payload" and number.index == table.number:
            payload_bytes = changed_bytes(payload_bytes, x)
        times = 1 / x if number.what == "bandwidth" else x
        footprint = _footprint(topology, table.scene.digits, key)
        model = step_model(self._cluster(number, times), footprint, key.operation)
        return model.time(payload_bytes * float(key.share)).seconds

    def _cluster(self, number: ChangedNumber, times: float) -> Topology:
        if (number, times) not in self._clusters:
            found = changed_topology(self.problem.topology, number, times)
            self._clusters[number, times] = found
        return self._clusters[number, times]


@lru_cache(maxsize=16_384)
def _footprint(topology: Topology, digits: tuple[Digits, ...], key: StepKey) -> Footprint:
    """What the groups of a step load: no rate plays a part."""
    if key.operation is RequestKind.SEND:
        return send_footprint(topology, digits)
    return regular_footprint(topology, digits, key.grouping)
