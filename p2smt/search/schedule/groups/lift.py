"""How a group moves the chunks of a collective.

Chunks with the same root and goals are copies of one route.  A symmetry takes routes to routes; the
elements that leave a route may move its copies in any way (:mod:`.actions`), which settles how
everything moves the copies of the routes to which it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry
from p2smt.errors import InputError
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.search.schedule.groups.actions import CopyAction, classes, copy_action, splits
from p2smt.search.schedule.groups.table import GroupTable, Subgroup


@dataclass(frozen=True, slots=True, eq=False)
class RouteOrbit:
    """Routes that a group takes to each other; which element takes the first one to each.

    ``leavers``: the elements that leave the first one.
    """

    route: ChunkRoute
    takers: dict[ChunkRoute, int]
    leavers: Subgroup


def route_image(route: ChunkRoute, one: FabricSymmetry) -> ChunkRoute:
    """Where a symmetry takes a root and its goals; what has no root, -1, stays."""
    if route.root < 0:
        return route
    goals = tuple(sorted([one.ranks[goal] for goal in route.goals]))
    return ChunkRoute(one.ranks[route.root], goals)


def route_orbits(
    table: GroupTable, group: Subgroup, routes: Sequence[ChunkRoute]
) -> tuple[RouteOrbit, ...]:
    """The orbits of routes, in their order.

    Raises:
        InputError: a route is taken to none.
    """
    known, seen, found = set(routes), set[ChunkRoute](), []
    for route in routes:
        if route in seen:
            continue
        takers: dict[ChunkRoute, int] = {}
        leavers = set()
        for element in sorted(group):
            image = route_image(route, table.elements[element])
            takers.setdefault(image, element)
            if image == route:
                leavers.add(element)
        if not takers.keys() <= known:
            raise InputError("a symmetry", "takes a chunk to none of the collective")
        seen |= takers.keys()
        found.append(RouteOrbit(route, takers, frozenset(leavers)))
    return tuple(found)


KnownLeavers = dict[tuple[GroupTable, Subgroup, ChunkRoute], tuple[Subgroup, ...]]
"""Of the elements that leave a route the subgroups that may leave a copy of it."""


def lifts(
    fabric: Fabric,
    table: GroupTable,
    group: Subgroup,
    chunks: Sequence[ChunkRoute],
    most: int,
    known: KnownLeavers | None = None,
) -> Iterator[tuple[ScheduleSymmetry, ...]]:
    """Ways in which a group can move chunks, ``most`` at most: generators, checked.

    ``known``: what was found out about the same fabric, whatever its chunks; it grows.

    ``chunks`` in the order of :func:`p2smt.search.schedule.dissemination.spreads`: copies of a
    route stand together, as many of each.
    """
    routes = tuple(dict.fromkeys(chunks))
    copies = len(chunks) // len(routes)
    orbits = route_orbits(table, group, routes)
    known = {} if known is None else known
    ways = [list(islice(_ways(fabric, table, orbit, copies, known), most)) for orbit in orbits]
    if not all(ways):
        return
    for choice in zip_longest(*ways):
        chosen = [way[-1] if one is None else one for one, way in zip(choice, ways, strict=True)]
        yield tuple(
            _lifted(table, element, routes, orbits, chosen, copies)
            for element in table.generators(group)
        )


def _ways(
    fabric: Fabric, table: GroupTable, orbit: RouteOrbit, copies: int, known: KnownLeavers
) -> Iterator[CopyAction]:
    at = table, orbit.leavers, orbit.route
    if at not in known:
        known[at] = tuple(
            one
            for one in classes(table, orbit.leavers)
            if has_ways_left_alone(fabric, table, one, orbit.route)
        )
    for split in splits(copies, orbit.leavers, known[at]):
        yield copy_action(table, orbit.leavers, split)


def has_ways_left_alone(
    fabric: Fabric, table: GroupTable, group: Subgroup, route: ChunkRoute
) -> bool:
    """Whether a chunk that a group leaves where it is can come to all its goals.

    It comes to a rank by one way, which the elements that leave the rank leave as it is.
    """
    goals: dict[tuple[int, ...], set[int]] = {}
    for goal in route.goals:
        leavers = tuple(n for n in sorted(group) if table.elements[n].ranks[goal] == goal)
        goals.setdefault(leavers, set()).add(goal)
    return all(
        len(leavers) == 1 or those <= _reached(fabric, table, leavers, route.root)
        for leavers, those in goals.items()
    )


def _reached(
    fabric: Fabric, table: GroupTable, leavers: Sequence[int], root: int
) -> frozenset[int]:
    """The ranks to which edges lead from ``root`` that all these elements leave."""
    after: dict[int, list[int]] = {}
    for number, edge in enumerate(fabric.edges):
        if all(table.elements[n].edges[number] == number for n in leavers):
            after.setdefault(edge.source, []).append(edge.target)
    known, frontier = {root}, [root]
    for rank in frontier:
        more = sorted(set(after.get(rank, [])) - known)
        frontier += more
        known.update(more)
    return frozenset(known)


def _lifted(
    table: GroupTable,
    element: int,
    routes: Sequence[ChunkRoute],
    orbits: Sequence[RouteOrbit],
    actions: Sequence[CopyAction],
    copies: int,
) -> ScheduleSymmetry:
    """The symmetry of a schedule that an element is: chunk = place of its route, then its copy."""
    one, place = table.elements[element], {route: n for n, route in enumerate(routes)}
    image = [0] * (len(routes) * copies)
    for orbit, action in zip(orbits, actions, strict=True):
        for route, taker in orbit.takers.items():
            there = route_image(route, one)
            back = table.inverse[orbit.takers[there]]
            turn = int(table.product[back, table.product[element, taker]])
            for copy, moved in enumerate(action.images[turn]):
                image[place[route] * copies + copy] = place[there] * copies + moved
    return ScheduleSymmetry(one.ranks, one.edges, tuple(image), one.reverses)
