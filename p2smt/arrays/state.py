"""A layout on the digits of a mesh: what a redistribution passes through.

Digits are the parts into which a redistribution cuts the mesh's axes, most significant first
(:mod:`p2smt.arrays.frame`); here they are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


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
