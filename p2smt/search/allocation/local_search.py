"""Better orders near one that is known: cells change places while that does not cost more.

The loads of all uplinks are kept; an exchange changes those of the edges at two cells.  Of orders
that cost the same the one with the lesser sum of squared loads goes on, as it is nearer to a
better one; now and then a worse one is taken (simulated annealing).  What is found is costed again
device by device.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations

import numpy as np

from p2smt.cost.bounds import single_time
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import objective
from p2smt.problems.allocation import AllocationProblem, Messages
from p2smt.problems.placement import PlacementProblem
from p2smt.result import StopWatch
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.placements import placements

_CHECK, _ROUND = 64, 4000
"""Exchanges between looks at the clock, and until the temperature falls again from the top."""


class Climb:
    """Exchanges the pools of cells of a question about every cell (blocks of one)."""

    def __init__(self, problem: AllocationProblem, pools: Sequence[int], seed: int) -> None:
        self.problem, self.random = problem, random.Random(seed)
        self.pools = list(pools)
        taken = [self.pools.count(p) for p in range(len(problem.pools))]
        self.idle = [p for p, n in enumerate(problem.pools) for _ in range(n - taken[p])]
        self.under = [
            [e for e, inside in enumerate(problem.entities) if p in inside]
            for p in range(len(problem.pools))
        ]
        self._edges()
        self._load()

    def _edges(self) -> None:
        """Edges at each cell, and its groups, by load."""
        loads, cells = self.problem.loads, range(self.problem.blocks)
        self.at: list[list[list[tuple[int, int, int]]]] = [[[] for _ in cells] for _ in loads]
        self.group: list[list[list[int]]] = [[[] for _ in cells] for _ in loads]
        for i, load in enumerate(loads):
            if isinstance(load, Messages):
                for edge in load.edges:
                    self.at[i][edge[0]].append(edge)
                    self.at[i][edge[1]].append(edge)
            else:
                for g, group in enumerate(load.groups):
                    for cell in group:
                        self.group[i][cell].append(g)

    def _load(self) -> None:
        """All loads anew: out and into by load and entity, and what groups have in entities."""
        entities, loads = len(self.problem.entities), self.problem.loads
        self.out = [[0] * entities for _ in loads]
        self.into = [[0] * entities for _ in loads]
        self.held = [
            [] if isinstance(load, Messages) else [[0] * entities for _ in load.groups]
            for load in loads
        ]
        for i, load in enumerate(loads):
            if isinstance(load, Messages):
                for edge in load.edges:
                    self._edge(i, edge, 1)
                continue
            for g, group in enumerate(load.groups):
                for cell in group:
                    for e in self.under[self.pools[cell]]:
                        self.held[i][g][e] += 1
                for e in range(entities):
                    self.out[i][e] += load.sent[self.held[i][g][e]]
        self.value = self._value()

    def _edge(self, i: int, edge: tuple[int, int, int], sign: int) -> None:
        a, b = self.pools[edge[0]], self.pools[edge[1]]
        if a == b:
            return
        above, other = self.under[a], self.under[b]
        for e in above:
            if e not in other:
                self.out[i][e] += sign * edge[2]
        for e in other:
            if e not in above:
                self.into[i][e] += sign * edge[2]

    def _value(self) -> tuple[int, int]:
        """Ticks, and the sum of squared loads."""
        peaks = [
            [max(a, b) for a, b in zip(out, into, strict=True)]
            for out, into in zip(self.out, self.into, strict=True)
        ]
        costs = []
        for ways in self.problem.requests:
            best = None
            for way in ways:
                cost = way.least
                for e, uplink in enumerate(way.uplinks):
                    if uplink is not None:
                        load = peaks[uplink.load][e]
                        cost = max(cost, uplink.ticks[min(load, len(uplink.ticks) - 1)])
                best = cost if best is None else min(best, cost)
            costs.append(best or 0)
        total = max(costs) if self.problem.worst else sum(costs)
        return total, sum(n * n for row in peaks for n in row)

    def _put(self, cell: int, pool: int) -> None:
        """One cell in another pool, all loads with it."""
        before = self.pools[cell]
        for i, load in enumerate(self.problem.loads):
            if isinstance(load, Messages):
                for edge in self.at[i][cell]:
                    self._edge(i, edge, -1)
                self.pools[cell] = pool
                for edge in self.at[i][cell]:
                    self._edge(i, edge, 1)
                self.pools[cell] = before
                continue
            for g in self.group[i][cell]:
                for pools, step in ((before, -1), (pool, 1)):
                    for e in self.under[pools]:
                        self.out[i][e] -= load.sent[self.held[i][g][e]]
                        self.held[i][g][e] += step
                        self.out[i][e] += load.sent[self.held[i][g][e]]
        self.pools[cell] = pool

    def _exchange(self, a: int, b: int) -> None:
        """Exchange two cells; b beyond the cells: an idle host."""
        count = self.problem.blocks
        first = self.pools[a]
        if b < count:
            second = self.pools[b]
            self._put(a, second)
            self._put(b, first)
        else:
            second = self.idle[b - count]
            self.idle[b - count] = first
            self._put(a, second)

    def _pool(self, b: int) -> int:
        count = self.problem.blocks
        return self.pools[b] if b < count else self.idle[b - count]

    def _pairs(self) -> Iterator[tuple[int, int]]:
        most = self.problem.blocks + len(self.idle)
        while True:
            a, b = self.random.randrange(self.problem.blocks), self.random.randrange(most)
            if self._pool(a) != self._pool(b):
                yield a, b

    def run(self, watch: StopWatch, most: int) -> Iterator[tuple[int, list[int]]]:
        """Ever better orders, each with its ticks and the pool of every cell."""
        if len(set(self.pools) | set(self.idle)) < 2:
            return
        best = self.value[0]
        for number, (a, b) in zip(range(most), self._pairs(), strict=False):
            if number % _CHECK == 0 and watch.expired():
                return
            heat = 1.0 - number % _ROUND / _ROUND
            before = self.value
            self._exchange(a, b)
            self.value = self._value()
            if not self._taken(before, heat):
                self._exchange(a, b)
                self.value = before
            elif self.value[0] < best:
                best = self.value[0]
                yield best, list(self.pools)

    def _taken(self, before: tuple[int, int], heat: float) -> bool:
        if self.value <= before:
            return True
        worse = self.value[0] / max(1, before[0]) - 1 + self.value[1] / max(1, before[1]) - 1
        return self.random.random() < math.exp(min(0.0, -worse / (1e-6 + 0.02 * heat * heat)))


# Answers known before any search: hosts sorted by switch, in each significance of the axes.


MAX_SIGNIFICANCES = 24
"""All orders of four axes."""
MAX_MATRICES = 200


@dataclass(frozen=True, slots=True)
class HostOrder:
    """The places in the hull of a grid's cells (row-major), and what that costs in seconds."""

    grid: CellGrid
    slots: tuple[int, ...]
    objective_s: float


def cost_s(problem: Problem, ranks: IntArray) -> float:
    """The objective of one collective per request, device by device."""
    return objective(problem, tuple(order_seconds(problem, ranks)))


def order_seconds(problem: Problem, ranks: IntArray) -> Iterator[float]:
    """Seconds of an execution of each request, one collective each, device by device."""
    for one in problem.requests:
        axes = problem.axis_indices(one)
        yield single_time(problem.topology, ranks, axes, one.kind, one.payload_bytes).seconds


def costed(problem: Problem, grid: CellGrid, slots: IntArray) -> HostOrder:
    """An order with its objective."""
    return HostOrder(grid, tuple(slots.tolist()), cost_s(problem, grid.ranks(slots)))


def filled(grid: CellGrid, orders: Sequence[IntArray]) -> Iterator[IntArray]:
    """Places of the cells: the first of each order, in every significance of the axes."""
    split = [i for i, size in enumerate(grid.outer) if size > 1]
    for slots in orders:
        for chosen in islice(permutations(split), MAX_SIGNIFICANCES):
            yield by_significance(slots[: grid.cells], grid.outer, chosen)


def by_significance(slots: IntArray, outer: Sequence[int], chosen: Sequence[int]) -> IntArray:
    """Places in order, filling a grid whose axes count in this significance, row-major."""
    rest = [i for i in range(len(outer)) if i not in chosen]
    order = [*chosen, *rest]
    return slots.reshape([outer[i] for i in order]).transpose(np.argsort(order)).ravel()


def banded(slots: IntArray, outer: Sequence[int], axis: int, width: int) -> IntArray:
    """Places in order, filling bands of so many columns one after another, each row by row.

    Rows are along ``axis``, columns the cells of the other axes, row-major.  Every second band is
    walked backwards, so that hosts of one switch stay together.  Bands of all columns, or of one,
    are the two significances of a grid of two axes; those between weigh groups along the columns
    against messages along the rows.
    """
    cells = np.arange(len(slots)).reshape(outer)
    rows = np.moveaxis(cells, axis, 0).reshape(outer[axis], -1)
    walk = []
    for number, first in enumerate(range(0, rows.shape[1], width)):
        band = rows[:, first : first + width]
        walk.append((band[::-1] if number % 2 else band).ravel())
    found = np.empty(len(slots), dtype=np.int64)
    found[np.concatenate(walk)] = slots
    return found


def bands(grid: CellGrid, slots: IntArray) -> Iterator[IntArray]:
    """The places in bands of several widths along every axis that has several cells."""
    for axis, size in enumerate(grid.outer):
        columns = grid.cells // size
        if size > 1 and columns > 1:
            for width in sorted({-(-columns // k) for k in (*range(1, 13), 16, 24, 32, columns)}):
                yield banded(slots[: grid.cells], grid.outer, axis, width)


def of_matrices(problem: Problem, grid: CellGrid, watch: StopWatch) -> Iterator[IntArray]:
    """On a full and regular cluster: the orders of parallelism matrices of the grid outside.

    The first ``MAX_MATRICES`` of them; nothing where a place has no host or hosts are left over.
    """
    topology = problem.topology
    outer = topology.sizes[: topology.node_level + 1]
    if topology.uneven or grid.cells < math.prod(outer):
        return
    limits = replace(watch.left(), max_answers=MAX_MATRICES)
    for matrix in placements(PlacementProblem(outer, grid.outer), limits).value or ():
        yield Placement(matrix).rank_tensor().ravel()
