"""The question to the solvers: the terms of a grid as integers, cell by cell or block by block.

Ticks are whole parts of a scale of the problem, rounded down once: what the solver says is a lower
bound.  Of blocks (all cells with the same coordinates along some axes) only counts are asked for:

* a group that is made of whole blocks has at least one edge out of an entity that holds some of
  its cells and not all (a path out of or into it, so half as many; trees one for each tree);
* sends from each cell of a block to one of the next block: at least what it has more (of sends
  that are closed, the last block's go to the first);
* what else there is counts with its least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.problems.allocation import (
    AllocationProblem,
    Counts,
    FixedCounts,
    Load,
    Messages,
    Shares,
    UplinkTicks,
    WayTicks,
)
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.allocation.terms import CellTerm, CellWay, Follows, edges

MOST_LOADS = 2**14
"""Entries of a table of ticks; larger loads are counted in coarser units, rounded down."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The switches over the hosts.

    ``pools``: the places of each pool, ascending.  ``entities``: the pools under each switch;
    ``levels`` its level, ``parts`` its uplink's part of the level's bandwidth.
    """

    pools: tuple[tuple[int, ...], ...]
    entities: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]
    parts: tuple[float, ...]

    def hosts(self, entity: Sequence[int]) -> int:
        """Number of hosts in these pools."""
        return sum(len(self.pools[p]) for p in entity)

    def pool_of(self) -> dict[int, int]:
        """The pool of each place."""
        return {slot: p for p, slots in enumerate(self.pools) for slot in slots}

    def slots(self, counts: Counts) -> IntArray:
        """Places of the cells of an answer by cells: the hosts of a pool in their order."""
        free = [iter(slots) for slots in self.pools]
        return np.array([next(free[row.index(1)]) for row in counts], dtype=np.int64)


def switch_tree(topology: Topology) -> Tree:
    """The switches of a topology that names its hosts; one that holds them all has no uplink."""
    slots = topology.hosts.slots if topology.hosts else ()
    node = topology.node_level
    each = topology.devices_under(node)
    leaf = topology.devices_under(node - 1) // each if node else 1 + max(slots, default=0)
    pools: dict[int, list[int]] = {}
    for slot in slots:
        pools.setdefault(slot // leaf, []).append(slot)
    entities, levels, parts = [], [], []
    for j in range(node):
        under = topology.devices_under(j) // each
        rates = topology.uplink_parts(j)
        for entity in sorted({slot // under for slot in slots}):
            inside = [p for p, found in enumerate(pools.values()) if found[0] // under == entity]
            if len(inside) < len(pools):
                entities.append(tuple(inside))
                levels.append(j)
                parts.append(rates[entity] if rates else 1.0)
    found = tuple(map(tuple, pools.values()))
    return Tree(found, tuple(entities), tuple(levels), tuple(parts))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a grid; ``blocks[c]`` is the block of cell c, ``tick_s`` what a tick is."""

    problem: AllocationProblem
    blocks: IntArray
    tick_s: float

    def held(self, counts: Counts) -> tuple[FixedCounts, ...]:
        """The counts of an answer by blocks, to be held in the question of all cells."""
        cells = (np.flatnonzero(self.blocks == block).tolist() for block in range(len(counts)))
        return tuple(FixedCounts(tuple(mine), row) for mine, row in zip(cells, counts, strict=True))


def asked(
    problem: Problem,
    grid: CellGrid,
    terms: Sequence[CellTerm],
    tree: Tree,
    tick_s: float,
    together: Sequence[int] = (),
    least: Sequence[int] | None = None,
) -> Asked:
    """The question of a grid; blocks are cells whose coordinates differ along ``together`` alone.

    ``least``: ticks of each request below which it never is.
    """
    blocks = block_of(grid, together)
    maker = _Maker(problem, tree, tick_s, blocks, Counter(blocks.tolist())[0])
    requests = tuple(
        maker.ways(term, floor)
        for term, floor in zip(terms, least or [0] * len(terms), strict=True)
    )
    size = int(blocks.max()) + 1
    chain = tuple((b, b + 1, 1) for b in range(size - 1))
    sends = [load for load in maker.loads if isinstance(load, Messages)]
    each = tuple((b,) for b in range(size))
    shares = [load for load in maker.loads if isinstance(load, Shares)]
    apart = all(load.groups in (each, (tuple(range(size)),)) for load in shares)
    coarse = maker.members > 1
    found = AllocationProblem(
        tuple(len(slots) for slots in tree.pools),
        tree.entities,
        size,
        maker.members,
        tuple(maker.loads),
        requests,
        worst=problem.objective == "max",
        mirrored=coarse and apart and all(load.edges == chain for load in sends),
        alike=coarse and apart and not sends,
    )
    return Asked(found, blocks, tick_s)


def block_of(grid: CellGrid, together: Sequence[int]) -> IntArray:
    """The block of each cell (row-major): cells that differ along these axes alone share one."""
    number = np.arange(grid.cells).reshape(grid.outer)
    for axis in together:
        number = np.broadcast_to(number.take([0], axis=axis), grid.outer)
    _, found = np.unique(number.ravel(), return_inverse=True)
    return np.asarray(found, dtype=np.int64)


class _Maker:
    """Collects the loads of a question while its requests are written."""

    def __init__(
        self, problem: Problem, tree: Tree, tick_s: float, blocks: IntArray, members: int
    ) -> None:
        self.tree, self.tick_s, self.blocks, self.members = tree, tick_s, blocks, members
        self.ports = [level.link.ports for level in problem.topology.levels]
        self.loads: list[Load] = []
        self._tables: dict[tuple[int, ...], tuple[int, ...]] = {}

    def ways(self, term: CellTerm, floor: int) -> tuple[WayTicks, ...]:
        """The ways of a request in ticks."""
        return tuple(self._way(term, way, floor) for way in term.ways)

    def _way(self, term: CellTerm, way: CellWay, floor: int) -> WayTicks:
        payload, times = term.request.payload_bytes, term.request.times

        def ticks(wire: float) -> int:
            wire = max(wire, way.way.seconds_per_byte)
            seconds = way.way.seconds_at(payload, wire)
            return max(floor, int(times * seconds / self.tick_s))

        least = ticks(0.0)
        found = None if term.silent else self._load(term, way)
        if found is None:
            return WayTicks(least, (None,) * len(self.tree.entities))
        index, step, halved = found
        most = self._most(self.loads[index])
        tables: dict[float, tuple[int, ...]] = {}
        uplinks: list[UplinkTicks | None] = []
        for level, part in zip(self.tree.levels, self.tree.parts, strict=True):
            unit = way.units[level] * step / part
            if unit not in tables:
                values = (math.ceil(v / 2) if halved else v for v in range(most + 1))
                row = tuple(max(least, ticks(unit * v)) for v in values)
                tables[unit] = self._tables.setdefault(row, row)
            flat = tables[unit][-1] == least
            uplinks.append(None if flat else UplinkTicks(index, tables[unit]))
        return WayTicks(least, tuple(uplinks))

    def _most(self, load: Load) -> int:
        """No uplink carries more: what the cells of the fullest switch send or receive."""
        if isinstance(load, Shares):
            return len(load.groups) * max(load.sent)
        out, into = Counter[int](), Counter[int]()
        for a, b, count in load.edges:
            out[a] += count
            into[b] += count
        held = max((self.tree.hosts(e) for e in self.tree.entities), default=0)
        most = max((*out.values(), *into.values()), default=0)
        return min(self.members * out.total(), held * most)

    def _load(self, term: CellTerm, way: CellWay) -> tuple[int, float, bool] | None:
        """The index of a way's load, what one of it is in units, and whether it is halved."""
        groups = self._groups(term.groups)
        if way.follows is Follows.SHARE:
            if groups is None:
                return None
            sent, step = whole(way.sent, max(1, MOST_LOADS // len(groups)))
            return self._index(Shares(groups, sent)), step, False
        if self.members == 1:
            count = Counter(edges(term.groups, way.follows))
            return (
                self._index(Messages(tuple((a, b, n) for (a, b), n in count.items()))),
                1.0,
                False,
            )
        if groups is None:
            chain = self._between(term, way)
            return None if chain is None else (self._index(chain), 1.0, False)
        least = 2 if way.follows is Follows.TREE else 1
        size = self.members * len(groups[0])
        sent = (0, *(least for _ in range(size - 1)), 0)
        halved = way.follows in (Follows.PATH, Follows.SENDS)
        return self._index(Shares(groups, sent)), 1.0, halved

    def _index(self, load: Load) -> int:
        if load not in self.loads:
            self.loads.append(load)
        return self.loads.index(load)

    def _groups(self, groups: IntArray) -> tuple[tuple[int, ...], ...] | None:
        """The blocks of each group; None: some block is in it in part."""
        found = []
        for row in groups:
            cells = np.unique(row)
            blocks = np.unique(self.blocks[cells])
            if len(blocks) * self.members != len(cells):
                return None
            found.append(tuple(blocks.tolist()))
        return tuple(found)

    def _between(self, term: CellTerm, way: CellWay) -> Messages | None:
        """Sends that go from every cell of a block to one of another."""
        if way.follows not in (Follows.SENDS, Follows.CLOSED_SENDS):
            return None
        count = Counter(
            (int(self.blocks[a]), int(self.blocks[b])) for a, b in edges(term.groups, way.follows)
        )
        if any(a == b or n != self.members for (a, b), n in count.items()):
            return None
        return Messages(tuple((a, b, 1) for a, b in sorted(count)))


def whole(sent: Sequence[float], most: int) -> tuple[tuple[int, ...], float]:
    """Shares as whole numbers, and what one of these is in units; rounded down if they must be."""
    top = max(sent)
    given = np.array(sent) / (top or 1.0)
    least = min((x for x in given.tolist() if x > 0), default=1.0)
    for factor in range(1, 2 * len(sent) + 1):
        scaled = given / least * factor
        near = np.rint(scaled)
        if near.max() <= most and np.allclose(scaled, near, rtol=1e-9, atol=1e-9):
            return tuple(int(n) for n in near), top * least / factor
    return tuple(int(n) for n in np.floor(given * most * (1 + 1e-12))), top / most
