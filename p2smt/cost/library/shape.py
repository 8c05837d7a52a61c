"""What a library's rule of choice sees of a group: nominal rates of hardware, and how it lies."""

from __future__ import annotations

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.library.graphs import GroupShape
from p2smt.cost.loads.level_use import Footprint


def group_shape(topology: Topology, footprint: Footprint) -> GroupShape:
    """The shape of a footprint's groups, the largest where they differ."""
    node = topology.node_level
    inner = [level.link for level in topology.levels[node + 1 :]]
    cards, card_rate = _cards(topology, footprint.local)
    return GroupShape(
        footprint.members,
        footprint.nodes,
        footprint.local,
        next((link.fabric for link in inner if link.fabric), ""),
        topology.levels[node].link.fabric if node >= 0 else "",
        _device_rate(topology, footprint.local),
        cards * card_rate,
        cards,
        _reduced_in_switches(topology, footprint),
    )


def _reduced_in_switches(topology: Topology, footprint: Footprint) -> bool:
    """Whether every level that the groups cross inside a node has switches that reduce."""
    inner = [use.level for use in footprint.uses if use.level > topology.node_level]
    return bool(inner) and all(topology.levels[j].link.in_switch_members > 0 for j in inner)


def _cards(topology: Topology, local: int) -> tuple[int, float]:
    """The network cards that so many members of a node reach, and the rate of each."""
    node = topology.node_level
    if node < 0:
        return 1, 0.0
    link, under = topology.levels[node].link, topology.devices_under(node)
    reached = max(1, min(link.ports, -(-link.ports * local // under)))
    return reached, link.nominal_bytes_per_s


def _device_rate(topology: Topology, local: int) -> float:
    """Nominal rate of one device's links inside its node, in one direction."""
    last = topology.levels[-1].link
    if topology.node_level == len(topology.levels) - 1:
        return _cards(topology, 1)[1]
    if last.kind is LinkKind.FULL_MESH:
        return last.nominal_bytes_per_s * max(1, min(local, topology.levels[-1].size) - 1)
    if last.device_bandwidth_bytes_per_s is not None:
        return last.device_bandwidth_bytes_per_s
    return last.nominal_bytes_per_s * last.ports
