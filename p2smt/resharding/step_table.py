"""All states of a frame under a cap, numbered, as arrays.

A digit's *place* is 0 (replicated), 1 + dim * D + position in that dimension's list (D digits), or
the last number (partial).  A state's *code* is the mixed-radix number of its digits' places, where
digits that are partial in every state do not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.parallelism.placement import IntArray
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import quick_levels

MAX_STATES = 2_000_000
"""Larger tables are refused: they take minutes and gigabytes."""


def subsets(items: Sequence[int], least: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every subset of at least and at most so many items, in their order."""
    sizes = range(least, min(most, len(items)) + 1)
    return chain.from_iterable(combinations(items, k) for k in sizes)


MAX_CODE = 2**63 - 1
"""Codes are 64-bit integers."""


def can_tabulate(ends: Ends) -> bool:
    """Whether the states are few enough, and have codes."""
    frame = ends.frame
    counted = len(frame.digits) - len(ends.target.partial)
    codes = len(frame.orders) * radix(frame) ** counted
    return codes <= MAX_CODE and count_states(ends) <= MAX_STATES


def count_states(ends: Ends) -> int:
    """How many states there are at most: divisibility and caps leave out some."""
    frame = ends.frame
    dims, optional = len(frame.shape), len(ends.source.partial) - len(ends.target.partial)
    free = len(frame.digits) - len(ends.target.partial)
    total = sum(math.comb(optional, j) * _arrangements(free - j, dims) for j in range(optional + 1))
    return total * len(frame.orders)


def _arrangements(digits: int, dims: int) -> int:
    return sum(math.perm(digits, k) * math.comb(k + dims - 1, dims - 1) for k in range(digits + 1))


@dataclass(frozen=True, slots=True)
class StateTable:
    """``places`` has shape (states, digits); the others an entry, or a row, for each state.

    ``codes`` ascend.  ``ways[s, i]`` is how many ways dimension i is split, ``size`` the local
    bytes.  ``optional`` digits may be partial or not; ``fixed`` ones are partial in every state.
    """

    frame: Frame
    optional: tuple[int, ...]
    fixed: tuple[int, ...]
    codes: IntArray
    places: IntArray
    order: IntArray
    ways: IntArray
    size: IntArray

    @staticmethod
    def of(ends: Ends, limit_bytes: float = math.inf) -> StateTable:
        """All states that the ends' partial digits allow and whose local bytes keep to a cap."""
        frame, fixed = ends.frame, ends.target.partial
        optional = tuple(d for d in ends.source.partial if d not in fixed)
        places, ways = _enumerate(frame, optional, fixed)
        local = -(-np.array(frame.shape, dtype=np.int64) // ways)
        size = local.prod(axis=1) * frame.element.item_bytes
        kept = size <= limit_bytes
        places, ways, size = places[kept], ways[kept], size[kept]
        number = len(frame.orders)
        order = np.repeat(np.arange(number), len(places))
        places, ways = np.tile(places, (number, 1)), np.tile(ways, (number, 1))
        codes = codes_of(frame, fixed, places, order)
        rank = np.argsort(codes, kind="stable")
        size = np.tile(size, number)
        return StateTable(
            frame,
            optional,
            fixed,
            codes[rank],
            places[rank],
            order[rank],
            ways[rank],
            size[rank],
        )

    def __len__(self) -> int:
        return len(self.codes)

    def find(self, codes: IntArray) -> IntArray:
        """The number of each code's state; -1 where the table has none."""
        if not len(self.codes):
            return np.full(len(codes), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[at] == codes, at, -1)

    def index(self, state: ArrayState) -> int:
        """The number of a state, or -1."""
        digits, partial = len(self.frame.digits), 1 + len(self.frame.shape) * len(self.frame.digits)
        places = np.zeros(digits, dtype=np.int64)
        for dim, listed in enumerate(state.dims):
            for position, digit in enumerate(listed):
                places[digit] = 1 + dim * digits + position
        places[list(state.partial)] = partial
        return int(self.at(places, np.array([state.order]))[0])

    def at(self, places: IntArray, order: IntArray) -> IntArray:
        """The number of the state of each row of places, -1 where there is none."""
        return self.find(codes_of(self.frame, self.fixed, places, order))

    def dims(self, number: int) -> list[list[int]]:
        """The lists of digits of each dimension."""
        digits = len(self.frame.digits)
        found: list[list[int]] = [[] for _ in self.frame.shape]
        row = self.places[number].tolist()
        for place, digit in sorted((place, digit) for digit, place in enumerate(row) if place):
            if place <= digits * len(found):
                found[(place - 1) // digits].append(digit)
        return found

    def partial(self, number: int) -> tuple[int, ...]:
        """The partial digits, ascending."""
        last = 1 + len(self.frame.shape) * len(self.frame.digits)
        return tuple(d for d, place in enumerate(self.places[number].tolist()) if place == last)

    def state(self, number: int) -> ArrayState:
        """The state of a number."""
        dims = tuple(tuple(dim) for dim in self.dims(number))
        return ArrayState(dims, self.partial(number), int(self.order[number]))


def radix(frame: Frame) -> int:
    """How many places a digit can have."""
    return 2 + len(frame.shape) * len(frame.digits)


def powers(frame: Frame, fixed: Sequence[int]) -> IntArray:
    """What each digit's place counts in a code: nothing for the ``fixed`` ones."""
    base, counted = radix(frame), 0
    found = [0] * len(frame.digits)
    for digit in range(len(frame.digits)):
        if digit not in fixed:
            found[digit] = base**counted
            counted += 1
    return np.array(found, dtype=np.int64)


def codes_of(frame: Frame, fixed: Sequence[int], places: IntArray, order: IntArray) -> IntArray:
    """The code of each row of places, in an order of devices."""
    each = radix(frame) ** (len(frame.digits) - len(fixed))
    return np.asarray(places @ powers(frame, fixed) + order * each, dtype=np.int64)


def _enumerate(
    frame: Frame, optional: Sequence[int], fixed: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Places and ways of all states of one order: digits join the last list, or a later one."""
    digits, dims = len(frame.digits), len(frame.shape)
    starts = []
    for some in subsets(optional, 0, digits):
        row = np.zeros(digits, dtype=np.int64)
        row[[*some, *fixed]] = 1 + dims * digits
        starts.append(row)
    # per state: places, ways by dimension, digits in the last list, number of that list
    front = (
        np.array(starts),
        np.ones((len(starts), dims), dtype=np.int64),
        np.zeros(len(starts), dtype=np.int64),
        np.zeros(len(starts), dtype=np.int64),
    )
    found = [front[:2]]
    while len(front[0]):
        parts = [_joined(frame, front, q, dim) for q in range(digits) for dim in range(dims)]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        front = (columns[0], columns[1], columns[2], columns[3])
        found.append(front[:2])
    return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])


_Front = tuple[IntArray, IntArray, IntArray, IntArray]


def _joined(frame: Frame, front: _Front, digit: int, dim: int) -> _Front:
    """The states in which one more digit stands at the end of a dimension's list."""
    places, ways, length, last = front
    size = frame.digits[digit].size
    can = (places[:, digit] == 0) & (last <= dim)
    if not frame.nested:
        can &= frame.shape[dim] % (ways[:, dim] * size) == 0
    places, ways = places[can], ways[can]
    position = np.where(last[can] == dim, length[can], 0)
    places[:, digit] = 1 + dim * len(frame.digits) + position
    ways[:, dim] *= size
    return places, ways, position + 1, np.full(len(places), dim, dtype=np.int64)


# Which digits the topology cannot tell apart, and the states up to their exchange.
# Digits are *aligned* where each level's entities are the positions that agree in some of the
# digits. A digit's level is then the first at which it decides the entity.  Digits of one level, of
# one size and with the same part in partial sums have one *letter*: exchanging them leaves the
# graph of states as it is, but for prices.
#
# Where links are switches, whose ports are one, or one or more for each device, adjacent digits of
# a letter are a *class*: exchanging them maps entities to entities, and the order of a group's
# members to one that crosses every level as often, so that prices stay, too.


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
