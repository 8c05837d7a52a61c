"""Which digits the topology cannot tell apart, and the states up to their exchange.

Digits are *aligned* where each level's entities are the positions that agree in some of the digits.
A digit's level is then the first at which it decides the entity.  Digits of one level, of one size
and with the same part in partial sums have one *letter*: exchanging them leaves the graph of states
as it is, but for prices.

Where links are switches, whose ports are one, or one or more for each device, adjacent digits of a
letter are a *class*: exchanging them maps entities to entities, and the order of a group's members
to one that crosses every level as often, so that prices stay, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.redistribution.permutes import quick_levels
from p2smt.parallelism.placement import IntArray
from p2smt.search.redistribution.exact.table import StateTable


@dataclass(frozen=True, slots=True)
class Symmetry:
    """``letters`` has one for each digit; ``classes`` partition the digits into runs.

    ``levels[q]`` is the level of a digit (None: not aligned).  ``plain``: it makes no difference
    which devices of an entity send, nor which levels inside an outer one are crossed.
    """

    levels: tuple[int, ...] | None
    letters: tuple[int, ...]
    classes: tuple[tuple[int, ...], ...]
    plain: bool

    @staticmethod
    def of(topology: Topology, table: StateTable) -> Symmetry:
        """What holds of the states of a table."""
        frame = table.frame
        aligned = deciding_levels(topology, frame) if topology.hosts is None else None
        count = len(frame.digits)
        kinds = [
            (aligned[q] if aligned else 0, frame.sizes[q], q in table.optional, q in table.fixed)
            for q in range(count)
        ]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        letters = tuple(numbers[kind] for kind in kinds)
        even = all(map(_plain, topology.levels, _under(topology)))
        plain = even and not quick_levels(topology)
        if aligned is None or not even:
            return Symmetry(aligned, letters, tuple((q,) for q in range(count)), False)
        cuts = [q for q in range(count) if not q or letters[q - 1] != letters[q]]
        classes = tuple(tuple(range(a, b)) for a, b in zip(cuts, [*cuts[1:], count], strict=True))
        return Symmetry(aligned, letters, classes, plain)

    @property
    def exchanges(self) -> int:
        """How many relabelings leave letters as they are."""
        return math.prod(math.factorial(count) for count in Counter(self.letters).values())

    def first_of_kind(self, digits: tuple[int, ...]) -> tuple[int, ...]:
        """The digits of the same classes that come first: every price of them is that of these."""
        found: list[int] = []
        for some in self.classes:
            found += some[: sum(digit in digits for digit in some)]
        return tuple(found)

    def same_letters(self, digits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Sets of digits with the letters of these: one for each price there may be."""
        counts = Counter(self.letters[digit] for digit in digits)
        ways = [
            combinations([q for q, own in enumerate(self.letters) if own == letter], count)
            for letter, count in counts.items()
        ]
        sets = (tuple(sorted(chain.from_iterable(choice))) for choice in product(*ways))
        yield from dict.fromkeys(map(self.first_of_kind, sets))

    def representatives(self, table: StateTable) -> IntArray:
        """For each state the number of the one whose letters' digits have ascending places."""
        places = table.places.copy()
        for letter in set(self.letters):
            alike = [q for q, own in enumerate(self.letters) if own == letter]
            places[:, alike] = np.sort(places[:, alike], axis=1)
        return table.at(places, table.order)


def deciding_levels(topology: Topology, frame: Frame) -> tuple[int, ...] | None:
    """The level of each digit in every order of devices; None where digits are not aligned."""
    found = {_levels_of(topology, frame, order) for order in range(len(frame.orders))}
    return found.pop() if len(found) == 1 else None


def _under(topology: Topology) -> list[int]:
    return [topology.devices_under(j) for j in range(len(topology.levels))]


def _plain(level: Level, under: int) -> bool:
    """Whether it does not matter which devices of an entity of the level send."""
    link = level.link
    return link.kind is LinkKind.SWITCH and (link.ports == 1 or link.ports % under == 0)


def _levels_of(topology: Topology, frame: Frame, order: int) -> tuple[int, ...] | None:
    devices = np.array(frame.orders[order], dtype=np.int64).reshape(frame.sizes)
    found = [-1] * len(frame.digits)
    for j, under in enumerate(_under(topology)):
        entity = devices // under
        for digit in range(len(found)):
            if found[digit] < 0 and (entity != np.take(entity, [0], axis=digit)).any():
                found[digit] = j
        decided = math.prod(s for s, j in zip(frame.sizes, found, strict=True) if j >= 0)
        if len(np.unique(entity)) != decided:
            return None
    return tuple(found)
