"""Which elements each device has, as index maps: per dimension the cells of a device, in order.

A block is a product of intervals, so the elements of a device are told by one list of indices per
dimension.  Boundaries of blocks cut a dimension into cells, runs of elements that no block of a
redistribution divides; lists are of cells, which makes them as long as the mesh needs and no
longer, whatever the shape.  A cell counts with its length wherever a block is cut into chunks, and
a chunk that would divide one is an error: so what holds of cells holds of the elements.

Devices are numbered among those that a redistribution uses, ascending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import IntArray
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep
from p2smt.resharding.types import ArrayType, SubAxis

CellArray = npt.NDArray[np.int32]
CountArray = npt.NDArray[np.int16]

NONE = -1
"""No cell: rows of devices with fewer cells end with it."""


@dataclass(frozen=True, slots=True)
class DevicePart:
    """One split of a dimension ``ways`` ways: ``part[d]`` is the part of device d, from 0."""

    part: IntArray
    ways: int


@dataclass(frozen=True, slots=True)
class DeviceBlocks:
    """Who has what: ``dims[i]`` are the splits of dimension i, major first.

    ``devices[p]`` is the device at mesh position p; positions of one number in ``partial`` hold
    the same contributions.
    """

    dims: tuple[tuple[DevicePart, ...], ...]
    partial: IntArray
    devices: IntArray

    def contributions(self, labels: IntArray) -> CountArray:
        """Per device and label, how often its values have the contribution of that label.

        ``labels[p]`` is that of position p at the source.  A position has those of all positions
        that are partial like itself: what they differ in has been reduced, or never was partial.
        """
        together = np.zeros((self.partial.max() + 1, labels.max() + 1), dtype=np.int16)
        together[self.partial, labels] = 1
        found = np.empty((len(labels), together.shape[1]), dtype=np.int16)
        found[self.devices] = together[self.partial]
        return found


def blocks_of_state(frame: Frame, state: ArrayState) -> DeviceBlocks:
    """Who has what in a state of a frame."""
    values = digit_values(frame.sizes)
    devices = ranked(frame.orders[state.order])
    splits = [
        DevicePart(_by_device(part, devices), size)
        for part, size in zip(values, frame.sizes, strict=True)
    ]
    partial = [(values[digit], frame.sizes[digit]) for digit in state.partial]
    dims = tuple(tuple(splits[digit] for digit in dim) for dim in state.dims)
    return DeviceBlocks(dims, _number(partial, len(devices)), devices)


def blocks_of_type(kind: ArrayType) -> DeviceBlocks:
    """Who has what in a type, by its mesh alone: whatever frame it is planned in."""
    axes, sizes = digit_values(kind.mesh.sizes), kind.mesh.sizes
    devices = ranked(kind.mesh.devices)

    def values(part: SubAxis) -> IntArray:
        return np.asarray(axes[part.axis] // (sizes[part.axis] // part.before // part.size)) % (
            part.size
        )

    dims = tuple(
        tuple(DevicePart(_by_device(values(part), devices), part.size) for part in dim)
        for dim in kind.layout.dims
    )
    partial = [(values(part), part.size) for part in kind.layout.partial]
    return DeviceBlocks(dims, _number(partial, len(devices)), devices)


def ranked(devices: Sequence[int]) -> IntArray:
    """Devices as numbers from 0 in their order: here a device is its number among those used."""
    return np.unique(np.array(devices, dtype=np.int64), return_inverse=True)[1]


def digit_values(sizes: Sequence[int]) -> IntArray:
    """Of each digit its value at every mesh position, positions being row-major over the digits."""
    return np.indices(tuple(sizes), dtype=np.int64).reshape(len(sizes), math.prod(sizes))


def _by_device(values: IntArray, devices: IntArray) -> IntArray:
    found = np.empty(len(devices), dtype=np.int64)
    found[devices] = values
    return found


def _number(parts: Sequence[tuple[IntArray, int]], positions: int) -> IntArray:
    """The values of several parts as one number."""
    found = np.zeros(positions, dtype=np.int64)
    for values, size in parts:
        found = found * size + values
    return found


def intervals(size: int, splits: Sequence[DevicePart], devices: int) -> tuple[IntArray, IntArray]:
    """First element and number of elements of each device, in a dimension of ``size``.

    Chunks are as even as can be: all of the first's size, rounded up, but the last ones.
    """
    first = np.zeros(devices, dtype=np.int64)
    length = np.full(devices, size, dtype=np.int64)
    for split in splits:
        chunk = -(-length // split.ways)
        before = np.minimum(split.part * chunk, length)
        first, length = first + before, np.minimum(chunk, length - before)
    return first, length


@dataclass(frozen=True, slots=True)
class DimensionCells:
    """The cells of a dimension: ``bounds`` are their first elements and, last, its size."""

    bounds: IntArray
    size: int

    @staticmethod
    def of(size: int, every: Iterable[Sequence[DevicePart]], devices: int) -> DimensionCells:
        """The cells that the blocks of these splits of a dimension make."""
        marks = [np.array([0, size], dtype=np.int64)]
        for splits in every:
            first, length = intervals(size, splits, devices)
            marks += [np.unique(first), np.unique(first + length)]
        return DimensionCells(np.unique(np.concatenate(marks)), size)

    @property
    def lengths(self) -> IntArray:
        """Elements of each cell, and last a 0: that of no cell."""
        return np.append(np.diff(self.bounds), 0)

    @property
    def alike(self) -> bool:
        """Whether all have one length."""
        return len(np.unique(np.diff(self.bounds))) == 1

    def rows(self, splits: Sequence[DevicePart], devices: int) -> CellArray:
        """The cells of each device in order: shape (devices, most cells of a device)."""
        first, length = intervals(self.size, splits, devices)
        start = np.searchsorted(self.bounds, first)
        return spans(start, np.searchsorted(self.bounds, first + length))


def spans(start: IntArray, end: IntArray) -> CellArray:
    """Rows of consecutive numbers from ``start`` to before ``end``, then :data:`NONE`."""
    width = int((end - start).max(initial=0))
    found = start[:, None] + np.arange(width)
    return np.where(found < end[:, None], found, NONE).astype(np.int32)


# Who is in a group of a redistribution step, and which chunk is whose, by digits of positions.


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """The groups of a step: ``members[g, m]`` are devices, ``values[digit][m]`` their digits."""

    members: IntArray
    values: dict[int, IntArray]
    sizes: tuple[int, ...]
    everyone: dict[int, IntArray]

    @staticmethod
    def of(frame: Frame, step: ArrayStep) -> GroupMembers:
        """Devices whose mesh positions differ in the moved digits only."""
        at = digit_values(frame.sizes)
        moved = step.moved
        devices = ranked(frame.orders[step.before.order])
        rest = [digit for digit in range(len(frame.sizes)) if digit not in moved]
        order = np.lexsort([at[digit] for digit in reversed([*rest, *moved])])
        members = devices[order].reshape(-1, frame.ways(moved))
        first = order[: members.shape[1]]
        everyone = {}
        for digit in moved:
            everyone[digit] = np.empty(len(devices), dtype=np.int64)
            everyone[digit][devices] = at[digit]
        return GroupMembers(members, {d: at[d][first] for d in moved}, frame.sizes, everyone)

    @property
    def size(self) -> int:
        return int(self.members.shape[1])

    def number(self, digits: Sequence[int]) -> IntArray:
        """Of each member its digits as one number, the first most significant."""
        return self._of(digits, self.values, self.size)

    def own(self, digits: Sequence[int]) -> IntArray:
        """The same of each device."""
        return self._of(digits, self.everyone, self.members.size)

    def tiled(self, digits: Sequence[int]) -> IntArray:
        """The same of the members of all groups, one group after the other."""
        return np.tile(self.number(digits), len(self.members))

    def _of(self, digits: Sequence[int], values: dict[int, IntArray], count: int) -> IntArray:
        found = np.zeros(count, dtype=np.int64)
        for digit in digits:
            found = found * self.sizes[digit] + values[digit]
        return found
