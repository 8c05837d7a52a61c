"""The links that data takes between two devices of a cluster, one message at a time.

A message is one of the level where its ends first differ, and has that level's latency.  It
leaves the source's entity by the port of the source and enters the target's by the port of the
target, at that level and at all levels inside it that are switches; on a ring, torus or full
mesh it goes from sibling to sibling (docs/cost-model.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from p2smt.cluster.library.model import Library, ProtocolRate, family_of
from p2smt.cluster.topology import Algorithm, LinkKind, Piece, Topology
from p2smt.cost.library import ways

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from p2smt.cluster.topology import Level, Piece, Topology
    from p2smt.schedules.lower.lowered_request import GroupSchedule
    from p2smt.schedules.model import Schedule, Step


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
        return level_piece(self.topology, j, self.protocol)

    def _entity(self, j: int, device: int) -> int:
        return device // self._under[j]

    def _number(self, link: DirectedLink) -> int:
        number = self._numbers.setdefault(link, len(self.links))
        if number == len(self.links):
            self.links.append(link)
        return number


@dataclass(slots=True)
class PlacedRoutes(Routes):
    """Routes between ranks, each of which lies on a device of its own."""

    devices: tuple[int, ...] = ()

    def between(self, source: int, target: int) -> Route:
        """The route from the device of one rank to that of another."""
        return Routes.between(self, self.devices[source], self.devices[target])


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


# Groups that run together and meet alike on the links of a cluster: one of each kind says all.
# Groups and links are split into classes until nothing splits them further: groups of a class have
# one schedule, and send each of its messages over links of the same classes; links of a class have
# one bandwidth, and carry equally many groups' messages of each kind (colour refinement).  Then the
# fair rates of :mod:`p2smt.schedules.cost.event_run`, of which there is only one choice, are the
# same throughout a class, and a run of one group of each class is the run of all: on links of a
# class it meets as many transfers as there are, which its routes count (``Route.times``).


Pair = tuple[int, int]
"""Two ranks of a schedule, or two devices: from one to the other."""
PairKind = tuple[int, Pair]
"""What goes between two ranks of the groups of a class."""


@dataclass(slots=True)
class SharedRoutes(Routes):
    """Routes between the devices of one group of each class; links are classes of links."""

    shared: dict[Pair, Route] = field(default_factory=dict)

    def between(self, source: int, target: int) -> Route:
        """The route from one device to another of the same group."""
        return NOWHERE if source == target else self.shared[source, target]


@dataclass(frozen=True, slots=True)
class Alike:
    """One group of each class, and the routes on which they run as all groups do."""

    groups: tuple[GroupSchedule, ...]
    routes: SharedRoutes

    @property
    def steps(self) -> int:
        """How many steps they have."""
        return sum(len(group.schedule.steps) for group in self.groups)


def alike(groups: Sequence[GroupSchedule], routes: Routes) -> Alike:
    """One of each class of disjoint groups, whose schedules have no in-switch operations."""
    schedules = {id(group.schedule): group.schedule for group in groups}
    pairs = {key: pairs_of(schedule) for key, schedule in schedules.items()}
    ways = [_ways(group, pairs[id(group.schedule)], routes) for group in groups]
    kinds = _numbered(id(group.schedule) for group in groups)
    while True:
        met = _met(kinds, ways)
        links = _link_classes(met, routes)
        finer = _numbered(
            (kind, tuple(_seen(route, links) for route in way.values()))
            for kind, way in zip(kinds, ways, strict=True)
        )
        if len(set(finer)) == len(set(kinds)):
            break
        kinds = finer
    chosen = [kinds.index(kind) for kind in dict.fromkeys(kinds)]
    shared = SharedRoutes(routes.topology, routes.protocol, _one_of_each(links, routes))
    for number in chosen:
        devices = groups[number].devices
        for (source, target), route in ways[number].items():
            kind = kinds[number], (source, target)
            shared.shared[devices[source], devices[target]] = _shared(
                route, kind, met, links, routes
            )
    return Alike(tuple(groups[number] for number in chosen), shared)


def pairs_of(schedule: Schedule) -> tuple[Pair, ...]:
    """The pairs of ranks between which anything goes, both ways: room and signals go back."""
    homes: dict[str, int] = {}
    for step in schedule.steps:
        for name in step.awaits:
            homes.setdefault(name, step.rank)
    found = {(step.rank, other) for step in schedule.steps for other in _others(step, homes)}
    return tuple(sorted({*found, *((other, rank) for rank, other in found)}))


def _others(step: Step, homes: dict[str, int]) -> Iterator[int]:
    """The other ranks that a step reads from, writes, sends or signals to."""
    ranks = [span.rank for span in (*step.reads, *step.writes)]
    ranks += [connection.target for connection in (step.send,) if connection]
    ranks += [connection.source for connection in (step.receive,) if connection]
    ranks += [homes.get(name, step.rank) for name in step.posts]
    yield from (rank for rank in ranks if rank != step.rank)


def _ways(group: GroupSchedule, pairs: Iterable[Pair], routes: Routes) -> dict[Pair, Route]:
    at = group.devices
    return {(a, b): routes.between(at[a], at[b]) for a, b in pairs}


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """Each value's class: equal ones have one number."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


def _met(kinds: Sequence[int], ways: Sequence[dict[Pair, Route]]) -> dict[int, Counter[PairKind]]:
    """How often each link is on the way of each kind of message."""
    found: dict[int, Counter[PairKind]] = defaultdict(Counter)
    for kind, way in zip(kinds, ways, strict=True):
        for pair, route in way.items():
            for link in dict.fromkeys(route.links):
                found[link][kind, pair] += 1
    return found


def _link_classes(met: dict[int, Counter[PairKind]], routes: Routes) -> dict[int, int]:
    bandwidths = (routes.links[link].bandwidth_bytes_per_s for link in met)
    contents = (frozenset(counted.items()) for counted in met.values())
    return dict(zip(met, _numbered(zip(bandwidths, contents, strict=True)), strict=True))


def _seen(route: Route, links: dict[int, int]) -> tuple[float, frozenset[int]]:
    """What is known of a route: its latency and the classes of its links."""
    return route.latency_s, frozenset(links[link] for link in route.links)


def _one_of_each(links: dict[int, int], routes: Routes) -> list[DirectedLink]:
    first: dict[int, DirectedLink] = {}
    for link, kind in links.items():
        first.setdefault(kind, routes.links[link])
    return [first[kind] for kind in range(len(first))]


def _shared(
    route: Route,
    kind: PairKind,
    met: dict[int, Counter[PairKind]],
    links: dict[int, int],
    routes: Routes,
) -> Route:
    """The route on classes of links, with how many of its kind meet on each."""
    times = {links[link]: met[link][kind] for link in route.links}
    rates = (routes.links[k].bandwidth_bytes_per_s / met[k][kind] for k in route.links)
    return Route(tuple(times), route.latency_s, min(rates), tuple(times.values()))


# What a single message of a schedule takes on a link, under a topology's library.
# A schedule's steps are not calls: they run inside one kernel, as the steps of a library's rings
# do, and have these rings' latencies and their measured part of the nominal bandwidth.  Of a
# library with one algorithm for each operation these are measured by operation: those that a ring
# runs count.


_FAMILY = family_of(Algorithm.RING)


def level_piece(topology: Topology, j: int, protocol: str) -> Piece:
    """Latency and bandwidth of a level: the link's own, or what its library makes of them."""
    if topology.library:
        return message_piece(topology, j, protocol)
    pieces = topology.levels[j].link.pieces
    return next((p for p in pieces if p.name.lower() == protocol.lower()), pieces[0])


@lru_cache(maxsize=1024)
def message_piece(topology: Topology, j: int, protocol: str) -> Piece:
    """Latency and effective bandwidth of a level's link by a protocol; by the library's first one
    if it has none of that name."""
    library = topology.known_library
    name, one = _protocol(library, protocol)
    latency_s = ways.hop_s(topology, j, name, _FAMILY, *_operations(library))
    rate = ways.protocol_rate(
        topology.levels[j].link, one, _part(topology, j), innermost=_innermost(topology, j)
    )
    return Piece(name, latency_s, rate)


def device_rate(topology: Topology, j: int, protocol: str) -> float | None:
    """What one device sends over a level at most; None: no more than its links."""
    link = topology.levels[j].link
    if not topology.library:
        return link.device_bandwidth_bytes_per_s
    _, one = _protocol(topology.known_library, protocol)
    return ways.device_rate(link, one, _part(topology, j), innermost=_innermost(topology, j))


def _protocol(library: Library, name: str) -> tuple[str, ProtocolRate]:
    named = (one for one in library.protocols if one[0] == name.lower())
    return next(named, library.protocols[0])


def _innermost(topology: Topology, j: int) -> bool:
    return j == len(topology.levels) - 1


def _part(topology: Topology, j: int) -> float:
    """The measured part of a link's bandwidth for rings."""
    names = (Algorithm.RING.value, *_operations(topology.known_library))
    return topology.levels[j].link.efficiency_of(*names)


def _operations(library: Library) -> tuple[str, ...]:
    """What a ring's constants may be listed under but its own name."""
    return library.run_by(Algorithm.RING) if library.fixed else ()
