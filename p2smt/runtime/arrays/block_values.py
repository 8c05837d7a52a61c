"""Values of an array whose blocks are known on every device, before and after any reduction.

An element's value comes from its place in the whole array and, where it is partial, from the
contribution that a device holds of it.  What only moves has arbitrary bits.  What is reduced has
small integers, or other numbers whose reduction is exact in any order and grouping; and random
numbers, compared within a bound on rounding errors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.types import ElementType, ReduceOp
from p2smt.runtime.payload import Floats, Integers, mixed_bits

Words = NDArray[np.uint64]

_EXACT_LIMITS = {
    ElementType.F64: 2**53,
    ElementType.F32: 2**24,
    ElementType.F16: 2**11,
    ElementType.BF16: 2**8,
    ElementType.I64: 2**53,
    ElementType.BOOL: 1,
    ElementType.U8: 255,
}
"""All integers from 0 to this one are values of the type; of other integers: their largest."""
_ROUNDOFFS = {
    ElementType.F64: 2.0**-53,
    ElementType.F32: 2.0**-24,
    ElementType.F16: 2.0**-11,
    ElementType.BF16: 2.0**-8,
}
_MOST_DOUBLED = 6
"""So many factors of a product of integers may be 2: their product fits the smallest type."""


@dataclass(frozen=True, slots=True)
class ArrayValues:
    """Values of an array that starts with ``partial`` digits, of which ``reduced`` are reduced."""

    frame: Frame
    partial: tuple[int, ...]
    reduced: tuple[int, ...]
    seed: int

    @staticmethod
    def of(frame: Frame, start: ArrayState, end: ArrayState, seed: int) -> ArrayValues:
        """Values for a redistribution between these states."""
        reduced = tuple(digit for digit in start.partial if digit not in end.partial)
        return ArrayValues(frame, start.partial, reduced, seed)

    @property
    def exact(self) -> bool:
        """Whether the type holds numbers whose reduction is exact; bounds are left otherwise."""
        return self.frame.op is not ReduceOp.AVG or self._most() >= 1

    def bits(self, state: ArrayState, device: int) -> Words:
        """64 bits per element of a device's block; contributions have bits of their own."""
        (part,) = self._parts(state, device)
        return mixed_bits(self._elements(state, device), part, self.seed)

    def integers(self, state: ArrayState, device: int) -> Integers | Floats:
        """A device's block of exact values; in a state after reductions, their result.

        Averages of integers may be fractions: then it is of floating point.
        """
        elements = self._elements(state, device)
        terms = (self._integer(elements, part) for part in self._parts(state, device))
        found = _reduce(self.frame.op, terms)
        held = self._held(state)
        if self.frame.op is ReduceOp.AVG and held > 1:
            return np.asarray(found / held, np.float64)
        if self.frame.element is ElementType.BOOL:
            found = found != 0
        integers: Integers = np.asarray(found, np.int64)
        return integers

    def floats(self, state: ArrayState, device: int) -> Iterator[Floats]:
        """The random contributions to a device's block, one after the other, not yet rounded."""
        elements = self._elements(state, device)
        for part in self._parts(state, device):
            mixed = mixed_bits(elements, part, self.seed + 1)
            values: Floats = mixed.astype(np.float64) / 2.0**63 - 1.0
            if self.frame.op is ReduceOp.PRODUCT:  # far from what is too small for the type
                values = np.copysign(1.0 + 0.25 * np.abs(values), values)
            yield values

    def reduce(self, terms: Iterator[Floats], state: ArrayState) -> tuple[Floats, Floats]:
        """The result of random contributions, and the bound on what a computed one may differ by.

        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.4 and 4.2:
        gamma(m - 1) times the sum of magnitudes, or the product; a division adds one to m each.
        """
        listed = list(terms)
        found = np.asarray(_reduce(self.frame.op, iter(listed)), np.float64)
        magnitudes = (np.abs(term) for term in listed)
        size = np.asarray(_reduce(self.frame.op, magnitudes), np.float64)
        count, steps = self._held(state), 0
        if self.frame.op is ReduceOp.AVG:
            found, size, steps = found / count, size / count, len(self.reduced)
        if self.frame.op in (ReduceOp.MIN, ReduceOp.MAX) or count == 1:
            return found, np.zeros_like(size)
        return found, self._gamma(count - 1 + steps) * size

    def _gamma(self, roundings: int) -> float:
        error = roundings * _ROUNDOFFS[self.frame.element]
        return math.inf if error >= 0.5 else error / (1 - error)

    def _held(self, state: ArrayState) -> int:
        """Contributions that are reduced in a state."""
        return self.frame.ways([digit for digit in self.partial if digit not in state.partial])

    def _elements(self, state: ArrayState, device: int) -> Words:
        """Numbers of a block's elements in the whole array, row-major."""
        block = block_of(self.frame, state, device)
        found = np.zeros((1,) * len(block.shape), dtype=np.uint64)
        for dim, (first, length) in enumerate(zip(block.first, block.shape, strict=True)):
            stride = math.prod(self.frame.shape[dim + 1 :])
            row = (np.arange(length, dtype=np.uint64) + np.uint64(first)) * np.uint64(stride)
            found = found + row.reshape([-1 if i == dim else 1 for i in range(len(block.shape))])
        return found

    def _parts(self, state: ArrayState, device: int) -> list[int]:
        """The numbers of the contributions that a device's block is made of."""
        held = dict(zip(state.partial, part_of(self.frame, state, device), strict=True))
        sizes = [self.frame.digits[digit].size for digit in self.partial]
        values = [
            (held[digit],) if digit in held else range(size)
            for digit, size in zip(self.partial, sizes, strict=True)
        ]
        found = []
        for place in itertools.product(*values):
            number = 0
            for value, size in zip(place, sizes, strict=True):
                number = number * size + value
            found.append(number)
        return found

    def _limit(self) -> int:
        element = self.frame.element
        return _EXACT_LIMITS.get(element, (1 << (8 * element.item_bytes - 1)) - 1)

    def _scale(self) -> int:
        """What exact contributions to an average are multiples of: only odd ways divide them."""
        ways = self.frame.ways(self.reduced) if self.frame.op is ReduceOp.AVG else 1
        return int(ways // (ways & -ways))

    def _most(self) -> int:
        """The largest exact contribution, in units of the scale."""
        ways = self.frame.ways(self.reduced)
        return int(min(self._limit() // (ways * self._scale()), 2**16))

    def _integer(self, elements: Words, part: int) -> Integers:
        mixed = mixed_bits(elements, part, self.seed)
        element, ways = self.frame.element, self.frame.ways(self.reduced)
        if element is ElementType.BOOL:
            return np.asarray(mixed % np.uint64(2 * ways) < np.uint64(ways + 1), np.int64)
        match self.frame.op:
            case ReduceOp.SUM | ReduceOp.AVG:
                return self._addend(mixed, elements, part)
            case ReduceOp.PRODUCT:
                return self._factor(mixed, part)
            case ReduceOp.MIN | ReduceOp.MAX:
                limit = min(self._limit(), 2**15)
                return np.asarray(mixed % np.uint64(limit), np.int64)

    def _addend(self, mixed: Words, elements: Words, part: int) -> Integers:
        most = self._most()
        if most >= 2:  # no zeros: each missing or doubled contribution changes a sum
            return np.asarray(mixed % np.uint64(most) + np.uint64(1), np.int64) * self._scale()
        # More contributions than the type can tell apart and count: an element gets ones from
        # those that a permutation of its own puts first.
        size = 1 << (self.frame.ways(self.partial) - 1).bit_length()
        own = mixed_bits(elements, 0, self.seed)
        place = ((own | np.uint64(1)) * np.uint64(part) + (own >> np.uint64(32))) % np.uint64(size)
        few = np.uint64(max(1, min(self._limit() // self._scale(), size // 2)))
        return np.asarray(place < few, np.int64) * self._scale()

    def _factor(self, mixed: Words, part: int) -> Integers:
        doubled = (mixed >> np.uint64(1)) % np.uint64(2)
        found = np.asarray(doubled, np.int64) + 1 if part < _MOST_DOUBLED else 1
        if self.frame.element is ElementType.U8:
            return np.asarray(found * np.ones_like(mixed, np.int64))
        return np.asarray(found * (1 - 2 * np.asarray(mixed % np.uint64(2), np.int64)))


_REDUCE: dict[ReduceOp, np.ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
}


def _reduce(op: ReduceOp, terms: Iterator[Any]) -> Any:
    """The terms reduced; of an average the sum."""
    found = next(terms)
    for term in terms:
        found = _REDUCE[op](found, term)
    return found


# Where the block of each device lies in the array, by the definition of a layout.


@dataclass(frozen=True, slots=True)
class ArrayBlock:
    """Intervals of a device's block: per dimension its first index and its length."""

    first: tuple[int, ...]
    shape: tuple[int, ...]


def coordinates_of(frame: Frame, device: int, order: int) -> tuple[int, ...]:
    """Value of each digit at the mesh position that a device has."""
    position = frame.orders[order].index(device)
    return tuple(int(value) for value in np.unravel_index(position, frame.sizes))


def block_of(frame: Frame, state: ArrayState, device: int) -> ArrayBlock:
    """The block of a device: chunks of chunks, one digit after the other, major first.

    A chunk is the length over the digit's size, rounded up; the last ones are shorter, or empty,
    where it does not divide (as ``torch.chunk``).
    """
    place = coordinates_of(frame, device, state.order)
    pairs = [
        _interval(frame, size, dim, place)
        for size, dim in zip(frame.shape, state.dims, strict=True)
    ]
    return ArrayBlock(tuple(first for first, _ in pairs), tuple(length for _, length in pairs))


def _interval(frame: Frame, size: int, dim: Sequence[int], place: Sequence[int]) -> tuple[int, int]:
    first = 0
    for digit in dim:
        lengths = chunk_lengths(size, frame.digits[digit].size)
        first += sum(lengths[: place[digit]])
        size = lengths[place[digit]]
    return first, size


def chunk_lengths(size: int, ways: int) -> tuple[int, ...]:
    """Lengths of the chunks into which ``torch.chunk`` cuts a size; missing ones are empty."""
    chunk = -(-size // ways)
    return tuple(max(0, min(chunk, size - chunk * number)) for number in range(ways))


def part_of(frame: Frame, state: ArrayState, device: int) -> tuple[int, ...]:
    """Which contribution a device holds: its values of the digits that are partial."""
    place = coordinates_of(frame, device, state.order)
    return tuple(place[digit] for digit in state.partial)
