"""Footprints that some order of the hosts may have: what the latency of a request depends on.

The members of a group and the nodes are given; how many entities of each level outside nodes a
group spans, and at which levels the edges of its chain meet, is not.  Latencies are linear in the
edges, so their least is at a corner of what is possible; the entities are tried one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.level_use import Footprint, Profile

MOST = 4096


def variants(topology: Topology, footprint: Footprint, kind: RequestKind) -> Iterator[Footprint]:
    """The footprint with other profiles and chains, regular and not; all that may be the least."""
    if kind is RequestKind.SEND:
        yield from _sends(topology, footprint)
        return
    profiles = tuple(_profiles(topology, footprint))
    chains = tuple(_chains(topology, footprint))
    for regular in (False, True):
        for profile in profiles:
            yield replace(footprint, profiles=(profile,), chains=chains[:1], regular=regular)
        for chain in chains[1:]:
            yield replace(footprint, profiles=profiles[:1], chains=(chain,), regular=regular)


def _sends(topology: Topology, footprint: Footprint) -> Iterator[Footprint]:
    """Messages between nodes meet at some level; those inside nodes where they do."""
    inside = [p for p in footprint.profiles if p[topology.node_level] == 1]
    for meeting in range(topology.node_level + 1):
        across = tuple(1 if j < meeting else 2 for j in range(len(topology.levels)))
        yield replace(footprint, profiles=tuple(sorted((*inside, across))))


def _fewest(topology: Topology, nodes: int) -> list[int]:
    """The fewest entities of each level outside nodes that hold so many nodes."""
    assert topology.hosts is not None
    found = []
    for j in range(topology.node_level):
        under = topology.devices_under(j) // topology.devices_under(topology.node_level)
        sizes = sorted(Counter(slot // under for slot in topology.hosts.slots).values())
        count, left = 0, nodes
        while left > 0:
            left -= sizes.pop()
            count += 1
        found.append(count)
    return found


def _entities(topology: Topology) -> list[int]:
    """The entities of each level outside nodes that have hosts."""
    assert topology.hosts is not None
    nodes = topology.devices_under(topology.node_level)
    under = [topology.devices_under(j) // nodes for j in range(topology.node_level)]
    return [len({slot // u for slot in topology.hosts.slots}) for u in under]


def _profiles(topology: Topology, footprint: Footprint) -> Iterator[Profile]:
    """Entities per level, from the outermost: outside nodes all that are possible."""
    node, nodes = topology.node_level, footprint.nodes
    inner = footprint.profiles[0][node:]
    ranges = [
        range(few, min(nodes, most) + 1)
        for few, most in zip(_fewest(topology, nodes), _entities(topology), strict=True)
    ]
    while _size(ranges) > MOST:
        ranges = [range(r[0], r[-1] + 1, max(1, len(r) - 1)) for r in ranges]
    for outer in product(*ranges):
        if list(outer) == sorted(outer):
            yield (*outer, *inner)


def _size(ranges: list[range]) -> int:
    size = 1
    for one in ranges:
        size *= len(one)
    return size


def _chains(topology: Topology, footprint: Footprint) -> Iterator[Profile]:
    """Edges of a chain that meet at each level: the corners of what is possible."""
    node = topology.node_level
    chain = footprint.chains[0]
    edges = sum(chain[: node + 1])
    few = [count - 1 for count in _fewest(topology, footprint.nodes)]
    corners = [sorted({*few[j:], edges}) for j in range(node)]
    for upto in product(*corners):
        if list(upto) == sorted(upto):
            totals = (0, *upto, edges)
            outer = tuple(b - a for a, b in pairwise(totals))
            yield (*outer, *chain[node + 1 :])
