"""All states of a frame under a cap, numbered, as arrays.

A digit's *place* is 0 (replicated), 1 + dim * D + position in that dimension's list (D digits), or
the last number (partial).  A state's *code* is the mixed-radix number of its digits' places, where
digits that are partial in every state do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from p2smt.arrays.ends import Ends
from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.parallelism.placement import IntArray

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
