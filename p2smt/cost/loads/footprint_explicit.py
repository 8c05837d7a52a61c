"""Footprints of arbitrary device groups, found device by device.

Used for layouts that no parallelism matrix expresses: the default rank order, or a rank
list of the user's.  On the groups of a matrix it agrees with the closed form.

The groups of one step may be of several sizes.  They run at the same time and by one algorithm, so
what they send over a link adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.loads.explicit_siblings import sibling_use
from p2smt.cost.loads.level_use import (
    Footprint,
    LevelUse,
    PortProfile,
    Profile,
    message_footprint,
)
from p2smt.cost.loads.rings import chain_steps
from p2smt.cost.loads.routing import FloatArray, worst_link
from p2smt.cost.loads.step_groups import StepGroups, entity_of, sent_by
from p2smt.parallelism.placement import IntArray


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
        groups = every.rows
        where, count = entity_of(topology, groups, j)
        crossing = count[where] < groups.shape[1]
        if not crossing.any():
            return None
        ports, under = topology.levels[j].link.ports, topology.devices_under(j)
        port = device_ports(topology, groups, j)
        pairs = np.unique(np.stack([where[crossing], port[crossing]]), axis=1)
        reached = np.bincount(pairs[0], minlength=len(count)) * max(ports // under, 1)
        share = 1.0 / reached[pairs[0]] / _parts(topology, j, pairs[1] // ports)
        sent = sent_by(topology, every, j, len(count))
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
