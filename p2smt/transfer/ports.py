"""The ports that messages of a transfer load, with their rates, read off a cluster.

A message between nodes loads the uplinks at both ends of every level that joins nodes or groups of
them; one inside a node the links of the levels there, and a message that leaves a node none of
those.  Where an entity has a port for each device (or several), these are the device's own; fewer
are shared by devices side by side.  A device that may draw only so much has that as one more port.

A device has a *network* side, the port of the innermost level that joins nodes, and an *inside*
one, that of the innermost level: on these the bound stands.  Levels between and further out can
only make a plan slower, and its replay counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError

OUT, IN = 0, 1
LIMIT, WHOLE = -1, -2
"""Instead of the number of a port: what a device may draw, all ports of a node together."""


@dataclass(frozen=True, order=True)
class Port:
    """One way, out or in, of a port of an entity.

    ``level``: of the topology; ``entity``: its number at that level, ``number``: of the port there;
    a device's own limit has -1.
    """

    level: int
    entity: int
    number: int
    way: int


@dataclass(frozen=True)
class PortMap:
    """The ports of a topology, at nominal rates, or at what sends reach, or at the best of all.

    ``relayed``: for bounds on plans that borrow the cards of any device of a node, all of a node's
    ports are one, whose rate is theirs together.
    """

    topology: Topology
    rates: str = "send"
    relayed: bool = False

    def __post_init__(self) -> None:
        for level in self.topology.levels:
            if level.link.kind is not LinkKind.SWITCH and level.size > 1:
                rule = f"is a {level.link.kind.value}, and a transfer prices switched links alone"
                raise InputError(f"level {level.name} of {self.topology.name[:60]}", rule)

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        return tuple(self.topology.devices_under(j) for j in range(len(self.topology.levels)))

    @cached_property
    def network(self) -> int:
        """The level whose entities are nodes; -1: all devices are in one."""
        return self.topology.node_level

    def node(self, device: int) -> int:
        """The node of a device."""
        return 0 if self.network < 0 else device // self._widths[self.network]

    def of_side(self, device: int, level: int, way: int) -> tuple[Port, ...]:
        """The ports of a device at a level: the link's, and the device's own limit."""
        link, width = self.topology.levels[level].link, self._widths[level]
        entity, offset = divmod(device, width)
        number = offset if link.ports >= width else offset * link.ports // width
        found = [Port(level, entity, number, way)]
        if link.ports < width and link.device_bandwidth_bytes_per_s is not None:
            found.append(Port(level, device, LIMIT, way))
        return tuple(found)

    def sides(self, device: int, way: int) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """The ports on the network side and on the inside, on which bounds stand."""
        last = len(self._widths) - 1
        outside: tuple[Port, ...] = ()
        if self.network >= 0 and self.relayed:
            outside = (Port(self.network, self.node(device), WHOLE, way),)
        elif self.network >= 0:
            outside = self.of_side(device, self.network, way)
        inside = () if last <= self.network else self.of_side(device, last, way)
        return outside, inside

    def node_of(self, port: Port) -> int:
        """The node that a port is of, or in."""
        width = 1 if port.number == LIMIT else self._widths[port.level]
        return self.node(port.entity * width)

    def message(self, source: int, target: int) -> tuple[Port, ...]:
        """All ports that a message loads."""
        apart = self.node(source) != self.node(target)
        levels = range(self.network + 1) if apart else range(self.network + 1, len(self._widths))
        found: list[Port] = []
        for j in levels:
            if source // self._widths[j] != target // self._widths[j]:
                found += (*self.of_side(source, j, OUT), *self.of_side(target, j, IN))
        return tuple(found)

    def rate(self, port: Port) -> Fraction:
        """Bytes per second."""
        link, width = self.topology.levels[port.level].link, self._widths[port.level]
        part = self._part(port.level)
        if port.number == WHOLE:
            return self._whole_rate(port)
        if port.number == LIMIT:
            return Fraction(link.device_bandwidth_bytes_per_s or 0.0).limit_denominator(1) * part
        own = Fraction(link.nominal_bytes_per_s).limit_denominator(1)
        if link.ports >= width:
            own *= Fraction(link.ports, width)
            if link.device_bandwidth_bytes_per_s is not None:
                draw = Fraction(link.device_bandwidth_bytes_per_s).limit_denominator(1)
                own = min(own, draw)
        uplinks = self.topology.uplink_parts(port.level)
        if uplinks is not None:
            own *= Fraction(uplinks[port.entity]).limit_denominator(10**6)
        return own * part

    def _whole_rate(self, port: Port) -> Fraction:
        """All ports of a node together, no more than its devices may draw."""
        link, width = self.topology.levels[port.level].link, self._widths[port.level]
        first = Port(port.level, port.entity, 0, port.way)
        whole = self.rate(first) * min(link.ports, width)
        if link.device_bandwidth_bytes_per_s is None:
            return whole
        limit = Fraction(link.device_bandwidth_bytes_per_s).limit_denominator(1)
        return min(whole, limit * width * self._part(port.level))

    def _part(self, level: int) -> Fraction:
        """The part of the nominal rate that is reached."""
        link = self.topology.levels[level].link
        if self.rates == "nominal":
            return Fraction(1)
        found = link.efficiency_of(RequestKind.SEND.value)
        if self.rates == "best":
            found = link.best_efficiency
        return Fraction(found).limit_denominator(10**6)

    def words(self, port: Port) -> str:
        """Such as ``port 3 of node 9, in``."""
        way = "in" if port.way == IN else "out"
        if port.number == LIMIT:
            return f"device {port.entity}, {way} of its {self.topology.levels[port.level].name}"
        name = self.name(port.level, port.entity)
        if port.number == WHOLE or self._widths[port.level] == 1:
            return f"{name}, {way}"
        return f"port {port.number} of {name}, {way}"

    def name(self, level: int, entity: int) -> str:
        """Such as ``node 9``, or the name of a host or a switch where these have names."""
        hosts = self.topology.hosts
        if hosts is not None and level == self.network and entity in hosts.slots:
            return hosts.at(entity)
        if hosts is not None and level < len(hosts.switches) and hosts.switches[level][entity]:
            return hosts.switches[level][entity]
        return f"{self.topology.levels[level].name} {entity}"


def check_places(topology: Topology, devices: Sequence[int], what: str) -> None:
    """All devices are the cluster's.

    Raises:
        InputError: one is none.
    """
    lacking = sorted(set(devices) - topology.places)
    if lacking:
        given = f"{what} device {lacking[0]}"
        rule = f"{topology.name[:60]} has {topology.installed} devices, and this is none of them"
        raise InputError(given, rule, "give devices of the cluster, or more of it")
