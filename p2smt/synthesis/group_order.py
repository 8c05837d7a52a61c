"""What to try in which order: groups of symmetries, from the largest of use down to none."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise, zip_longest
from math import factorial, prod

from p2smt.collectives.contract import RULES
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.symmetries import (
    Effort,
    FabricSymmetry,
    all_permutations,
    fabric_symmetries,
    named_symmetry,
    permuted,
    symmetry_of_ranks,
)
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.result import SearchLimits, StopWatch
from p2smt.synthesis.schedule_replay import spreads
from p2smt.synthesis.subgroups import (
    TRIVIAL,
    GroupTable,
    Subgroup,
    SymmetryGroup,
    Traits,
    all_subgroups,
    group_table,
    subgroups_of_use,
    traits_of,
    with_reversal,
)

ThresholdStep = tuple[SymmetryGroup, tuple[ScheduleSymmetry, ...]]
"""A group, and generators of it that say how it moves chunks."""

_SolverTable = tuple[GroupTable, Subgroup]
MAX_ORDER = 1024
"""Of a group whose elements are listed; of a larger one a part is used."""
COMMUTING = 32
"""Up to so many ranks a group that commutes is grown at random before the levels are looked at."""
MOST_OF_AN_ORDER = 4
MOST_WAYS = 3
_SAME_ROUTES = {"reduce_scatter": "allgather", "reduce": "broadcast"}


@dataclass(slots=True, eq=False)
class ThresholdMemory:
    """What the ladders of one fabric, collective and root have in common, whatever the chunks.

    ``groups``: those of use by their order; ``wreaths``: those that are not listed.  None: they
    were not sought to the end yet.
    """

    groups: list[list[_SolverTable]] | None = None
    wreaths: tuple[SymmetryGroup, ...] | None = None
    leavers: KnownLeavers = field(default_factory=dict)


def ladder(
    fabric: Fabric,
    collective: str,
    chunks: int,
    root: int = 0,
    watch: StopWatch | None = None,
    memory: ThresholdMemory | None = None,
) -> Iterator[ThresholdStep]:
    """Groups from the largest of use down to that without symmetries, the last one always.

    Each comes with symmetries of the chunks as :func:`.spreads` numbers them; those of
    reduce-scatter and reduce are the chunks of all-gather and broadcast, to which they are the
    reverse, on the fabric that is given.  The chunks of an all-reduce are 0, 1, .., and time may
    be reversed.  A group may come several times, with other ways to move the chunks.  Once the
    time of ``watch`` is over only that without symmetries comes.  ``memory``: of the same fabric,
    collective and root; what is in it is not sought again.

    Raises:
        InputError: no collective that is known.
    """
    routes = _routes(fabric, collective, chunks, root)
    adds = collective == "allreduce"
    fixed = [root] if collective in RULES and RULES[collective].rooted else []
    time = watch or StopWatch.start(SearchLimits())
    memory = ThresholdMemory() if memory is None else memory
    for groups in _groups(fabric, fixed, adds, time, memory):
        if time.expired():
            break
        ways = [lifts(fabric, *group, routes, MOST_WAYS, memory.leavers) for group in groups]
        yield from islice(_in_turn(groups, ways), MOST_OF_AN_ORDER)
    yield SymmetryGroup((), 1), ()


def _routes(fabric: Fabric, collective: str, chunks: int, root: int) -> Sequence[ChunkRoute]:
    """The chunks; those of an all-reduce are copies of a route that no symmetry changes."""
    if collective == "allreduce":
        return (ChunkRoute(-1, ()),) * chunks
    return spreads(_SAME_ROUTES.get(collective, collective), fabric.ranks, chunks, root)


def _groups(
    fabric: Fabric, fixed: Sequence[int], reversing: bool, time: StopWatch, memory: ThresholdMemory
) -> list[list[_SolverTable]]:
    """The groups of use by their order; none where the time came."""
    if memory.groups is None:
        tables = useful_tables(fabric, fixed, reversing=reversing, watch=time)
        found = [] if time.expired() else by_order(tables, fixed)
        if time.expired():
            return found
        memory.groups = found
    return memory.groups


def useful_tables(
    fabric: Fabric, fixed: Sequence[int], *, reversing: bool, watch: StopWatch | None = None
) -> tuple[GroupTable, ...]:
    """The group of all symmetries that leave ``fixed``, or parts of it that are not too large."""
    if even := even_groups(fabric, fixed, MAX_ORDER, reversing=reversing):
        return tuple(_largest(fabric, group) for group in even)
    effort = Effort(watch=watch)
    generators = fabric_symmetries(fabric, fixed=fixed, reversing=reversing, effort=effort)
    whole = group_table(fabric, generators, MAX_ORDER, watch)
    if whole is not None:
        return (whole,)
    found = level_tables(fabric, watch, reversing) if not fixed and fabric.ranks > COMMUTING else ()
    if found:
        return found
    part: Sequence[FabricSymmetry] = commuting_group(
        fabric, [one for one in generators if not one.reverses], fixed, watch
    )
    if reversing:
        more = fabric_symmetries(fabric, commuting=part, reversing=True, effort=Effort(watch=watch))
        part = [*part, *(one for one in more if one.reverses)]
    table = _largest(fabric, part)
    if fixed or len(table.elements) >= fabric.ranks:
        return (table,)
    return (*level_tables(fabric, watch, reversing), table)


def level_tables(
    fabric: Fabric, watch: StopWatch | None, reversing: bool
) -> tuple[GroupTable, ...]:
    """The groups of shifts of the levels, with a map that turns all edges round."""
    turn = permuted(fabric, [], reverses=True) if reversing else None
    turns = () if turn is None else (turn,)
    groups = level_shifts(fabric, MAX_ORDER // (1 + len(turns)))
    tables = (group_table(fabric, [*one, *turns], MAX_ORDER, watch) for one in groups)
    return tuple(table for table in tables if table is not None)


def _largest(fabric: Fabric, generators: Sequence[FabricSymmetry]) -> GroupTable:
    """The group of these, or of the first of them if that of all is too large."""
    found = group_table(fabric, generators, MAX_ORDER)
    return _largest(fabric, generators[:-1]) if found is None else found


def by_order(tables: Sequence[GroupTable], fixed: Sequence[int]) -> list[list[_SolverTable]]:
    """The groups of use with more than one element, those of one order together."""
    found: list[_SolverTable] = []
    known: set[object] = set()
    for table in tables:
        traits = traits_of(table, fixed)
        every = _of_use(table, traits)
        found += [(table, one) for one in every if traits.kind(one) not in known]
        known |= {traits.kind(one) for one in every}
    found.sort(key=lambda one: -len(one[1]))
    return [list(same) for _, same in groupby(found, key=lambda one: len(one[1]))]


def _of_use(table: GroupTable, traits: Traits) -> list[Subgroup]:
    found = []
    for group in subgroups_of_use(table, traits):
        found += [*with_reversal(table, traits, group), group]
    return [one for one in found if one != TRIVIAL]


def _in_turn(
    groups: Sequence[_SolverTable],
    ways: Sequence[Iterator[tuple[ScheduleSymmetry, ...]]],
) -> Iterator[ThresholdStep]:
    """The first way of each group, then the second of each."""
    for row in zip_longest(*ways):
        for (table, group), way in zip(groups, row, strict=True):
            if way is not None:
                yield table.named(group), way


# How a group can move copies of one thing: as the cosets of its subgroups.
# Copies that a group moves fall into orbits; on an orbit it acts as on the cosets of the subgroup
# that leaves a copy, whose number is that of the orbit's copies.


@dataclass(frozen=True, slots=True, eq=False)
class CopyAction:
    """How the elements of a group move copies 0, 1, ..: ``images[element][copy]``."""

    images: dict[int, tuple[int, ...]]


def classes(table: GroupTable, group: Subgroup) -> tuple[Subgroup, ...]:
    """Subgroups, one of those that the group takes to each other; the smallest first."""
    seen: set[Subgroup] = set()
    found = []
    for one in reversed(all_subgroups(table, group)):
        if one not in seen:
            found.append(one)
            seen |= {_conjugate(table, one, by) for by in group}
    return tuple(found)


def _conjugate(table: GroupTable, group: Subgroup, by: int) -> Subgroup:
    back = table.inverse[by]
    return frozenset(int(table.product[table.product[by, n], back]) for n in group)


def splits(copies: int, group: Subgroup, leavers: Sequence[Subgroup]) -> Iterator[list[Subgroup]]:
    """Ways to make so many copies of orbits: for each orbit the subgroup that leaves a copy.

    ``leavers`` are those allowed; ways with the most copies in large orbits come first.
    """
    sizes = [len(group) // len(one) for one in leavers]
    chosen: list[int] = []
    left, least = copies, 0  # copies that have no orbit yet, and the first leaver to try for them
    while True:
        if left == 0:
            yield [leavers[number] for number in chosen]
        fits = (n for n in range(least, len(sizes)) if sizes[n] <= left)
        if left and (number := next(fits, None)) is not None:
            chosen.append(number)
            left, least = left - sizes[number], number
        elif chosen:
            last = chosen.pop()
            left, least = left + sizes[last], last + 1
        else:
            return


def copy_action(table: GroupTable, group: Subgroup, leavers: Sequence[Subgroup]) -> CopyAction:
    """The action on the cosets of each of ``leavers``, numbered one orbit after the other."""
    images: dict[int, list[int]] = {element: [] for element in group}
    first = 0
    for one in leavers:
        cosets = _cosets(table, group, one)
        place = {element: n for n, coset in enumerate(cosets) for element in coset}
        for element, image in images.items():
            image += [first + place[int(table.product[element, min(c)])] for c in cosets]
        first += len(cosets)
    return CopyAction({element: tuple(image) for element, image in images.items()})


def _cosets(table: GroupTable, group: Subgroup, one: Subgroup) -> list[frozenset[int]]:
    """The left cosets of a subgroup, that of the identity first."""
    found: list[frozenset[int]] = []
    left = sorted(group)
    while left:
        coset = frozenset(int(table.product[left[0], n]) for n in one)
        found.append(coset)
        left = [n for n in left if n not in coset]
    return found


# Regular groups of fabrics whose ranks can be permuted at will, which are too many to list.


MOST_IMAGES = 2**23
"""Images of edges, over all elements of a group."""


def even_groups(
    fabric: Fabric, fixed: Sequence[int], most: int, *, reversing: bool
) -> tuple[tuple[FabricSymmetry, ...], ...]:
    """Generators of groups that take each rank but ``fixed`` to each other by one element.

    First the shifts; then, where the number of ranks has several prime factors, the shifts of
    digits.  Where these have too many elements, some of them only.  Empty: the ranks cannot be
    permuted at will, or all permutations are ``most`` or fewer.
    """
    free = [rank for rank in range(fabric.ranks) if rank not in set(fixed)]
    if len(free) < 20 and factorial(len(free)) * (1 + reversing) <= most:
        return ()
    every = all_permutations(fabric, fixed, reversing=reversing)
    if not every:
        return ()
    turns = [one for one in every if one.reverses]
    most = min(most // (1 + reversing), MOST_IMAGES // len(fabric.edges))
    primes = list(_primes(len(free)))
    shapes = [[len(free)], primes] if len(primes) > 1 else [[len(free)]]
    groups = [_shifts(fabric, free, shape, most) for shape in shapes]
    return tuple((*group, *turns) for group in groups if group)


def _shifts(
    fabric: Fabric, free: Sequence[int], shape: Sequence[int], most: int
) -> list[FabricSymmetry]:
    """Shifts of the digits of numbers with so many values each, as far as they are ``most``."""
    found, order = [], 1
    for digit, size in enumerate(shape):
        step = next(n for n in range(1, size + 1) if size % n == 0 and order * size // n <= most)
        one = permuted(fabric, _cycles(free, size, prod(shape[digit + 1 :]), step))
        if step < size and one is not None:
            found.append(one)
            order *= size // step
    return found


def _cycles(free: Sequence[int], size: int, stride: int, step: int) -> list[list[int]]:
    """Cycles of the map that adds ``step`` to the digit of ``size`` values, worth ``stride``."""
    firsts = [n for n in range(len(free)) if n // stride % size < step]
    return [[free[n + stride * more] for more in range(0, size, step)] for n in firsts]


def _primes(number: int) -> Iterator[int]:
    """The prime factors, ascending."""
    factor = 2
    while number > 1:
        while number % factor == 0:
            yield factor
            number //= factor
        factor += 1


# Groups of shifts of the levels: rank numbers as digits, such as node and GPU.


LEAST_IMAGED = 64
"""Of more ranks shifts are looked for only where no two edges join the same ranks."""


def grids(ranks: int, dims: int) -> list[tuple[int, ...]]:
    """The ordered ways to write a number as a product of so many factors above one."""
    if dims == 1:
        return [(ranks,)] if ranks > 1 else []
    firsts = (n for n in range(2, ranks) if ranks % n == 0)
    return [(first, *rest) for first in firsts for rest in grids(ranks // first, dims - 1)]


@dataclass(slots=True)
class LevelShifts:
    """The shifts of the digits of rank numbers: maps that add one to a digit of all of them."""

    fabric: Fabric
    known: dict[tuple[int, int], FabricSymmetry | None] = field(default_factory=dict)

    def of(self, shape: Sequence[int], last: int = 1) -> tuple[FabricSymmetry, ...]:
        """Of digits of so many values, the last worth ``last``; empty: one is no symmetry."""
        found = []
        for at, size in enumerate(shape):
            digit = size, last * prod(shape[at + 1 :])
            if digit not in self.known:
                self.known[digit] = _shift(self.fabric, *digit)
            found.append(self.known[digit])
        return tuple(one for one in found if one is not None) if None not in found else ()

    def shape(self) -> tuple[int, ...]:
        """The fewest digits, three at most, of which all shifts are symmetries; empty: none."""
        ranks = self.fabric.ranks
        shapes = [(ranks,), *grids(ranks, 2), *grids(ranks, 3)]
        return next((shape for shape in shapes if self.of(shape)), ())

    def primes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The digits split into primes, as far as all shifts stay symmetries."""
        fine: list[int] = []
        for at, size in enumerate(shape):
            primes = tuple(_primes(size))
            fine += primes if self.of(primes, prod(shape[at + 1 :])) else (size,)
        return tuple(fine)


def level_shifts(fabric: Fabric, most: int) -> tuple[tuple[FabricSymmetry, ...], ...]:
    """Generators of groups of shifts that take every rank to every other one by one element.

    Those of the fewest digits, and of digits that are primes.  Empty: there are none, or they have
    more than ``most`` elements.
    """
    if fabric.ranks > min(most, MOST_IMAGES // len(fabric.edges)):
        return ()
    shifts = LevelShifts(fabric)
    coarse = shifts.shape()
    shapes = dict.fromkeys((coarse, shifts.primes(coarse)))
    return tuple(found for shape in shapes if (found := shifts.of(shape)))


def _shift(fabric: Fabric, size: int, stride: int) -> FabricSymmetry | None:
    """Adds one to the digit of ``size`` values that is worth ``stride``."""
    cycles = _cycles(range(fabric.ranks), size, stride, 1)
    found = permuted(fabric, cycles)
    if found is not None or fabric.ranks > LEAST_IMAGED:
        return found
    image = list(range(fabric.ranks))
    for cycle in cycles:
        image[cycle[-1]] = cycle[0]
        for here, there in pairwise(cycle):
            image[here] = there
    return symmetry_of_ranks(fabric, image)


# How a group moves the chunks of a collective.
# Chunks with the same root and goals are copies of one route.  A symmetry takes routes to routes;
# the elements that leave a route may move its copies in any way (:mod:`.actions`), which settles
# how everything moves the copies of the routes to which it is taken.


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

    ``chunks`` in the order of :func:`p2smt.synthesis.schedule_replay.spreads`: copies of a
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


# Groups in which nothing but the identity leaves a rank where it is.
# They are grown by one symmetry at a time that commutes with all before: such are found by random
# products, also where the group of all symmetries is far too large to list.


RESTARTS = 6
TRIES = 60
_MIXING = 60

RankImage = tuple[int, ...]


def commuting_group(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    fixed: Sequence[int] = (),
    watch: StopWatch | None = None,
) -> tuple[FabricSymmetry, ...]:
    """Generators of a group that commutes, of symmetries that leave ``fixed`` where they are.

    Of all elements but the identity, none leaves another rank where it is.  The largest of some
    that were grown at random from a fixed seed; there may be larger ones.  Of the edges, only what
    follows from the ranks is looked at.  When the time of ``watch`` is over, what was grown.
    """
    best: tuple[FabricSymmetry, ...] = ()
    most = 1
    for seed in range(RESTARTS):
        effort = Effort(watch=watch)
        if effort.over:
            break
        found, order = _grown(fabric, generators, fixed, random.Random(seed), effort)
        if order > most:
            best, most = found, order
        if most == fabric.ranks - len(fixed):
            break
    return best


def _grown(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    fixed: Sequence[int],
    drawn: random.Random,
    effort: Effort,
) -> tuple[tuple[FabricSymmetry, ...], int]:
    """A group that commutes, and its order: grown by one of those drawn until none fits."""
    chosen: list[FabricSymmetry] = []
    order, candidates = 1, tuple(generators)
    while candidates and not effort.over:
        known = [one.ranks for one in chosen]
        larger = []
        for image in _drawn([one.ranks for one in candidates], fixed, drawn):
            if (size := _free_order([*known, image], fixed)) is not None and size > order:
                larger.append((image, size))
        if not larger:
            break
        image, order = drawn.choice(larger)
        chosen.append(named_symmetry(fabric, image))
        candidates = fabric_symmetries(
            fabric, commuting=chosen, fixed=fixed, effort=Effort(watch=effort.watch)
        )
    return tuple(chosen), order


def _drawn(
    images: Sequence[RankImage], fixed: Sequence[int], drawn: random.Random
) -> Iterator[RankImage]:
    """Powers of the images, and of random products of them, that move all ranks alike."""
    for image in images:
        yield from _even_powers(image, fixed)
    pool = [*images] * (1 + 10 // len(images))
    for number in range(_MIXING + TRIES):
        a, b = drawn.sample(range(len(pool)), 2)
        pool[a] = tuple([pool[a][rank] for rank in pool[b]])
        if number >= _MIXING:
            yield from _even_powers(pool[a], fixed)


def _even_powers(image: RankImage, fixed: Sequence[int]) -> Iterator[RankImage]:
    """The powers in which all cycles but those of the fixed are equally long, one a length."""
    lengths = set(_cycle_lengths(image, fixed))
    for length in range(2, math.gcd(*lengths) + 1):
        if all(n % length == 0 for n in lengths):
            exponent = math.lcm(*(n // length for n in lengths))
            if all(math.gcd(n, exponent) == n // length for n in lengths):
                yield _power(image, exponent)


def _power(image: RankImage, exponent: int) -> RankImage:
    """Where a permutation takes everything that is done so often, by squaring."""
    found = tuple(range(len(image)))
    while exponent:
        if exponent & 1:
            found = tuple([image[rank] for rank in found])
        image, exponent = tuple([image[rank] for rank in image]), exponent >> 1
    return found


def _cycle_lengths(image: Sequence[int], fixed: Sequence[int]) -> Iterator[int]:
    seen = set(fixed)
    for start in range(len(image)):
        length, at = 0, start
        while at not in seen:
            seen.add(at)
            at, length = image[at], length + 1
        if length:
            yield length


def _free_order(images: Sequence[RankImage], fixed: Sequence[int]) -> int | None:
    """The order of a group of ranks, if none but the identity leaves one that is not fixed."""
    elements = [tuple(range(len(images[0])))]
    known = set(elements)
    for element in elements:
        for image in images:
            product = tuple([image[rank] for rank in element])
            if product not in known:
                still = sum(a == b for a, b in enumerate(product))
                if still > len(fixed) or len(elements) > len(product):
                    return None
                known.add(product)
                elements.append(product)
    return len(elements)
