"""Footprints of arbitrary device groups, found device by device.

Used for layouts that no parallelism matrix expresses: the default rank order, or a rank
list of the user's.  On the groups of a matrix it agrees with the closed form.

The groups of one step may be of several sizes.  They run at the same time and by one algorithm, so
what they send over a link adds up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.loads.level_use import (
    Footprint,
    LevelUse,
    PortProfile,
    Profile,
    message_footprint,
    worst_link,
)
from p2smt.cost.loads.rings import (
    GroupTrees,
    chain_steps,
    group_trees,
    mesh_load,
    node_order,
    parallel_rings,
)
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray


def explicit_footprint(
    topology: Topology, groups: IntArray | Sequence[IntArray], joins_nodes: bool = True
) -> Footprint:
    """Footprint of groups given as device ids in communicator order: shape (groups, members).

    ``groups`` of several sizes are an array for each.
    ``joins_nodes``: the library walks through the members node by node, and through each node in
    device order; otherwise its rings follow the communicator strictly.
    """
    sizes = [groups] if isinstance(groups, np.ndarray) else list(groups)
    members = max(one.shape[1] for one in sizes)
    per_node = topology.devices_under(topology.node_level)
    every = [StepGroups.of(one, per_node, joins_nodes, members) for one in sizes]
    uses = []
    for j, level in enumerate(topology.levels):
        if level.link.kind is LinkKind.SWITCH:
            use = _switch_use(topology, every, j)
        else:
            use = sibling_use(topology, every, j)
        if use is not None:
            uses.append(use)
    profiles = sorted({profile for one in every for profile in _profiles(topology, one.rows)})
    nodes = max(int(_distinct(one.rows // per_node).max()) for one in every)
    return Footprint(
        members,
        tuple(profiles),
        tuple(sorted({steps for one in every for steps in chain_steps(topology, one.ring)})),
        tuple(uses),
        nodes,
        max(int(one.trees.local.max()) for one in every),
        len(every) == len(profiles) == 1 and _regular(topology, every[0].ring, profiles[0]),
        len(every) > 1,
    )


def _profiles(topology: Topology, rows: IntArray) -> set[Profile]:
    """The distinct vectors of entities that (sorted) groups span."""
    under = [topology.devices_under(j) for j in range(len(topology.levels))]
    counts = np.stack([_distinct(rows // devices) for devices in under], axis=1)
    return {tuple(row) for row in counts.tolist()}


def _regular(topology: Topology, ring: IntArray, profile: Profile) -> bool:
    return all(_even(ring // topology.devices_under(j), e) for j, e in enumerate(profile))


def _distinct(span: IntArray) -> IntArray:
    """Number of distinct entities in each (sorted) row."""
    return np.asarray(1 + (np.diff(span, axis=1) != 0).sum(axis=1), dtype=np.int64)


def _even(span: IntArray, entities: int) -> bool:
    """Whether each row has as many members in each entity, and those one after another."""
    if span.shape[1] % entities:
        return False
    runs = span.reshape(len(span), entities, -1)
    return bool((runs == runs[:, :, :1]).all())


def device_ports(topology: Topology, devices: IntArray, j: int) -> IntArray:
    """First port (numbered over all entities) of each device at level j."""
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    return devices // under * ports + devices % under * ports // under


@dataclass(frozen=True, slots=True)
class _Uplinks:
    """What groups send over the uplinks of a level; an entry for each port that each reaches.

    ``inside`` are the members that the group has in the entity, ``share`` the part of what it sends
    that takes this port.  ``sent``: by ring, chain out, chain in and tree; ``drawn``: the most
    that a device has of each.  ``least`` is the smallest number of members inside.
    """

    port: IntArray
    inside: IntArray
    share: FloatArray
    sent: tuple[FloatArray, ...]
    drawn: tuple[float, ...]
    least: int

    @staticmethod
    def of(topology: Topology, every: StepGroups, j: int) -> _Uplinks | None:
        """Those of groups of one size; None where none leaves an entity."""
        groups, slices = every.rows, _Slices.of(topology, every, j)
        where, count = slices.where, slices.count
        crossing = count[where] < groups.shape[1]
        if not crossing.any():
            return None
        ports, under = topology.levels[j].link.ports, topology.devices_under(j)
        port = device_ports(topology, groups, j)
        width = int(port.max()) + 1
        pairs = np.divmod(np.unique(where[crossing] * width + port[crossing]), width)
        reached = np.bincount(pairs[0], minlength=len(count)) * max(ports // under, 1)
        share = 1.0 / reached[pairs[0]] / _parts(topology, j, pairs[1] // ports)
        sent = slices.sent(topology, every, j)
        return _Uplinks(
            pairs[1],
            count[pairs[0]],
            share,
            tuple(one[pairs[0]] for one in sent),
            tuple(float((one / count).max()) for one in sent),
            int(count[where][crossing].min()),
        )


def _switch_use(topology: Topology, every: Sequence[StepGroups], j: int) -> LevelUse | None:
    found = [one for one in (_Uplinks.of(topology, groups, j) for groups in every) if one]
    if not found:
        return None
    port, inside, share = (
        np.concatenate(parts)
        for parts in zip(*((one.port, one.inside, one.share) for one in found), strict=True)
    )
    loads = [
        float(np.bincount(port, np.concatenate(sent) * share).max())
        for sent in zip(*(one.sent for one in found), strict=True)
    ]
    draws = [max(drawn) for drawn in zip(*(one.drawn for one in found), strict=True)]
    return LevelUse(
        j,
        ports=_port_profiles(port, inside, share),
        least_inside=min(one.least for one in found),
        ring=loads[0],
        path=max(loads[1:3]),
        tree=loads[3],
        ring_drawn=draws[0],
        path_drawn=max(draws[1:3]),
        tree_drawn=draws[3],
    )


def _parts(topology: Topology, j: int, entities: IntArray) -> FloatArray:
    """The part of the level's bandwidth that the uplinks of these entities have.

    A load over it is that of an uplink like the level's which takes as long.
    """
    parts = topology.uplink_parts(j)
    return np.ones(len(entities)) if parts is None else np.array(parts)[entities]


def _port_profiles(port: IntArray, inside: IntArray, share: FloatArray) -> tuple[PortProfile, ...]:
    """The distinct port profiles; equal (members, share) pairs of a port are added up."""
    order = np.lexsort((share, inside, port))
    port, inside, share = port[order], inside[order], share[order]
    new_port = np.diff(port, prepend=-1) != 0
    new = new_port | (np.diff(inside, prepend=-1) != 0) | (np.diff(share, prepend=-1.0) != 0)
    first = np.flatnonzero(new)
    count = np.diff(first, append=len(port))
    pairs = list(zip(inside[first].tolist(), share[first].tolist(), count.tolist(), strict=True))
    bounds = [*np.flatnonzero(new_port[first]).tolist(), len(pairs)]
    profiles = {tuple(pairs[a:b]) for a, b in pairwise(bounds)}
    return tuple(tuple((q, w * n) for q, w, n in profile) for profile in sorted(profiles))


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


# The use of a level whose links join siblings without a switch, found device by device.


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
    slices = _Slices.of(topology, groups, j)
    closed_least = int(slices.count[slices.where[closed]].min()) if closed.any() else 0
    return int(slices.count.min()), closed_least


def _sibling_drawn(
    topology: Topology, groups: StepGroups, j: int, closed: BoolArray
) -> tuple[float, float, float]:
    """What one device draws by a ring, a path and a tree of a group inside the level alone."""
    if not closed.any():
        return 0.0, 0.0, 0.0
    slices = _Slices.of(topology, groups, j)
    chosen = np.unique(slices.where[closed])
    ring, out, back, tree = (
        float((sent / slices.count)[chosen].max()) for sent in slices.sent(topology, groups, j)
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


# The groups of one step, and what they send out of the entities of a level.


@dataclass(frozen=True, slots=True)
class StepGroups:
    """The groups of one size in a step, one a row.

    ``rows`` are sorted; ``ring`` is the order in which rings visit the members, ``chain`` that in
    which they are grouped for ``trees``.  ``weight`` is what an edge of a ring carries, over the
    same of the largest groups of the step: (p - 1)/p of the payload each.
    """

    rows: IntArray
    ring: IntArray
    chain: IntArray
    trees: GroupTrees
    weight: float

    @staticmethod
    def of(groups: IntArray, per_node: int, joins_nodes: bool, largest: int) -> StepGroups:
        """Groups in communicator order, in a step whose largest have so many members."""
        chain, members = node_order(groups, per_node, by_device=joins_nodes), groups.shape[1]
        weight = 1.0 if members == largest else (1 - 1 / members) / (1 - 1 / largest)
        ring, trees = chain if joins_nodes else groups, group_trees(chain, per_node)
        return StepGroups(np.sort(groups, axis=1), ring, chain, trees, weight)


@dataclass(frozen=True, slots=True)
class _Slices:
    """The slices into which the entities of level j cut groups: one for each (group, entity).

    ``key`` are their numbers, ascending, ``count`` the members in each; ``where`` is the slice
    of each member of the sorted rows.
    """

    key: IntArray
    count: IntArray
    where: IntArray

    @staticmethod
    def of(topology: Topology, every: StepGroups, j: int) -> _Slices:
        """In sorted rows the members of a slice stand side by side."""
        keys = _slice_keys(topology, every.rows, j).ravel()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        count = np.diff(first, append=len(keys))
        where = np.repeat(np.arange(len(first)), count)
        return _Slices(keys[first], count, where.reshape(every.rows.shape))

    def sent(self, topology: Topology, every: StepGroups, j: int) -> tuple[FloatArray, ...]:
        """What leaves each slice by a ring, by a chain out and in, and by a tree.

        A ring leaves it once per cyclic run of its members.
        """
        where, many = self._of(topology, every.ring, j), len(self.key)
        apart = where != np.roll(where, -1, axis=1)
        runs = np.bincount(where[apart], minlength=many)
        chain = apart[:, :-1]
        away = np.bincount(where[:, :-1][chain], minlength=many)
        into = np.bincount(where[:, 1:][chain], minlength=many)
        grouped = where if every.chain is every.ring else self._of(topology, every.chain, j)
        tree = every.trees.sent(grouped.ravel(), j > topology.node_level)
        both = runs * every.weight, away.astype(float), into.astype(float), tree
        return tuple(np.asarray(sent, dtype=np.float64) for sent in both)

    def _of(self, topology: Topology, groups: IntArray, j: int) -> IntArray:
        """The slice of each member of the same groups in another order."""
        return np.searchsorted(self.key, _slice_keys(topology, groups, j))


def _slice_keys(topology: Topology, groups: IntArray, j: int) -> IntArray:
    """Per member: a number for its (group, entity of level j)."""
    entities = math.prod(topology.sizes[: j + 1])
    return groups // topology.devices_under(j) + entities * np.arange(len(groups))[:, None]
