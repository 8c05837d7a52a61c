"""Groups that run together and meet alike on the links of a cluster: one of each kind says all.

Groups and links are split into classes until nothing splits them further: groups of a class have
one schedule, and send each of its messages over links of the same classes; links of a class have
one bandwidth, and carry equally many groups' messages of each kind (colour refinement).  Then the
fair rates of :mod:`p2smt.schedules.cost.sharing`, of which there is only one choice, are the same
throughout a class, and a run of one group of each class is the run of all: on links of a class it
meets as many transfers as there are, which its routes count (``Route.times``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.cost.links import NOWHERE, DirectedLink, Route, Routes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from p2smt.schedules.lower.together import GroupSchedule
    from p2smt.schedules.model import Schedule, Step

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
