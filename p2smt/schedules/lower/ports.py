"""What the ports of a cluster mean for schedules: rings for each, and who shares no memory.

Between entities a message leaves by the port of the device that sends it (docs/schedule-cost.md).
So as many rings go round a group as it reaches ports: round the same entities, but each enters and
leaves them at other devices.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from p2smt.cluster.topology import LinkKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.cluster.topology import Topology

HOSTS = ("node", "server", "host", "machine")
"""Names of levels whose entities are machines, on which devices reach each other's memory."""


def machine_of(topology: Topology, device: int) -> int:
    """The machine that a device is in.

    Where no level is named so, the devices of an entity of the innermost level but one.
    """
    levels = topology.levels
    named = [j for j, level in enumerate(levels) if level.name in HOSTS]
    if not named and len(levels) == 1:
        return 0
    return device // topology.devices_under(named[-1] if named else len(levels) - 2)


def rings_of(topology: Topology, devices: Sequence[int]) -> list[list[int]]:
    """The orders in which rings go round devices, entity by entity, by their places in the list."""
    ascending = sorted(devices)
    count = _most_ports(topology, ascending)
    places = {device: place for place, device in enumerate(devices)}
    return [
        [places[device] for device in _turned(topology, 0, ascending, ring, count)]
        for ring in range(count)
    ]


def _most_ports(topology: Topology, devices: Sequence[int]) -> int:
    """The most ports of one entity that the devices under it reach, if they need any of them."""
    most = 1
    for j, level in enumerate(topology.levels):
        under = topology.devices_under(j)
        entities = [list(part) for part in _parts(devices, under)]
        if level.link.kind is LinkKind.SWITCH and len(entities) > 1:
            ports = level.link.ports
            reached = ({device % under * ports // under for device in part} for part in entities)
            most = max(most, *map(len, reached))
    return most


def _parts(devices: Sequence[int], under: int) -> Iterator[Iterator[int]]:
    """Ascending devices by the entity they are in."""
    return (part for _, part in groupby(devices, key=lambda device: device // under))


def _turned(
    topology: Topology, level: int, devices: Sequence[int], ring: int, count: int
) -> list[int]:
    """The devices entity by entity, the entities in an order that begins the further on the
    higher the ring's number."""
    if level == len(topology.levels):
        return list(devices)
    parts = [list(part) for part in _parts(devices, topology.devices_under(level))]
    first = ring * len(parts) // count
    return [
        device
        for part in (*parts[first:], *parts[:first])
        for device in _turned(topology, level + 1, part, ring, count)
    ]
