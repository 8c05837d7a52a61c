"""Footprints of arbitrary device groups, found device by device.

Used for layouts that no parallelism matrix expresses: the default rank order, or a rank
list of the user's.  On the groups of a matrix it agrees with the closed form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.footprint import Footprint, LevelUse, PortProfile
from p2smt.cost.routing import FloatArray, worst_link
from p2smt.parallelism.placement import IntArray


def explicit_footprint(topology: Topology, groups: IntArray) -> Footprint:
    """Footprint of groups given as device ids: shape (groups, members), each row sorted."""
    uses = []
    spans = [groups // topology.devices_under(j) for j in range(len(topology.levels))]
    for j, level in enumerate(topology.levels):
        if level.link.kind is LinkKind.SWITCH:
            use = _switch_use(topology, groups, j)
        else:
            use = _sibling_use(topology, groups, j)
        if use is not None:
            uses.append(use)
    counts = np.stack([_distinct(span) for span in spans], axis=1)
    profiles = tuple(sorted({tuple(row) for row in counts.tolist()}))
    regular = len(profiles) == 1 and all(_even(span) for span in spans)
    return Footprint(groups.shape[1], profiles, tuple(uses), regular)


def _distinct(span: IntArray) -> IntArray:
    """Number of distinct entities in each (sorted) row."""
    return np.asarray(1 + (np.diff(span, axis=1) != 0).sum(axis=1), dtype=np.int64)


def _even(span: IntArray) -> bool:
    """Whether each row has the same number of members in each entity it touches."""
    entities = int(_distinct(span)[0])
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


def _switch_use(topology: Topology, groups: IntArray, j: int) -> LevelUse | None:
    where, count = _entity_of(topology, groups, j)
    crossing = count[where] < groups.shape[1]
    if not crossing.any():
        return None
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    port = device_ports(topology, groups, j)
    pairs = np.unique(np.stack([where[crossing], port[crossing]]), axis=1)
    reached = np.bincount(pairs[0], minlength=len(count)) * max(ports // under, 1)
    profiles = _port_profiles(pairs[1], count[pairs[0]], 1.0 / reached[pairs[0]])
    return LevelUse(j, ports=profiles, least_inside=int(count[where][crossing].min()))


def _port_profiles(port: IntArray, inside: IntArray, share: FloatArray) -> tuple[PortProfile, ...]:
    """The distinct port profiles; equal (members, share) pairs of a port are added up."""
    found: dict[int, Counter[tuple[int, float]]] = {}
    for p, q, w in zip(port.tolist(), inside.tolist(), share.tolist(), strict=True):
        found.setdefault(p, Counter())[(q, w)] += 1
    profiles = {tuple(sorted(c.items())) for c in found.values()}
    return tuple(tuple((q, w * n) for (q, w), n in profile) for profile in sorted(profiles))


def _sibling_use(topology: Topology, groups: IntArray, j: int) -> LevelUse | None:
    level, under = topology.levels[j], topology.devices_under(j)
    sibling = groups // under
    following = np.roll(sibling, -1, axis=1)

    def load(source: IntArray, target: IntArray, weight: FloatArray) -> float:
        meet = (source // level.size == target // level.size) & (source != target)
        return worst_link(level, source[meet], target[meet], weight[meet])

    ring = load(sibling, following, np.ones(groups.shape))
    if not _spans_siblings(sibling, level.size):
        return None
    ends = sibling[:, :-1], following[:, :-1]
    both = [load(*way, np.ones(ends[0].shape)) for way in (ends, ends[::-1])]
    where, count = _entity_of(topology, groups, j)
    return LevelUse(
        j,
        least_inside=int(count[where].min()),
        ring=ring,
        path=max(both),  # a chain to or from the root; half-way ties make them differ
        pairs=_pair_load(sibling, load),
        closed_inside=_closed_inside(sibling, count[where], level.size),
    )


def _spans_siblings(sibling: IntArray, size: int) -> bool:
    return bool(((np.diff(sibling, axis=1) != 0) & (np.diff(sibling // size, axis=1) == 0)).any())


def _closed_inside(sibling: IntArray, inside: IntArray, size: int) -> int:
    """Least members under one entity, of groups within one set of siblings that span several."""
    parent = sibling // size
    closed = (parent == parent[:, :1]).all(axis=1) & (sibling != sibling[:, :1]).any(axis=1)
    return int(inside[closed].min()) if closed.any() else 0


def _pair_load(sibling: IntArray, load: Callable[[IntArray, IntArray, FloatArray], float]) -> float:
    """Worst link when each ordered pair of members exchanges one unit."""
    sources, targets, weights = [], [], []
    for row in sibling:
        entity, count = np.unique(row, return_counts=True)
        a, b = np.meshgrid(np.arange(len(entity)), np.arange(len(entity)), indexing="ij")
        sources.append(entity[a.ravel()])
        targets.append(entity[b.ravel()])
        weights.append((count[a] * count[b]).ravel().astype(float))
    return load(np.concatenate(sources), np.concatenate(targets), np.concatenate(weights))


def explicit_send(topology: Topology, source: IntArray, target: IntArray) -> Footprint:
    """Footprint of messages of one size from ``source[i]`` to ``target[i]`` (device ids)."""
    uses = []
    profiles = set()
    for j, level in enumerate(topology.levels):
        under = topology.devices_under(j)
        apart = source // under != target // under
        siblings = source // under // level.size == target // under // level.size
        if (apart & siblings).any():
            profiles.add(tuple(1 if i < j else 2 for i in range(len(topology.levels))))
        if level.link.kind is LinkKind.SWITCH and apart.any():
            share = under / level.link.ports if level.link.ports >= under else 1.0
            ends = (device_ports(topology, side[apart], j) for side in (source, target))
            load = max(int(np.unique(end, return_counts=True)[1].max()) for end in ends)
            uses.append(LevelUse(j, ports=(((1, share * load),),), least_inside=1))
        elif level.link.kind is not LinkKind.SWITCH and (apart & siblings).any():
            chosen = apart & siblings
            path = worst_link(
                level, source[chosen] // under, target[chosen] // under, np.ones(chosen.sum())
            )
            uses.append(LevelUse(j, ring=path, path=path, least_inside=1, closed_inside=1))
    flat = (1,) * len(topology.levels)
    return Footprint(2, tuple(sorted(profiles)) or (flat,), tuple(uses))
