"""Footprints of arbitrary device groups, found device by device.

Used for layouts that no parallelism matrix expresses: the default rank order, or a rank
list of the user's.  On the groups of a matrix it agrees with the closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.loads.level_use import Footprint, LevelUse, PortProfile, message_footprint
from p2smt.cost.loads.rings import chain_steps, mesh_load, node_order, parallel_rings
from p2smt.cost.loads.routing import FloatArray, worst_link
from p2smt.cost.loads.trees import GroupTrees, group_trees
from p2smt.parallelism.placement import IntArray

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of a step, one a row.

    ``rows`` are sorted; ``ring`` is the order in which rings visit the members, ``chain`` that in
    which they are grouped for ``trees``.
    """

    rows: IntArray
    ring: IntArray
    chain: IntArray
    trees: GroupTrees


def explicit_footprint(topology: Topology, groups: IntArray, joins_nodes: bool = True) -> Footprint:
    """Footprint of groups given as device ids in communicator order: shape (groups, members).

    ``joins_nodes``: the library walks through the members node by node, and through each node in
    device order; otherwise its rings follow the communicator strictly.
    """
    per_node = topology.devices_under(topology.node_level)
    chain = node_order(groups, per_node, by_device=joins_nodes)
    rows, trees = np.sort(groups, axis=1), group_trees(chain, per_node)
    every = _Groups(rows, chain if joins_nodes else groups, chain, trees)
    uses = []
    for j, level in enumerate(topology.levels):
        if level.link.kind is LinkKind.SWITCH:
            use = _switch_use(topology, every, j)
        else:
            use = _sibling_use(topology, every, j)
        if use is not None:
            uses.append(use)
    under = [topology.devices_under(j) for j in range(len(topology.levels))]
    counts = np.stack([_distinct(rows // devices) for devices in under], axis=1)
    profiles = tuple(sorted({tuple(row) for row in counts.tolist()}))
    blocks = zip(profiles[0], under, strict=True)
    regular = len(profiles) == 1 and all(_even(every.ring // d, e) for e, d in blocks)
    nodes, local = int(_distinct(rows // per_node).max()), int(trees.local.max())
    chains = chain_steps(topology, every.ring)
    return Footprint(groups.shape[1], profiles, chains, tuple(uses), nodes, local, regular)


def _distinct(span: IntArray) -> IntArray:
    """Number of distinct entities in each (sorted) row."""
    return np.asarray(1 + (np.diff(span, axis=1) != 0).sum(axis=1), dtype=np.int64)


def _even(span: IntArray, entities: int) -> bool:
    """Whether each row has as many members in each entity, and those one after another."""
    if span.shape[1] % entities:
        return False
    runs = span.reshape(len(span), entities, -1)
    return bool((runs == runs[:, :, :1]).all())


def _entity_of(topology: Topology, groups: IntArray, j: int) -> tuple[IntArray, IntArray]:
    """Per member: a number for its (group, entity of level j), and the members in there."""
    entity = groups // topology.devices_under(j)
    total = int(np.prod(topology.sizes[: j + 1]))
    key = entity + total * np.arange(len(groups))[:, None]
    _, where, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(where.reshape(groups.shape)), np.asarray(count)


def device_ports(topology: Topology, devices: IntArray, j: int) -> IntArray:
    """First port (numbered over all entities) of each device at level j."""
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    return devices // under * ports + devices % under * ports // under


def _switch_use(topology: Topology, every: _Groups, j: int) -> LevelUse | None:
    groups = every.rows
    where, count = _entity_of(topology, groups, j)
    crossing = count[where] < groups.shape[1]
    if not crossing.any():
        return None
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    port = device_ports(topology, groups, j)
    pairs = np.unique(np.stack([where[crossing], port[crossing]]), axis=1)
    reached = np.bincount(pairs[0], minlength=len(count)) * max(ports // under, 1)
    share = 1.0 / reached[pairs[0]] / _parts(topology, j, pairs[1] // ports)
    profiles = _port_profiles(pairs[1], count[pairs[0]], share)

    def worst(sent: FloatArray) -> tuple[float, float]:
        """Load of the worst port and draw of a device, by what leaves each group's entities."""
        load = np.bincount(pairs[1], sent[pairs[0]] * share)
        return float(load.max()), float((sent / count).max())

    runs, away, into = _runs(topology, every.ring, j, len(count))
    chain, _ = _entity_of(topology, every.chain, j)
    ring, tree = worst(runs), worst(every.trees.sent(chain.ravel(), j > topology.node_level))
    path = [worst(direction) for direction in (away, into)]
    return LevelUse(
        j,
        ports=profiles,
        least_inside=int(count[where][crossing].min()),
        ring=ring[0],
        path=max(load for load, _ in path),
        tree=tree[0],
        ring_drawn=ring[1],
        path_drawn=max(draw for _, draw in path),
        tree_drawn=tree[1],
    )


def _parts(topology: Topology, j: int, entities: IntArray) -> FloatArray:
    """The part of the level's bandwidth that the uplinks of these entities have.

    A load over it is that of an uplink like the level's which takes as long.
    """
    parts = topology.uplink_parts(j)
    return np.ones(len(entities)) if parts is None else np.array(parts)[entities]


def _runs(
    topology: Topology, ring: IntArray, j: int, entities: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Per (group, entity): cyclic runs of its members, and edges of the chain out and in."""
    where, _ = _entity_of(topology, ring, j)
    apart = where != np.roll(where, -1, axis=1)
    runs = np.bincount(where[apart], minlength=entities)
    chain = apart[:, :-1]
    away = np.bincount(where[:, :-1][chain], minlength=entities)
    into = np.bincount(where[:, 1:][chain], minlength=entities)
    return runs.astype(float), away.astype(float), into.astype(float)


def _port_profiles(port: IntArray, inside: IntArray, share: FloatArray) -> tuple[PortProfile, ...]:
    """The distinct port profiles; equal (members, share) pairs of a port are added up."""
    found: dict[int, Counter[tuple[int, float]]] = {}
    for p, q, w in zip(port.tolist(), inside.tolist(), share.tolist(), strict=True):
        found.setdefault(p, Counter())[(q, w)] += 1
    profiles = {tuple(sorted(c.items())) for c in found.values()}
    return tuple(tuple((q, w * n) for (q, w), n in profile) for profile in sorted(profiles))


def _sibling_use(topology: Topology, every: _Groups, j: int) -> LevelUse | None:
    level, under = topology.levels[j], topology.devices_under(j)
    sibling = every.rows // under
    if not _spans_siblings(sibling, level.size):
        return None
    where, count = _entity_of(topology, every.rows, j)
    closed = _closed(sibling, level.size)
    ring = _RingLoads.of(level, every.ring // under, closed)
    drawn = _sibling_drawn(topology, every, j, closed)
    return LevelUse(
        j,
        least_inside=int(count[where].min()),
        ring=ring.load(cycle=True),
        path=max(ring.load(cycle=False), ring.reversed().load(cycle=False)),
        tree=_sibling_tree(topology, every, j),
        pairs=_pair_load(level, sibling),
        closed_inside=int(count[where[closed]].min()) if closed.any() else 0,
        ring_drawn=drawn[0],
        path_drawn=drawn[1],
        tree_drawn=drawn[2],
    )


def _sibling_drawn(
    topology: Topology, every: _Groups, j: int, closed: BoolArray
) -> tuple[float, float, float]:
    """What one device draws by a ring, a path and a tree of a group inside the level alone."""
    if not closed.any():
        return 0.0, 0.0, 0.0
    where, count = _entity_of(topology, every.rows, j)
    chosen = np.unique(where[closed])
    chain, _ = _entity_of(topology, every.chain, j)
    runs, away, into = _runs(topology, every.ring, j, len(count))
    tree = every.trees.sent(chain.ravel(), j > topology.node_level)
    ring, out, back, trees = (
        float((sent / count)[chosen].max()) for sent in (runs, away, into, tree)
    )
    return ring, max(out, back), trees


def _sibling_tree(topology: Topology, every: _Groups, j: int) -> float:
    """Load of the worst link by the chains inside nodes, each edge of which is used both ways."""
    if j <= topology.node_level:
        return math.inf
    level, trees = topology.levels[j], every.trees
    sibling = (every.chain // topology.devices_under(j)).ravel()
    ends = sibling[trees.source], sibling[trees.target]
    meet = (ends[0] != ends[1]) & (ends[0] // level.size == ends[1] // level.size)
    source, target = (np.concatenate([ends[i][meet], ends[1 - i][meet]]) for i in (0, 1))
    weight = np.tile(trees.part[meet], 2)
    if level.link.kind is not LinkKind.FULL_MESH:
        return worst_link(level, source, target, weight)
    row = np.tile(trees.source[meet] // every.chain.shape[1], 2)
    return mesh_load(level, row, source, target, weight)


def _closed(sibling: IntArray, size: int) -> BoolArray:
    """The rows that span several siblings, and nothing outside their level."""
    parent = sibling // size
    same = (parent == parent[:, :1]).all(axis=1)
    return np.asarray(same & (sibling != sibling[:, :1]).any(axis=1))


@dataclass(frozen=True, slots=True)
class _RingLoads:
    """Rings between siblings: ``rows`` in ring order; ``even``: rows whose ring is split evenly."""

    level: Level
    rows: IntArray
    even: BoolArray

    @staticmethod
    def of(level: Level, rows: IntArray, closed: BoolArray) -> _RingLoads:
        """A ring that passes each sibling of a whole ring or torus once is split evenly."""
        once = (rows != np.roll(rows, -1, axis=1)).sum(axis=1) == level.size
        every = np.array([len(np.unique(row)) == level.size for row in rows])
        mesh = level.link.kind is LinkKind.FULL_MESH
        return _RingLoads(level, rows, closed & once & every & (not mesh))

    def reversed(self) -> _RingLoads:
        """The same, walked the other way."""
        return replace(self, rows=self.rows[:, ::-1])

    def load(self, cycle: bool) -> float:
        """Worst link with a unit on each edge; not ``cycle``: without the closing one.

        Where a ring is split evenly, some link has no part in that edge.
        """
        if self.level.link.kind is LinkKind.FULL_MESH:
            row = np.broadcast_to(np.arange(len(self.rows))[:, None], self.rows.shape)
            source, target, meet = self._edges(self.rows, True)
            return mesh_load(self.level, row[meet], source, target, np.ones(len(source)))
        source, target, _ = self._edges(self.rows[~self.even], cycle)
        if not self.even.any():
            return worst_link(self.level, source, target, np.ones(len(source)))
        parents = self.rows[self.even][:, 0] // self.level.size
        count = np.bincount(parents, minlength=int(self.rows.max()) // self.level.size + 1)
        worst = 0.0
        for parent, share in enumerate((count / parallel_rings(self.level)).tolist()):
            here = source // self.level.size == parent
            one = np.ones(int(here.sum()))
            worst = max(worst, share + worst_link(self.level, source[here], target[here], one))
        return worst

    def _edges(self, rows: IntArray, cycle: bool) -> tuple[IntArray, IntArray, BoolArray]:
        following = np.roll(rows, -1, axis=1)
        size = self.level.size
        meet = (rows // size == following // size) & (rows != following)
        if not cycle:
            meet[:, -1] = False
        return rows[meet], following[meet], meet


def _spans_siblings(sibling: IntArray, size: int) -> bool:
    return bool(((np.diff(sibling, axis=1) != 0) & (np.diff(sibling // size, axis=1) == 0)).any())


def _pair_load(level: Level, sibling: IntArray) -> float:
    """Worst link when each ordered pair of members exchanges one unit."""
    sources, targets, weights = [], [], []
    for row in sibling:
        entity, count = np.unique(row, return_counts=True)
        a, b = np.meshgrid(np.arange(len(entity)), np.arange(len(entity)), indexing="ij")
        meet = (entity[a] // level.size == entity[b] // level.size) & (a != b)
        sources.append(entity[a[meet]])
        targets.append(entity[b[meet]])
        weights.append((count[a] * count[b])[meet].astype(float))
    return worst_link(level, *(np.concatenate(part) for part in (sources, targets, weights)))


def _most_messages(topology: Topology, j: int, ports: IntArray) -> float:
    """Messages through the worst port, each entry being the port of one."""
    found, count = np.unique(ports, return_counts=True)
    parts = _parts(topology, j, found // topology.levels[j].link.ports)
    return float((count / parts).max())


def explicit_send(topology: Topology, source: IntArray, target: IntArray) -> Footprint:
    """Footprint of messages of one size from ``source[i]`` to ``target[i]`` (device ids)."""
    uses, meeting = [], []
    for j, level in enumerate(topology.levels):
        under = topology.devices_under(j)
        apart = source // under != target // under
        siblings = source // under // level.size == target // under // level.size
        if (apart & siblings).any():
            meeting.append(j)
        if level.link.kind is LinkKind.SWITCH and apart.any():
            share = under / level.link.ports if level.link.ports >= under else 1.0
            ends = (device_ports(topology, side[apart], j) for side in (source, target))
            load = max(_most_messages(topology, j, end) for end in ends)
            uses.append(LevelUse(j, ports=(((1, share * load),),), least_inside=1))
        elif level.link.kind is not LinkKind.SWITCH and (apart & siblings).any():
            chosen = apart & siblings
            path = worst_link(
                level, source[chosen] // under, target[chosen] // under, np.ones(chosen.sum())
            )
            uses.append(LevelUse(j, path=path, least_inside=1, closed_inside=1))
    return message_footprint(topology, 2, meeting, tuple(uses))
