"""What published measurements are of: the hardware of a group of devices, as the model sees it."""

from __future__ import annotations

import math

import numpy as np

from p2smt.cluster.topology import Level, Topology
from p2smt.parallelism.placement import IntArray
from p2smt.units import format_bandwidth


def outermost_crossed(topology: Topology, groups: IntArray) -> int | None:
    """Index of the outermost level whose links some group uses; None: groups of one device.

    ``groups`` has the device ids of a group in each row.
    """
    for level in range(len(topology.levels)):
        entities = groups // topology.devices_under(level)
        if np.any(entities != entities[:, :1]):
            return level
    return None


def most_in_node(topology: Topology, groups: IntArray) -> int:
    """The largest number of members that a group has in one node."""
    nodes = np.sort(groups // topology.devices_under(topology.node_level), axis=1)
    runs = np.cumsum(np.diff(nodes, axis=1, prepend=-1) > 0, axis=1)
    return max(int(np.bincount(row).max()) for row in runs)


def system_name(topology: Topology, level: int, local: int = 0) -> str:
    """The hardware of groups that cross no level outside this one, such as

        8 x nvlink4 switch 450 GB/s, infiniband 400 GB/s

    How many devices a node has, and what joins them (the rate of one); then, of groups over
    several nodes, each network level that they cross, the innermost first (the rate of a node, or
    of what that level joins).  Groups of fewer members in a node (``local``; 0: all devices) are
    named apart, ``2 of 8 x ..``: they share its links and cards with others.  So are those on a
    node of which a part is used: its links are whole, its cards those that the part reaches.
    Empty: a link does not say its fabric, so nobody knows what it is.
    """
    node = topology.node_level
    inside = [one for one in topology.levels[node + 1 :] if one.size > 1]
    crossed = [one for one in topology.levels[level : node + 1] if one.size > 1]
    if any(not one.link.fabric for one in (*inside, *crossed)):
        return ""
    devices = math.prod(level.full_size for level in topology.levels[node + 1 :])
    local = local or math.prod(topology.sizes[node + 1 :])
    part = f"{local} of " if local < devices else ""
    links = " and ".join(f"{one.link.fabric} {one.link.kind.value} {_rate(one)}" for one in inside)
    networks = [f"{one.link.fabric} {_rate(one)}" for one in reversed(crossed)]
    return ", ".join((f"{part}{devices} x {links}" if inside else f"{devices} device", *networks))


def _rate(level: Level) -> str:
    return format_bandwidth(level.link.ports * level.link.nominal_bytes_per_s)
