"""How much of what the devices of an entity need do they hold already, dimension by dimension.

The devices of a box of digit values hold, and need, every combination of what they do in each
dimension, because no digit shards two; so counts multiply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.redistribution.entities import FREE, Boxes
from p2smt.parallelism.placement import BoolArray, IntArray

_Key = tuple[int, tuple[int, ...], int]


class Overlaps:
    """Elements that the entities of one level need of a target and do not hold, by state."""

    def __init__(self, frame: Frame, target: ArrayState, boxes: Boxes) -> None:
        self._frame, self._target, self._boxes = frame, target, boxes
        self._held: dict[_Key, FloatArray] = {}
        self._partial: dict[tuple[tuple[int, ...], int], FloatArray] = {}
        self._spread: dict[tuple[tuple[int, ...], int], float] = {}
        self._alike = bool(boxes.kept.all()) and all(map(_same_fixed, boxes.fixed))
        self._needed = self._both(target)

    def missing(self, state: ArrayState) -> FloatArray:
        """Elements that each entity lacks; contributions to the target's partial values count."""
        return self._needed - self._both(state)

    def entering(self, state: ArrayState) -> float:
        """Elements that come into all entities together while so many digits are partial.

        An element whose contributions m entities have, each its own, and k need: m - 1 messages
        at least until the first has all, and one into each of the other k - 1 after that.  0 where
        an entity has all contributions, or entities are left out or differ in some order.
        """
        key = (state.partial, state.order)
        found = self._spread.get(key)
        if found is None:
            found = self._spread[key] = self._entering(*key)
        return found

    def _entering(self, partial: tuple[int, ...], order: int) -> float:
        if not self._alike:
            return 0.0
        fixed, target = self._boxes.fixed[order] != FREE, self._target.partial
        apart = self._frame.ways([d for d in partial if fixed[0, d] and d not in target])
        every = math.prod(self._frame.shape) * self._frame.ways(target)
        return every * (apart - 2) + float(self._needed.sum()) if apart > 1 else 0.0

    def _both(self, state: ArrayState) -> FloatArray:
        """Elements that each entity needs and holds."""
        key = (state.partial, state.order)
        found = self._partial.get(key)
        if found is None:
            found = self._partial[key] = self._contributions(state)
        for dim, digits in enumerate(state.dims):
            found = found * self._along(dim, digits, state.order)
        return found

    def _contributions(self, state: ArrayState) -> FloatArray:
        """Partial values of the target that an entity has whole, for each element that it has."""
        held = self._boxes.fixed[state.order]
        needed = self._boxes.fixed[self._target.order]
        found = np.ones(len(held))
        for digit in state.partial:
            have, want, size = held[:, digit], needed[:, digit], self._frame.digits[digit].size
            if digit not in self._target.partial:
                found *= have == FREE
            else:
                both = np.where((have == FREE) & (want == FREE), size, 1)
                found *= np.where((have == want) | (have == FREE) | (want == FREE), both, 0)
        return found

    def _along(self, dim: int, digits: tuple[int, ...], order: int) -> FloatArray:
        """Indices of a dimension that each entity needs and holds."""
        key = (dim, digits, order)
        found = self._held.get(key)
        if found is None:
            held, needed = self._boxes.fixed[order], self._boxes.fixed[self._target.order]
            chunks = index_blocks(self._frame, dim, digits)
            wanted = index_blocks(self._frame, dim, self._target.dims[dim])
            found = common_indices(chunks, wanted, held, needed)
            self._held[key] = found
        return found


def _same_fixed(fixed: IntArray) -> bool:
    """Whether the same digits are fixed in every entity."""
    is_fixed = fixed != FREE
    return bool((is_fixed == is_fixed[:1]).all())


@dataclass(frozen=True, slots=True)
class IndexBlocks:
    """A dimension cut by digits: where each block starts and ends, and each digit's value in it."""

    start: IntArray
    end: IntArray
    digits: tuple[int, ...]
    values: IntArray


def index_blocks(frame: Frame, dim: int, digits: tuple[int, ...]) -> IndexBlocks:
    """IndexBlocks of chunks, each the first of as many equal ones as there are, rounded up."""
    start, end = np.zeros(1, dtype=np.int64), np.array([frame.shape[dim]])
    for digit in digits:
        size = frame.digits[digit].size
        each = -(-(end - start) // size)
        starts = np.minimum(start[:, None] + np.arange(size) * each[:, None], end[:, None])
        end = np.minimum(starts + each[:, None], end[:, None]).ravel()
        start = starts.ravel()
    sizes = [frame.digits[digit].size for digit in digits]
    values = np.indices(sizes, dtype=np.int64).reshape(len(sizes), len(start)).T
    return IndexBlocks(start, end, digits, values)


def common_indices(
    one: IndexBlocks, other: IndexBlocks, held: IntArray, needed: IntArray
) -> FloatArray:
    """Indices that each entity has by ``one``, of what it has by ``other``.

    ``held`` and ``needed``: the values of all digits, or FREE, that its devices have by each.
    """
    if not (held[:, one.digits] == FREE).any() and not (needed[:, other.digits] == FREE).any():
        return _single_common(one, other, held, needed)
    cuts = np.unique(np.concatenate([one.start, other.start, one.end[-1:]]))
    both = _has(one, held, cuts[:-1]) & _has(other, needed, cuts[:-1])
    return np.asarray(both @ np.diff(cuts).astype(np.float64))


def _single_common(
    one: IndexBlocks, other: IndexBlocks, held: IntArray, needed: IntArray
) -> FloatArray:
    """The same where each entity has one block by each."""
    first, second = _block(one, held), _block(other, needed)
    start = np.maximum(one.start[first], other.start[second])
    end = np.minimum(one.end[first], other.end[second])
    return np.asarray(np.maximum(end - start, 0), dtype=np.float64)


def _block(chunks: IndexBlocks, fixed: IntArray) -> IntArray:
    """The block with these values of its digits."""
    found = np.zeros(len(fixed), dtype=np.int64)
    for place, digit in enumerate(chunks.digits):
        found = found * (chunks.values[-1, place] + 1) + fixed[:, digit]
    return found


def _has(chunks: IndexBlocks, fixed: IntArray, indices: IntArray) -> BoolArray:
    """Whether each entity has each of these indices: shape (entities, indices)."""
    block = np.searchsorted(chunks.start, indices, side="right") - 1
    found = np.ones((len(fixed), len(indices)), dtype=bool)
    for place, digit in enumerate(chunks.digits):
        here = fixed[:, digit, None]
        found &= (here == FREE) | (here == chunks.values[block, place])
    return found
