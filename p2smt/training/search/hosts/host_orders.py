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
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.allocation.grid_question import Tree
from p2smt.search.allocation.host_search import every_order
from p2smt.search.allocation.local_search import bands, filled
from p2smt.search.allocation.terms import CellTerm, CellWay, Follows, edges, term
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import sent, trained_seconds
from p2smt.training.pipeline import StrategyWork, axis_requests, combine, is_of_experts
from p2smt.training.prediction import AxisRequest
from p2smt.training.strategy import AXES, EXPERT_AXES


def _at_rate(one: CellTerm, factor: float) -> CellTerm:
    """A request that takes so many times as long."""
    if factor == 1.0:
        return one

    def slower(way: CellWay) -> CellWay:
        times = {
            name: getattr(way.way, name) * factor
            for name in ("latency_s", "seconds_per_byte", "call_s", "stage_s")
        }
        units = tuple(unit * factor for unit in way.units)
        return replace(way, way=replace(way.way, **times), units=units)

    return replace(one, ways=tuple(map(slower, one.ways)))


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

    ``grids``: that of attention, and of a mixture that of experts, of as many cells, whose first
    axis, pp, is the same.  ``bound_s``: seconds of a sequence that no order undercuts.  ``work``:
    of that one strategy.
    """

    run: TrainingRun
    grids: tuple[CellGrid, ...]
    work: StrategyWork
    bound_s: float
    stage: int = 0

    @property
    def grid(self) -> CellGrid:
        """That of attention."""
        return self.grids[0]

    @property
    def leading(self) -> int:
        """The grid whose orders are searched, the other lying as is best beside it: the one with
        more axes outside, as of these no order is best for all."""
        split = [sum(size > 1 for size in grid.outer[1:]) for grid in self.grids]
        return split.index(max(split))

    @property
    def sequences(self) -> int:
        """The global batch."""
        return self.run.batch.sequences


@dataclass(frozen=True)
class AskedSide:
    """The requests along the axes of one matrix of a unit, by name, on its grid; ``number``: of the
    grid."""

    number: int
    grid: CellGrid
    problem: Problem
    names: tuple[str, ...]
    terms: tuple[CellTerm, ...]


@dataclass(frozen=True)
class Orders:
    """What orders of the hosts take, for the units of one search; terms are found once.

    An order has the place of each cell of every grid: shape (grids, cells).  ``numbered_once``:
    experts have the ranks of attention, so that both grids have one order.
    """

    uplinks: Uplinks
    efficiency: Efficiency
    numbered_once: bool = False
    _terms: dict[object, CellTerm] = field(default_factory=dict)
    _requests: dict[TrainingRun, tuple[AxisRequest, ...]] = field(default_factory=dict)
    _edges: dict[object, tuple[IntArray, IntArray]] = field(default_factory=dict)
    _orders: dict[tuple[int, ...], IntArray] = field(default_factory=dict)
    _folds: dict[tuple[int, ...], IntArray] = field(default_factory=dict)

    def sides(self, unit: Unit) -> tuple[AskedSide, ...]:
        """The requests of a unit by grid; of a grid along whose axes nothing is sent, none."""
        asked, strategy = self._asked(unit.run), unit.run.strategy
        of_grids = ((AXES, strategy.sizes), (EXPERT_AXES, strategy.expert_sizes))
        found = (
            self._side(number, grid, tuple(map(ParallelismAxis, *named)), asked)
            for number, (grid, named) in enumerate(zip(unit.grids, of_grids, strict=False))
        )
        return tuple(one for one in found if one is not None)

    def _asked(self, run: TrainingRun) -> tuple[AxisRequest, ...]:
        if run not in self._requests:
            framework = self.efficiency.framework
            asked = axis_requests(run.model, run.batch, run.strategy, framework, self.efficiency)
            self._requests[run] = tuple(sent(run, one) for one in asked if one.axes)
        return self._requests[run]

    def _side(
        self,
        number: int,
        grid: CellGrid,
        axes: tuple[ParallelismAxis, ...],
        asked: Sequence[AxisRequest],
    ) -> AskedSide | None:
        mine = [one for one in asked if is_of_experts(one.axes) is bool(number)]
        if not mine:
            return None
        requests = tuple(one.as_request for one in mine)
        problem = Problem(self.uplinks.topology, axes, requests)
        terms = (
            _at_rate(
                self._term(grid, problem, request, closed=one.closed),
                trained_seconds(self.efficiency, one, 1.0),
            )
            for one, request in zip(mine, requests, strict=True)
        )
        return AskedSide(number, grid, problem, tuple(one.name for one in mine), tuple(terms))

    def _term(
        self, grid: CellGrid, problem: Problem, request: Request, *, closed: bool
    ) -> CellTerm:
        key = grid, request.kind, request.axes, request.payload_bytes, closed
        if key not in self._terms:
            slots = self.uplinks.slots[: grid.cells]
            self._terms[key] = term(problem, grid, request, slots, closed=closed)
        return replace(self._terms[key], request=request)

    def known(self, unit: Unit) -> IntArray:
        """Orders that need no search: shape (orders, grids, cells)."""
        every = [self.folded(unit, self._known(one), n) for n, one in enumerate(unit.grids)]
        return every[0] if len(every) == 1 else np.unique(np.concatenate(every), axis=0)

    def _known(self, grid: CellGrid) -> IntArray:
        if grid.outer not in self._orders:
            outer, cells = grid.outer, grid.cells
            blocks = [prod(outer[i:]) for i in range(len(outer))] + [n for n in outer if n > 1]
            starts = list(self.uplinks.starts(cells, blocks))
            every = chain(filled(grid, starts), *(bands(grid, one) for one in starts[:4]))
            self._orders[grid.outer] = np.unique(np.stack(list(every)), axis=0)
        return self._orders[grid.outer]

    def folded(self, unit: Unit, orders: IntArray, number: int) -> IntArray:
        """Orders of the cells of one grid, each with some of those that the other can have beside
        it: every stage, and every pipeline, is on the same hosts in both."""
        if len(unit.grids) == 1:
            return orders[:, None]
        if self.numbered_once:
            return np.stack([orders, orders], axis=1)
        columns = self._columns(unit.grids[1 - number])
        places = orders.reshape(len(orders), unit.grid.outer[0], -1)
        ranked = np.lexsort(np.moveaxis(places, 1, 0)[::-1])
        beside = np.take_along_axis(places, ranked[:, None], axis=2)[:, :, columns]
        found = np.moveaxis(beside, 2, 1).reshape(len(orders), len(columns), -1)
        found = np.concatenate([orders[:, None], found], axis=1)  # and the same as the one
        both = np.stack([np.broadcast_to(orders[:, None], found.shape), found], axis=2)
        both = both[:, :, ::-1] if number else both
        return np.unique(both.reshape(-1, 2, orders.shape[1]), axis=0)

    def every(self, unit: Unit, tree: Tree) -> IntArray:
        """All orders, but those that put other hosts of a switch into the places of some."""
        orders = np.stack(list(every_order(tree, unit.grid.cells)))
        if len(unit.grids) == 1:
            return orders[:, None]
        if self.numbered_once:
            return np.stack([orders, orders], axis=1)
        stages = unit.grid.outer[0]
        pools = tree.pool_of()
        shape = len(orders), stages, -1
        kinds = np.array([pools[slot] for slot in orders.ravel().tolist()]).reshape(shape)
        ranked = np.lexsort(np.moveaxis(kinds, 1, 0)[::-1])  # columns of a kind stand together
        columns = np.take_along_axis(kinds, ranked[:, None], axis=2).reshape(len(orders), -1)
        _, alike = np.unique(columns, axis=0, return_inverse=True)
        pairs = np.argwhere(alike.ravel()[:, None] == alike.ravel()[None])
        mine, others = orders[pairs[:, 0]], np.empty((len(pairs), orders.shape[1]), dtype=np.int64)
        places = orders.reshape(shape)
        sorted_places = np.take_along_axis(places, ranked[:, None], axis=2)
        back = np.argsort(ranked, axis=1)
        for n, (one, other) in enumerate(pairs.tolist()):
            others[n] = sorted_places[one][:, back[other]].ravel()
        return np.stack([mine, others], axis=1)

    def _columns(self, grid: CellGrid) -> IntArray:
        """Ways to fill the cells of a stage with hosts in order: every significance of the axes,
        and bands along each of them."""
        stage = (1, *grid.outer[1:])
        if stage not in self._folds:
            one, hosts = CellGrid(grid.inside, stage), np.arange(prod(stage))
            every = [*filled(one, [hosts]), *bands(one, hosts)]
            self._folds[stage] = np.unique(np.stack(every), axis=0)
        return self._folds[stage]

    def seconds(self, unit: Unit, orders: IntArray) -> FloatArray:
        """Seconds of a sequence that each order takes at least."""
        prices: dict[str, FloatArray | float] = dict.fromkeys(self._called(unit), 0.0)
        for side in self.sides(unit):
            lies, which = np.unique(orders[:, side.number], axis=0, return_inverse=True)
            for name, one in zip(side.names, side.terms, strict=True):
                prices[name] = self.call_s(side.grid, one, lies)[which.ravel()]
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
        seconds = [way.way.seconds_at(payload, v) for v in values.tolist()]
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
