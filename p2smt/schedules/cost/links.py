"""The links that data takes between two devices of a cluster, one message at a time.

A message is one of the level where its ends first differ, and has that level's latency.  It
leaves the source's entity by the port of the source and enters the target's by the port of the
target, at that level and at all levels inside it that are switches; on a ring, torus or full
mesh it goes from sibling to sibling (docs/cost-model.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.cluster.topology import LinkKind
from p2smt.schedules.cost.effective import device_rate, message_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.cluster.topology import Level, Piece, Topology


class DirectedLink(NamedTuple):
    """One direction of a port, of the link between two siblings, or of a device's share.

    level: name of the level it belongs to.
    entity: the entity that it leaves or enters, numbered over the whole cluster.
    part: which ports of the entity, or which device's share; empty if there is only one.
    direction: "out", "in", or "to N" on the way to sibling N.
    """

    level: str
    entity: int
    part: str
    direction: str
    bandwidth_bytes_per_s: float

    def __str__(self) -> str:
        return " ".join(f"{self.level} {self.entity} {self.part} {self.direction}".split())


class Route(NamedTuple):
    """The links of a message, by number, its latency and the least of their bandwidths.

    times: where it stands for several that run alike, how many of them are on each link, and the
        bandwidth is what each of them gets; empty: it is one.
    """

    links: tuple[int, ...]
    latency_s: float
    bandwidth_bytes_per_s: float
    times: tuple[int, ...] = ()


NOWHERE = Route((), 0.0, math.inf)


@dataclass(slots=True)
class Routes:
    """Routes on a topology, and the links met so far (their numbers are positions in ``links``).

    protocol: name of the (latency, bandwidth) pairs used; a level without it uses its first.
    """

    topology: Topology
    protocol: str
    links: list[DirectedLink] = field(default_factory=list)
    _numbers: dict[DirectedLink, int] = field(default_factory=dict)
    _routes: dict[tuple[int, int], Route] = field(default_factory=dict)
    _under: tuple[int, ...] = field(init=False)
    _parts: tuple[tuple[float, ...] | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Counts the devices under an entity of each level; the part of its uplink's bandwidth."""
        levels = range(len(self.topology.levels))
        self._under = tuple(self.topology.devices_under(j) for j in levels)
        self._parts = tuple(self.topology.uplink_parts(j) for j in levels)

    def between(self, source: int, target: int) -> Route:
        """The route from one device to another."""
        if source == target:
            return NOWHERE
        found = self._routes.get((source, target))
        if found is None:
            found = self._routes[source, target] = self._route(source, target)
        return found

    def joined(self, routes: Sequence[Route]) -> Route:
        """What a switch does in one go, as it reduces or multicasts: each link is used once."""
        links = dict.fromkeys(link for route in routes for link in route.links)
        narrowest = min((route.bandwidth_bytes_per_s for route in routes), default=math.inf)
        latency = max((route.latency_s for route in routes), default=0.0)
        return Route(tuple(links), latency, narrowest)

    def _route(self, source: int, target: int) -> Route:
        outermost = next(
            j
            for j in range(len(self.topology.levels))
            if self._entity(j, source) != self._entity(j, target)
        )
        links = list(self._links(outermost, source, target))
        latency = self._piece(outermost).latency_s
        narrowest = min(link.bandwidth_bytes_per_s for link in links)
        return Route(tuple(map(self._number, links)), latency, narrowest)

    def _links(self, outermost: int, source: int, target: int) -> Iterator[DirectedLink]:
        """From the source outwards, across, and inwards to the target."""
        levels = self.topology.levels
        switches = [
            j for j in range(outermost, len(levels)) if levels[j].link.kind is LinkKind.SWITCH
        ]
        for j in reversed(switches):
            yield from self._uplink(j, source, "out")
        if levels[outermost].link.kind is not LinkKind.SWITCH:
            ends = self._entity(outermost, source), self._entity(outermost, target)
            yield from self._cap(outermost, source, "out")
            yield from self._hops(outermost, *ends)
            yield from self._cap(outermost, target, "in")
        for j in switches:
            yield from self._uplink(j, target, "in")

    def _uplink(self, j: int, device: int, direction: str) -> Iterator[DirectedLink]:
        """A device's ports of its entity at a level, and the most that it draws from them."""
        level, under = self.topology.levels[j], self._under[j]
        ports, entity, at = level.link.ports, device // under, device % under
        width = max(1, ports // under)
        first = at * ports // under
        part = "" if ports == width else f"port {first}"
        if 1 < width < ports:
            part = f"ports {first}-{first + width - 1}"
        parts = self._parts[j]
        bandwidth = width * self._piece(j).bandwidth_bytes_per_s
        bandwidth *= 1.0 if parts is None else parts[entity]
        yield DirectedLink(level.name, entity, part, direction, bandwidth)
        yield from self._cap(j, device, direction)

    def _cap(self, j: int, device: int, direction: str) -> Iterator[DirectedLink]:
        """The most that a device sends or receives over a level, as a link of its own."""
        level, entity = self.topology.levels[j], device // self._under[j]
        if draw := device_rate(self.topology, j, self.protocol):
            yield DirectedLink(level.name, entity, f"device {device}", direction, draw)

    def _hops(self, j: int, source: int, target: int) -> Iterator[DirectedLink]:
        level, bandwidth = self.topology.levels[j], self._piece(j).bandwidth_bytes_per_s
        here = source
        for there in siblings_between(level, source, target):
            yield DirectedLink(level.name, here, "", f"to {there}", bandwidth)
            here = there

    def _piece(self, j: int) -> Piece:
        """Latency and bandwidth of a level: the link's own, or what its library makes of them."""
        if self.topology.library:
            return message_piece(self.topology, j, self.protocol)
        pieces = self.topology.levels[j].link.pieces
        return next((p for p in pieces if p.name.lower() == self.protocol.lower()), pieces[0])

    def _entity(self, j: int, device: int) -> int:
        return device // self._under[j]

    def _number(self, link: DirectedLink) -> int:
        number = self._numbers.setdefault(link, len(self.links))
        if number == len(self.links):
            self.links.append(link)
        return number


def siblings_between(level: Level, source: int, target: int) -> Iterable[int]:
    """The entities that a message visits after ``source``, to ``target``, which is its sibling.

    The shortest way, dimension by dimension; half-way ties go in the positive direction.
    """
    if level.link.kind is LinkKind.FULL_MESH:
        yield target
        return
    dims = level.link.torus or (level.size,)
    here, stride = source, level.size
    for length in dims:
        stride //= length
        ahead = (target // stride - here // stride) % length
        step = 1 if 2 * ahead <= length else -1
        for _ in range(min(ahead, length - ahead)):
            at = here // stride % length
            here += ((at + step) % length - at) * stride
            yield here
