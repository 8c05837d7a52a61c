"""How a group can move copies of one thing: as the cosets of its subgroups.

Copies that a group moves fall into orbits; on an orbit it acts as on the cosets of the subgroup
that leaves a copy, whose number is that of the orbit's copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.search.schedule.groups.subgroups import all_subgroups
from p2smt.search.schedule.groups.table import GroupTable, Subgroup


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
