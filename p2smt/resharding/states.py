"""What all states of one redistribution share: digits, orders of devices, the array's shape.

A mesh position is a mixed-radix number over the digits, the first most significant: axis by axis,
and inside an axis from its most significant part.  Groups of a set of digits are the positions
that differ in these digits only; all groups of a step run at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.resharding.types import ElementType, Layout, Mesh, ReduceOp, SubAxis


@dataclass(frozen=True, slots=True)
class Frame:
    """``digits`` cut the axes of ``mesh``; ``orders[k]`` are the devices of the positions.

    ``orders`` has one entry, or two where the destination has the devices in another order.
    ``shape`` is the array's, padded where its types are.  ``nested``: uneven dimensions are chunks
    of chunks; digits are whole axes then.  Sharding digits have no size 1.
    """

    mesh: Mesh
    digits: tuple[SubAxis, ...]
    orders: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    element: ElementType
    op: ReduceOp = ReduceOp.SUM
    nested: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each digit."""
        return tuple(digit.size for digit in self.digits)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return math.prod(self.sizes)

    def ways(self, digits: Sequence[int]) -> int:
        """Members of a group of these digits: the product of their sizes."""
        return math.prod(self.digits[digit].size for digit in digits)

    def groups(self, digits: Sequence[int], order: int = 0) -> IntArray:
        """Groups of these digits: shape (groups, members), entries are devices.

        Members are row-major over the digits in the order given, the first most significant.
        """
        places = np.array(self.orders[order], dtype=np.int64).reshape(self.sizes)
        rest = [digit for digit in range(len(self.digits)) if digit not in digits]
        return places.transpose([*rest, *digits]).reshape(-1, self.ways(digits))

    def coordinates(self) -> IntArray:
        """Value of each digit at each mesh position: shape (positions, digits)."""
        return np.indices(self.sizes, dtype=np.int64).reshape(-1, self.devices).T

    def local_shape(self, state: ArrayState) -> tuple[int, ...]:
        """The largest local shape that a device has."""
        return tuple(
            self._largest(size, dim) for size, dim in zip(self.shape, state.dims, strict=True)
        )

    def _largest(self, size: int, dim: Sequence[int]) -> int:
        for digit in dim:
            size = -(-size // self.digits[digit].size)
        return size

    def local_bytes(self, state: ArrayState) -> int:
        """Bytes of the largest local array."""
        return math.prod(self.local_shape(state)) * self.element.item_bytes

    def fits(self, state: ArrayState) -> bool:
        """Whether the dimensions divide by their shards, where they must."""
        pairs = zip(self.shape, state.dims, strict=True)
        return self.nested or all(size % self.ways(dim) == 0 for size, dim in pairs)

    def is_even(self, dim: int, state: ArrayState) -> bool:
        """Whether a dimension divides by its shards in a state."""
        return self.shape[dim] % self.ways(state.dims[dim]) == 0

    def layout(self, state: ArrayState) -> Layout:
        """The state as a layout: adjacent digits of an axis are one part of it."""
        dims = tuple(joined([self.digits[digit] for digit in dim]) for dim in state.dims)
        return Layout(dims, joined([self.digits[digit] for digit in state.partial]), self.op)

    def names(self, digits: Sequence[int]) -> str:
        """The digits as axes and sub-axes, for people: ``dp,tp:(2)4``."""
        return ",".join(part.text(self.mesh) for part in joined([self.digits[d] for d in digits]))


def joined(parts: Sequence[SubAxis]) -> tuple[SubAxis, ...]:
    """Parts in their order, a part and the next less significant one of its axis being one."""
    found: list[SubAxis] = []
    for part in parts:
        last = found[-1] if found else None
        if last and last.axis == part.axis and last.before * last.size == part.before:
            found[-1] = SubAxis(part.axis, last.before, last.size * part.size)
        else:
            found.append(part)
    return tuple(found)


def state_of(layout: Layout, digits: Sequence[SubAxis], mesh: Mesh, order: int = 0) -> ArrayState:
    """A layout on digits that refine its parts.

    Raises:
        InputError: a part is no run of digits of its axis.
    """
    dims = tuple(
        tuple(digit for part in dim for digit in digits_of_part(part, digits, mesh))
        for dim in layout.dims
    )
    partial = sorted(
        digit for part in layout.partial for digit in digits_of_part(part, digits, mesh)
    )
    return ArrayState(dims, tuple(partial), order)


def digits_of_part(part: SubAxis, digits: Sequence[SubAxis], mesh: Mesh) -> tuple[int, ...]:
    """The digits (by index) of which a part of an axis consists, most significant first.

    Raises:
        InputError: it begins or ends inside a digit.
    """
    end = part.before * part.size
    found = tuple(
        index
        for index, digit in enumerate(digits)
        if digit.axis == part.axis
        and part.before <= digit.before
        and digit.before * digit.size <= end
    )
    if math.prod(digits[index].size for index in found) != part.size:
        cuts = ", ".join(digit.text(mesh) for digit in digits if digit.axis == part.axis)
        rule = f"the axis is cut into {cuts}"
        raise InputError(f"sub-axis {part.text(mesh)}", rule, "choose parts that share these cuts")
    return found


# A layout on the digits of a mesh: what a redistribution passes through.
# Digits are the parts into which a redistribution cuts the mesh's axes, most significant first
# (see the frame); here they are numbers.


@dataclass(frozen=True, slots=True)
class ArrayState:
    """``dims[i]`` are the digits that shard dimension i, major first; absent digits replicate.

    ``partial`` digits hold contributions that are still to be reduced, in ascending order.
    ``order`` says which of the frame's orders of devices the positions have.
    """

    dims: tuple[tuple[int, ...], ...]
    partial: tuple[int, ...] = ()
    order: int = 0

    @property
    def sharding(self) -> frozenset[int]:
        """The digits that shard some dimension."""
        return frozenset(digit for dim in self.dims for digit in dim)
