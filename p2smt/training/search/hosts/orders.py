"""What orders of hosts take: by the loads that they put on uplinks, for many orders at once.

The loads are those of :mod:`p2smt.search.allocation.terms`: an order takes at least what they say,
and is costed device by device before it is an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import prod

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import FloatArray, IntArray, ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.search.allocation.grids import CellGrid
from p2smt.search.allocation.local_search import bands, filled
from p2smt.search.allocation.terms import CellTerm, CellWay, Follows, edges, term
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.pipeline import StrategyWork, axis_requests, combine
from p2smt.training.strategy import AXES


@dataclass(frozen=True)
class Uplinks:
    """The switches over the hosts of a job: the entity of each place by level, and its part of the
    level's bandwidth."""

    topology: Topology

    @cached_property
    def slots(self) -> IntArray:
        """The places of all hosts, ascending: sorted by switch."""
        hosts = self.topology.hosts
        return np.array(() if hosts is None else hosts.slots, dtype=np.int64)

    @cached_property
    def levels(self) -> tuple[tuple[int, FloatArray], ...]:
        """For each level outside the nodes: nodes under an entity, and the entities' parts."""
        topology, found = self.topology, []
        each = topology.devices_under(topology.node_level)
        for j in range(topology.node_level):
            parts = topology.uplink_parts(j) or (1.0,) * prod(topology.sizes[: j + 1])
            found.append((topology.devices_under(j) // each, np.array(parts)))
        return tuple(found)

    def starts(self, cells: int, blocks: Sequence[int]) -> Iterator[IntArray]:
        """Choices of so many hosts, sorted by switch: the first ones, those of the largest and of
        the smallest switches, and of each switch as many whole blocks as it holds."""
        yield self.slots[:cells]
        leaf = self.slots // (self.levels[-1][0] if self.levels else 1)
        _, which, counts = np.unique(leaf, return_inverse=True, return_counts=True)
        size = counts[which]
        within = np.concatenate([np.arange(n) for n in counts])
        for order in (-size, size):
            yield self.slots[np.sort(np.lexsort((within, leaf, order))[:cells])]
        for block in dict.fromkeys(blocks):
            whole = within < size // block * block
            chosen = np.concatenate([self.slots[whole], self.slots[~whole]])[:cells]
            yield chosen
            yield np.sort(chosen)


@dataclass(frozen=True)
class Unit:
    """A strategy with its batch and a matrix inside the nodes: what is left is the order of hosts.

    ``bound_s``: seconds of a sequence that no order undercuts.  ``work``: of that one strategy.
    """

    run: TrainingRun
    grid: CellGrid
    work: StrategyWork
    bound_s: float
    stage: int = 0

    @property
    def sequences(self) -> int:
        """The global batch."""
        return self.run.batch.sequences


@dataclass(frozen=True)
class Orders:
    """What orders of the hosts take, for the units of one search; terms are found once."""

    uplinks: Uplinks
    efficiency: Efficiency
    _terms: dict[object, CellTerm] = field(default_factory=dict)
    _edges: dict[object, tuple[IntArray, IntArray]] = field(default_factory=dict)

    def problem(self, unit: Unit) -> tuple[Problem | None, tuple[str, ...]]:
        """The requests of a unit and their names; None: it sends nothing."""
        run, framework = unit.run, self.efficiency.framework
        asked = axis_requests(run.model, run.batch, run.strategy, framework, self.efficiency)
        sent = [one for one in asked if one.axes]
        if not sent:
            return None, ()
        axes = tuple(map(ParallelismAxis, AXES, run.strategy.sizes))
        requests = tuple(Request(one.kind, one.axes, one.payload_bytes, one.calls) for one in sent)
        return Problem(self.uplinks.topology, axes, requests), tuple(one.name for one in sent)

    def terms(self, unit: Unit, problem: Problem, names: Sequence[str]) -> tuple[CellTerm, ...]:
        """The requests of a unit, by their names, on its grid."""
        closes = {one.column.name for one in unit.work.requests if one.column.closes}
        several = unit.run.strategy.vpp > 1
        return tuple(
            self._term(unit.grid, problem, one, closed=several and name in closes)
            for name, one in zip(names, problem.requests, strict=True)
        )

    def _term(
        self, grid: CellGrid, problem: Problem, request: Request, *, closed: bool
    ) -> CellTerm:
        key = grid, request.kind, request.axes, request.payload_bytes, closed
        if key not in self._terms:
            slots = self.uplinks.slots[: grid.cells]
            self._terms[key] = term(problem, grid, request, slots, closed=closed)
        return replace(self._terms[key], request=request)

    def known(self, unit: Unit) -> IntArray:
        """Orders that need no search: shape (orders, cells)."""
        outer, cells = unit.grid.outer, unit.grid.cells
        blocks = [prod(outer[i:]) for i in range(len(outer))] + [n for n in outer if n > 1]
        starts = list(self.uplinks.starts(cells, blocks))
        every = chain(filled(unit.grid, starts), *(bands(unit.grid, one) for one in starts[:4]))
        return np.unique(np.stack(list(every)), axis=0)

    def seconds(self, unit: Unit, orders: IntArray) -> FloatArray:
        """Seconds of a sequence that each order takes at least."""
        problem, names = self.problem(unit)
        prices: dict[str, FloatArray | float] = dict.fromkeys(self._called(unit), 0.0)
        if problem is not None:
            found = zip(names, self.terms(unit, problem, names), strict=True)
            prices |= {name: self.call_s(unit.grid, one, orders) for name, one in found}
        return np.broadcast_to(combine(unit.work, prices) / unit.sequences, (len(orders),))

    def _called(self, unit: Unit) -> Iterator[str]:
        return (one.column.name for one in unit.work.requests)

    def call_s(self, grid: CellGrid, one: CellTerm, orders: IntArray) -> FloatArray:
        """Seconds of a call of a request under each order, of its quickest way."""
        payload = one.request.payload_bytes
        if one.silent:
            return np.full(len(orders), min(way.way.seconds(payload) for way in one.ways))
        found = [self._way_s(grid, one, way, orders) for way in one.ways]
        return np.asarray(np.min(found, axis=0))

    def _way_s(self, grid: CellGrid, one: CellTerm, way: CellWay, orders: IntArray) -> FloatArray:
        wire = np.full(len(orders), way.way.seconds_per_byte)
        for (under, parts), unit in zip(self.uplinks.levels, way.units, strict=True):
            if unit and len(parts) > 1:
                loads = self._loads(grid, one, way, orders // under, len(parts))
                wire = np.maximum(wire, (loads * (unit / parts)).max(axis=1))
        values, which = np.unique(wire, return_inverse=True)
        payload = one.request.payload_bytes
        seconds = [replace(way.way, seconds_per_byte=v).seconds(payload) for v in values.tolist()]
        return np.array(seconds)[which.ravel()]

    def _loads(
        self, grid: CellGrid, one: CellTerm, way: CellWay, entity: IntArray, entities: int
    ) -> FloatArray:
        """The load of each entity's uplink: shape (orders, entities)."""
        many = len(entity)
        rows = np.arange(many)[:, None]
        if way.follows is Follows.SHARE:
            sent, found = np.array(way.sent), np.zeros((many, entities))
            for group in one.groups:
                held = np.zeros((many, entities), dtype=np.int64)
                np.add.at(held, (rows, entity[:, group]), 1)
                found += sent[held]
            return found
        a, b = self._edges_of(grid, one, way)
        start, end = entity[:, a], entity[:, b]
        leaves = start != end
        out, into = (
            np.bincount((rows * entities + at)[leaves], minlength=many * entities).reshape(
                many, entities
            )
            for at in (start, end)
        )
        return np.asarray(np.maximum(out, into), dtype=np.float64)

    def _edges_of(self, grid: CellGrid, one: CellTerm, way: CellWay) -> tuple[IntArray, IntArray]:
        key = grid, one.request.axes, way.follows
        if key not in self._edges:
            pairs = np.array(list(edges(one.groups, way.follows)), dtype=np.int64).reshape(-1, 2)
            self._edges[key] = pairs[:, 0], pairs[:, 1]
        return self._edges[key]
