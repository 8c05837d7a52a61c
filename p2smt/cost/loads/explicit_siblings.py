"""The use of a level whose links join siblings without a switch, found device by device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.loads.level_use import LevelUse
from p2smt.cost.loads.rings import mesh_load, parallel_rings
from p2smt.cost.loads.routing import FloatArray, worst_link
from p2smt.cost.loads.step_groups import StepGroups, entity_of, sent_by
from p2smt.parallelism.placement import BoolArray, IntArray


def sibling_use(topology: Topology, every: Sequence[StepGroups], j: int) -> LevelUse | None:
    """The use of a ring, torus or full mesh by groups of these sizes; None: they do not use it."""
    level, under = topology.levels[j], topology.devices_under(j)
    siblings = [groups.rows // under for groups in every]
    if not any(_spans_siblings(sibling, level.size) for sibling in siblings):
        return None
    both = [
        (groups, _closed(sibling, level.size))
        for groups, sibling in zip(every, siblings, strict=True)
    ]
    inside = [_inside(topology, groups, j, closed) for groups, closed in both]
    rings = [_RingLoads.of(level, groups, under, closed) for groups, closed in both]
    paths = [replace(ring, weight=1.0) for ring in rings]
    drawn = [_sibling_drawn(topology, groups, j, closed) for groups, closed in both]
    return LevelUse(
        j,
        least_inside=min(least for least, _ in inside),
        ring=_ring_load(level, rings, cycle=True),
        path=max(
            _ring_load(level, paths, cycle=False),
            _ring_load(level, [path.reversed() for path in paths], cycle=False),
        ),
        tree=_sibling_tree(topology, every, j),
        pairs=_pair_load(level, (row for sibling in siblings for row in sibling)),
        closed_inside=min((least for _, least in inside if least), default=0),
        ring_drawn=max(one[0] for one in drawn),
        path_drawn=max(one[1] for one in drawn),
        tree_drawn=max(one[2] for one in drawn),
    )


def _inside(topology: Topology, groups: StepGroups, j: int, closed: BoolArray) -> tuple[int, int]:
    """The fewest members in one sibling, and those of the ``closed`` groups (0: there are none)."""
    where, count = entity_of(topology, groups.rows, j)
    return int(count[where].min()), int(count[where[closed]].min()) if closed.any() else 0


def _sibling_drawn(
    topology: Topology, groups: StepGroups, j: int, closed: BoolArray
) -> tuple[float, float, float]:
    """What one device draws by a ring, a path and a tree of a group inside the level alone."""
    if not closed.any():
        return 0.0, 0.0, 0.0
    where, count = entity_of(topology, groups.rows, j)
    chosen = np.unique(where[closed])
    ring, out, back, tree = (
        float((sent / count)[chosen].max()) for sent in sent_by(topology, groups, j, len(count))
    )
    return ring, max(out, back), tree


@dataclass(frozen=True, slots=True)
class _Edges:
    """Messages between siblings: ``row`` numbers the group of each."""

    row: IntArray
    source: IntArray
    target: IntArray
    weight: FloatArray

    @staticmethod
    def joined(every: Sequence[_Edges]) -> _Edges:
        """Those of several lists, whose groups are others."""
        rows, first = [], 0
        for one in every:
            rows.append(one.row + first)
            first += 1 + int(one.row.max(initial=-1))
        return _Edges(
            np.concatenate(rows),
            np.concatenate([one.source for one in every]),
            np.concatenate([one.target for one in every]),
            np.concatenate([one.weight for one in every]),
        )

    def chosen(self, which: BoolArray) -> _Edges:
        """Some of them."""
        ends = self.source[which], self.target[which]
        return _Edges(self.row[which], *ends, self.weight[which])

    def worst(self, level: Level) -> float:
        """Load of the worst link: full meshes split a group's messages evenly over theirs."""
        if level.link.kind is LinkKind.FULL_MESH:
            return mesh_load(level, self.row, self.source, self.target, self.weight)
        return worst_link(level, self.source, self.target, self.weight)


def _sibling_tree(topology: Topology, every: Sequence[StepGroups], j: int) -> float:
    """Load of the worst link by the chains inside nodes, each edge of which is used both ways."""
    if j <= topology.node_level:
        return math.inf
    return _Edges.joined([_tree_edges(topology, groups, j) for groups in every]).worst(
        topology.levels[j]
    )


def _tree_edges(topology: Topology, groups: StepGroups, j: int) -> _Edges:
    size, trees = topology.levels[j].size, groups.trees
    sibling = (groups.chain // topology.devices_under(j)).ravel()
    ends = sibling[trees.source], sibling[trees.target]
    meet = (ends[0] != ends[1]) & (ends[0] // size == ends[1] // size)
    source, target = (np.concatenate([ends[i][meet], ends[1 - i][meet]]) for i in (0, 1))
    row = np.tile(trees.source[meet] // groups.chain.shape[1], 2)
    return _Edges(row, source, target, np.tile(trees.part[meet], 2))


def _closed(sibling: IntArray, size: int) -> BoolArray:
    """The rows that span several siblings, and nothing outside their level."""
    parent = sibling // size
    same = (parent == parent[:, :1]).all(axis=1)
    return np.asarray(same & (sibling != sibling[:, :1]).any(axis=1))


@dataclass(frozen=True, slots=True)
class _RingLoads:
    """Rings between siblings: ``rows`` in ring order; ``even``: rows whose ring is split evenly.

    ``weight`` is what each of their edges carries.
    """

    level: Level
    rows: IntArray
    even: BoolArray
    weight: float

    @staticmethod
    def of(level: Level, groups: StepGroups, under: int, closed: BoolArray) -> _RingLoads:
        """A ring that passes each sibling of a whole ring or torus once is split evenly."""
        rows = groups.ring // under
        once = (rows != np.roll(rows, -1, axis=1)).sum(axis=1) == level.size
        every = np.array([len(np.unique(row)) == level.size for row in rows])
        mesh = level.link.kind is LinkKind.FULL_MESH
        return _RingLoads(level, rows, closed & once & every & (not mesh), groups.weight)

    def reversed(self) -> _RingLoads:
        """The same, walked the other way."""
        return replace(self, rows=self.rows[:, ::-1])

    def shares(self, parents: int) -> FloatArray:
        """What the rings that are split evenly put on each link, by parent entity."""
        found = self.rows[self.even][:, 0] // self.level.size
        share = self.weight / parallel_rings(self.level)
        return np.asarray(np.bincount(found, minlength=parents) * share, dtype=np.float64)

    def edges(self, cycle: bool) -> _Edges:
        """The messages of the other rings; not ``cycle``: without the closing ones."""
        rows = self.rows[~self.even]
        following, size = np.roll(rows, -1, axis=1), self.level.size
        meet = (rows // size == following // size) & (rows != following)
        if not cycle:
            meet[:, -1] = False
        row = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)[meet]
        return _Edges(row, rows[meet], following[meet], np.full(len(row), self.weight))


def _ring_load(level: Level, rings: Sequence[_RingLoads], cycle: bool) -> float:
    """Worst link with its weight on each edge of the rings; not ``cycle``: no closing ones.

    Where a ring is split evenly, some link has no part in that edge; a mesh has all links alike.
    """
    mesh = level.link.kind is LinkKind.FULL_MESH
    edges = _Edges.joined([ring.edges(cycle or mesh) for ring in rings])
    if not any(ring.even.any() for ring in rings):
        return edges.worst(level)
    parents = 1 + max(int(ring.rows.max()) for ring in rings) // level.size
    worst = 0.0
    shares = np.sum([ring.shares(parents) for ring in rings], axis=0)
    for parent, share in enumerate(shares.tolist()):
        here = edges.chosen(edges.source // level.size == parent)
        worst = max(worst, share + here.worst(level))
    return worst


def _spans_siblings(sibling: IntArray, size: int) -> bool:
    return bool(((np.diff(sibling, axis=1) != 0) & (np.diff(sibling // size, axis=1) == 0)).any())


def _pair_load(level: Level, rows: Iterable[IntArray]) -> float:
    """Worst link when each ordered pair of members exchanges one unit."""
    sources, targets, weights = [], [], []
    for row in rows:
        entity, count = np.unique(row, return_counts=True)
        a, b = np.meshgrid(np.arange(len(entity)), np.arange(len(entity)), indexing="ij")
        meet = (entity[a] // level.size == entity[b] // level.size) & (a != b)
        sources.append(entity[a[meet]])
        targets.append(entity[b[meet]])
        weights.append((count[a] * count[b])[meet].astype(float))
    return worst_link(level, *(np.concatenate(part) for part in (sources, targets, weights)))
