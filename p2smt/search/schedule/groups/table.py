"""The elements of a small group of symmetries, by number, with their products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry, identity_of
from p2smt.result import StopWatch

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
