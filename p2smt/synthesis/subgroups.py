"""Subgroups of use: those that leave no rank where it is, and larger ones around them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.fabric.fabric import Fabric
from p2smt.fabric.symmetries import FabricSymmetry, identity_of
from p2smt.result import StopWatch

RESTARTS = 8
EXTENSIONS = 40
SMALL = 64
MOST_LISTED = 300
TRIVIAL: Subgroup = frozenset({0})


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """Of each element: its order, how many ranks and edges it leaves, whether it reverses."""

    orders: tuple[int, ...]
    still: tuple[int, ...]
    still_edges: tuple[int, ...]
    reverses: tuple[bool, ...]

    def kind(self, group: Subgroup) -> tuple[tuple[int, int, int, bool], ...]:
        """What tells most groups apart that no symmetry takes to each other."""
        return tuple(
            sorted(
                (self.orders[n], self.still[n], self.still_edges[n], self.reverses[n])
                for n in group
            )
        )

    def free(self, elements: Iterable[int]) -> bool:
        """Whether none but the identity leaves a rank that can move."""
        return not any(n and self.still[n] for n in elements)


def traits_of(table: GroupTable, fixed: Sequence[int]) -> Traits:
    """The traits of all elements of a group whose elements all leave ``fixed``."""
    orders = []
    for number in range(len(table.elements)):
        order, at = 1, number
        while at:
            order, at = order + 1, int(table.product[number, at])
        orders.append(order)
    return Traits(
        tuple(orders),
        tuple(sum(a == b for a, b in enumerate(x.ranks)) - len(fixed) for x in table.elements),
        tuple(sum(a == b for a, b in enumerate(x.edges)) for x in table.elements),
        tuple(x.reverses for x in table.elements),
    )


def all_subgroups(table: GroupTable, group: Subgroup) -> tuple[Subgroup, ...]:
    """The subgroups of a small group, largest first; of one with very many, some.

    The elements of a coset each make the same group with what it is a coset of.
    """
    found = {TRIVIAL}
    frontier = [TRIVIAL]
    for smaller in frontier:
        own, left = sorted(smaller), set(group - smaller)
        while left:
            element = min(left)
            left.difference_update(table.product[element, own].tolist())
            larger = table.closure(smaller, [element])
            if larger not in found:
                found.add(larger)
                frontier.append(larger)
        if len(found) > MOST_LISTED:
            break
    return tuple(sorted({*found, group}, key=lambda one: (-len(one), sorted(one))))


def subgroups_of_use(table: GroupTable, traits: Traits) -> tuple[Subgroup, ...]:
    """Subgroups of those that do not reverse time: of every kind one, the largest first."""
    plain = frozenset(n for n, reverses in enumerate(traits.reverses) if not reverses)
    if len(plain) <= SMALL:
        found: Sequence[Subgroup] = all_subgroups(table, plain)
    else:
        chains = _free_chains(table, traits, plain)
        largest = max(chains, key=len, default=TRIVIAL)
        found = [*chains, *_extensions(table, plain, largest), plain, TRIVIAL]
    kinds: dict[object, Subgroup] = {}
    for one in found:
        kinds.setdefault(traits.kind(one), one)
    return tuple(sorted(kinds.values(), key=lambda one: (-len(one), traits.kind(one))))


def _free_chains(table: GroupTable, traits: Traits, plain: Subgroup) -> list[Subgroup]:
    """Groups that leave no rank, each grown by elements in an order drawn by a fixed seed."""
    usable = [n for n in sorted(plain) if n and traits.free(_powers(table, n))]
    still = np.array([bool(n and s) for n, s in enumerate(traits.still)])
    drawn, found = random.Random(0), list[Subgroup]()
    for _ in range(RESTARTS):
        group = TRIVIAL
        for element in drawn.sample(usable, len(usable)):
            if element in group or still[table.product[element, sorted(group)]].any():
                continue
            larger = table.closure(group, [element])
            if traits.free(larger):
                group = larger
                found.append(group)
    return found


def _powers(table: GroupTable, element: int) -> Iterator[int]:
    at = element
    while at:
        yield at
        at = int(table.product[element, at])


def _extensions(table: GroupTable, plain: Subgroup, group: Subgroup) -> Iterator[Subgroup]:
    """Groups that a group and one more element make."""
    more = sorted(plain - group)
    for element in random.Random(0).sample(more, min(EXTENSIONS, len(more))):
        yield table.closure(group, [element])


def with_reversal(table: GroupTable, traits: Traits, group: Subgroup) -> tuple[Subgroup, ...]:
    """Groups of twice as many elements, with maps that reverse time; of every kind one."""
    kinds: dict[object, Subgroup] = {}
    turns = [n for n, reverses in enumerate(traits.reverses) if reverses]
    seen = set(group)
    own = np.array(sorted(group))
    for turn in sorted(turns, key=lambda n: (-traits.still[n], traits.orders[n], n)):
        coset = table.product[turn, own].tolist()
        doubles = int(table.product[turn, turn]) in group
        if turn not in seen and doubles and {*coset} == {*table.product[own, turn].tolist()}:
            larger = group.union(coset)
            seen |= larger
            kinds.setdefault(traits.kind(larger), larger)
    return tuple(kinds.values())


# The elements of a small group of symmetries, by number, with their products.


Subgroup = frozenset[int]
"""Numbers of elements that are a group."""


@dataclass(frozen=True, slots=True)
class SymmetryGroup:
    """A group of symmetries of a fabric by generators; how many elements it has."""

    generators: tuple[FabricSymmetry, ...]
    order: int


@dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """Elements, the identity first; ``product[a, b]`` is the element that does b, and then a."""

    elements: tuple[FabricSymmetry, ...]
    product: NDArray[np.int64]
    inverse: tuple[int, ...]

    def closure(self, start: Iterable[int], more: Iterable[int] = ()) -> Subgroup:
        """The smallest group with the elements ``start`` (a group already) and ``more``."""
        group = set(start) | {0}
        generators = sorted(group)
        for new in more:
            if new not in group:
                generators.append(new)
                group = self._spread(generators, group)
        return frozenset(group)

    def _spread(self, generators: Sequence[int], known: set[int]) -> set[int]:
        found, frontier = set(known), np.array(sorted(known))
        factors = np.array(generators)
        while len(frontier):
            images = set(np.unique(self.product[np.ix_(factors, frontier)]).tolist())
            frontier = np.array(sorted(images - found), dtype=np.int64)
            found |= images
        return found

    def generators(self, group: Subgroup) -> tuple[int, ...]:
        """A few elements that generate a group: each the least that the ones before do not give."""
        chosen: list[int] = []
        known: Subgroup = frozenset({0})
        while len(known) < len(group):
            chosen.append(min(group - known))
            known = self.closure(known, [chosen[-1]])
        return tuple(chosen)

    def named(self, group: Subgroup) -> SymmetryGroup:
        """A group by generators."""
        chosen = tuple(self.elements[n] for n in self.generators(group))
        return SymmetryGroup(chosen, len(group))


def group_table(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    most: int,
    watch: StopWatch | None = None,
) -> GroupTable | None:
    """The table of the group that some symmetries generate.

    None: it has more than ``most``, or the time of ``watch`` was over.
    """
    elements = _closed(fabric, generators, most, watch)
    if len(elements) > most:
        return None
    numbers = {element: n for n, element in enumerate(elements)}
    product = _products(elements, generators, numbers)
    inverse = tuple(int(n) for n in np.argmin(product, axis=1))
    return GroupTable(tuple(elements), product, inverse)


def _closed(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    most: int,
    watch: StopWatch | None,
) -> list[FabricSymmetry]:
    """The elements of a group, the identity first; of a longer one ``most`` and some more."""
    elements = [identity_of(fabric)]
    known = set(elements)
    for element in elements:
        for one in generators:
            image = one.after(element)
            if image not in known:
                known.add(image)
                elements.append(image)
        if len(elements) > most:
            break
        if watch is not None and watch.expired():
            return [*elements, *elements[:1] * most]
    return elements


def _products(
    elements: Sequence[FabricSymmetry],
    generators: Sequence[FabricSymmetry],
    numbers: dict[FabricSymmetry, int],
) -> NDArray[np.int64]:
    """All products, from those with generators: every element is a generator after another."""
    size = len(elements)
    product = np.full((size, size), -1, dtype=np.int64)
    product[0] = np.arange(size)
    rows = [np.array([numbers[g.after(x)] for x in elements]) for g in generators]
    filled, frontier = {0}, [0]
    for n in frontier:
        for row in rows:
            image = int(row[n])
            if image not in filled:
                product[image] = row[product[n]]
                filled.add(image)
                frontier.append(image)
    return product
