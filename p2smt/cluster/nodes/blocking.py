"""Whether uplinks can be the bottleneck: where none can, every order of hosts is as fast."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError


def blocking_levels(topology: Topology) -> tuple[str, ...]:
    """The levels outside the nodes of which some uplink is slower than its nodes together.

    Counted are the nodes that are there by name; a topology without names has none.
    """
    hosts, depth = topology.hosts, topology.node_level
    if hosts is None:
        return ()
    node_rate = _rate(topology, depth)
    found = []
    for j, level in enumerate(topology.levels[:depth]):
        under = math.prod(topology.sizes[j + 1 : depth + 1])
        parts, rate = topology.uplink_parts(j), _rate(topology, j)
        counts = Counter(slot // under for slot in hosts.slots)
        if any(
            (1 if parts is None else parts[entity]) * rate < count * node_rate * (1 - 1e-9)
            for entity, count in counts.items()
        ):
            found.append(level.name)
    return tuple(found)


def _rate(topology: Topology, level: int) -> float:
    """What the uplink of an entity carries in one direction, at the best of its efficiencies."""
    link = topology.levels[level].link
    return link.ports * link.nominal_bytes_per_s * link.best_efficiency


def unstated_levels(topology: Topology) -> tuple[str, ...]:
    """The levels whose bandwidth nobody stated; where there are any no time means anything.

    A level of one entity carries nothing.
    """
    if topology.hosts is None:
        return ()
    sizes = dict(zip(topology.names, topology.sizes, strict=True))
    return tuple(name for name in topology.hosts.assumed if sizes[name] > 1)


def check_stated(topology: Topology, crossed: Collection[str] | None = None) -> None:
    """Whether times on a topology mean anything, of groups that cross these levels (None: all).

    Raises:
        InputError: nobody stated the bandwidth of some of them.
    """
    unstated = unstated_levels(topology)
    if names := [name for name in unstated if crossed is None or name in crossed]:
        remedy = f"give --uplink {names[-1]}=400GB/s or --oversubscription {names[-1]}=4"
        raise InputError(
            f"the bandwidth of {' and '.join(names)} uplinks in {topology.name}",
            "is not stated, so no time is told",
            f"{remedy} to topology import; solve --hosts and compare order hosts without it",
        )
