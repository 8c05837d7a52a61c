"""How the groups of one step use the links of each level, whatever they compute.

A footprint says, per level, how many entities a group spans, how many members it has under
one entity, and how the traffic of all concurrent groups meets on the worst port or link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.parallelism.placement import FloatArray, IntArray

Profile = tuple[int, ...]
"""A number for each level, from the outermost."""

PortProfile = tuple[tuple[int, float], ...]
"""Load of one port: (members a group has under the entity, summed shares of such groups)."""


class Along(Enum):
    """What the messages of an algorithm follow, if that depends on the order of the members.

    ``RING``: from each member to the next, the last one's to the first; ``PATH``: a ring without
    that edge; ``TREE``: an all-reduce by the two trees of :mod:`p2smt.cost.loads.rings`.
    """

    RING = "ring"
    PATH = "path"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class LevelUse:
    """Use of one level by all groups of a step together.

    The worst link's load (switch levels: the worst port's) when every edge of a ring carries one
    unit (``ring``), every edge but the one into the first member, or out of it (``path``), and
    for an all-reduce of one unit by double binary trees (``tree``; infinite between siblings
    that are nodes and meet without a switch).  Rings run side by side where links allow.  A
    group's ring leaves an entity once per run of its members there, in cyclic order.
    ``ring_drawn``, ``path_drawn``, ``tree_drawn``: the same for one device, as an equal share of
    what its group sends out of the entity; between siblings without a switch only of groups that
    span nothing outside their level.

    Switch levels: ``ports`` lists the distinct port profiles.  Other levels: ``pairs`` is the worst
    link's load when every ordered pair of members exchanges one unit.  ``least_inside`` is the
    smallest number of members that a group has under one entity; ``closed_inside`` the same of
    groups that span siblings and nothing outside their level, 0 without such a group.  A send's
    messages are each one device's: 1.
    """

    level: int
    ports: tuple[PortProfile, ...] = ()
    least_inside: int = 0
    ring: float = 0.0
    path: float = 0.0
    tree: float = 0.0
    pairs: float = 0.0
    closed_inside: int = 0
    ring_drawn: float = 0.0
    path_drawn: float = 0.0
    tree_drawn: float = 0.0

    def port_load(self, crossing: Callable[[int], float]) -> float:
        """Worst port load, where a group with q members inside sends ``crossing(q)``."""
        return max((sum(w * crossing(q) for q, w in port) for port in self.ports), default=0.0)

    def carried(self, along: Along) -> float:
        """Load of the worst link or port by messages along this."""
        match along:
            case Along.RING:
                return self.ring
            case Along.PATH:
                return self.path
            case Along.TREE:
                return self.tree
        assert_never(along)

    def drawn(self, along: Along) -> float:
        """The part of it that one device draws."""
        match along:
            case Along.RING:
                return self.ring_drawn
            case Along.PATH:
                return self.path_drawn
            case Along.TREE:
                return self.tree_drawn
        assert_never(along)


@dataclass(frozen=True, slots=True)
class Footprint:
    """All groups of one step.

    ``members`` per group, of the largest where there are several sizes (``mixed``): loads are then
    in units of what the largest send, and algorithms are left out whose load does not follow (of
    the others a ring's alone depends on the size).  ``profiles`` the distinct vectors of entities
    a group spans, per level from the outermost; ``chains`` those of how many edges of a group's
    chain meet at each level; ``uses`` the levels on which there is traffic.  ``nodes`` is the
    largest number of nodes of a group, ``local`` of its members in one node.  ``regular`` if groups
    have as many members in each entity it spans, and a ring meets these one after another.
    """

    members: int
    profiles: tuple[Profile, ...]
    chains: tuple[Profile, ...]
    uses: tuple[LevelUse, ...]
    nodes: int
    local: int
    regular: bool = True
    mixed: bool = False


def new_entities(profile: Profile) -> Profile:
    """Entities that each level adds to a profile: edges of a sorted chain that meet there."""
    return tuple(b - a for a, b in zip((1, *profile), profile, strict=False))


def message_footprint(
    topology: Topology, members: int, meeting: Sequence[int], uses: tuple[LevelUse, ...]
) -> Footprint:
    """Footprint of single messages; ``meeting`` are the levels at which their ends differ first.

    A message pays its latency at that level: a profile for each of them.
    """
    levels = range(len(topology.levels))
    profiles = [tuple(1 if i < j else 2 for i in levels) for j in meeting]
    found = tuple(sorted(profiles)) or ((1,) * len(levels),)
    nodes = 2 if any(j <= topology.node_level for j in meeting) else 1
    chains = tuple(new_entities(profile) for profile in found)
    return Footprint(members, found, chains, uses, nodes, local=1)


# Load of messages between the siblings of one ring, torus or full-mesh level.
# Messages go by the shortest path, dimension by dimension; half-way ties take the positive
# direction.  A ring is a torus of one dimension.


def worst_link(level: Level, source: IntArray, target: IntArray, weight: FloatArray) -> float:
    """The largest load on one link in one direction.

    ``source`` and ``target`` are sibling indices plus ``size`` times the parent entity, so
    that several parents can be routed at once; ``weight`` is the load of each message.
    """
    if not len(source):
        return 0.0
    if level.link.kind is LinkKind.FULL_MESH:
        _, link = np.unique(source * level.size + target % level.size, return_inverse=True)
        return float(np.bincount(link, weights=weight).max())
    dims = level.link.torus or (level.size,)
    return max(_dimension_load(dims, d, source, target, weight) for d in range(len(dims)))


def _coordinate(index: IntArray, dims: tuple[int, ...], d: int) -> tuple[IntArray, int]:
    stride = int(np.prod(dims[d + 1 :], dtype=np.int64))
    return index // stride % dims[d], stride


def _dimension_load(
    dims: tuple[int, ...], d: int, source: IntArray, target: IntArray, weight: FloatArray
) -> float:
    """Largest load on the links along dimension d: earlier dimensions are already corrected."""
    at, stride = _coordinate(source, dims, d)
    to, _ = _coordinate(target, dims, d)
    ahead = (to - at) % dims[d]
    forward = 2 * ahead <= dims[d]
    hops = np.where(forward, ahead, dims[d] - ahead)
    # Nodes on the way: coordinates before d from the target, after d from the source.
    line = target // (stride * dims[d]) * (stride * dims[d]) + source % stride
    loads = np.zeros(2 * (int(max(source.max(), target.max())) + int(np.prod(dims)) + 1))
    for hop in range(int(hops.max(initial=0))):
        moving = hops > hop
        step = np.where(forward, hop, -hop)
        node = line + (at + step) % dims[d] * stride
        np.add.at(loads, (2 * node + forward)[moving], weight[moving])
    return float(loads.max())
