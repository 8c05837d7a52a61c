"""The type of a distributed array: mesh, global shape, element type and layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from p2smt.arrays.element import ElementType, ReduceOp
from p2smt.arrays.layout import Layout
from p2smt.arrays.mesh import MAX_DIMENSIONS, Mesh
from p2smt.errors import InputError

MAX_ELEMENTS = 2**53


class Uneven(Enum):
    """What holds where a dimension does not divide by its shards.

    REFUSE: it is an error.  PADDED: the array is padded at its end until every type of the
    redistribution divides it, and locals are those of the padded array.  NESTED: chunks of chunks,
    one mesh axis after the other, as DTensor's ``torch.chunk``; the last ones are shorter or empty.
    """

    REFUSE = "refuse"
    PADDED = "padded"
    NESTED = "nested"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array of ``shape`` (global elements per dimension) that lies so on a mesh."""

    mesh: Mesh
    shape: tuple[int, ...]
    element: ElementType
    layout: Layout
    uneven: Uneven = Uneven.REFUSE

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        if len(self.layout.dims) != len(self.shape):
            raise InputError(
                f"a layout of {len(self.layout.dims)} dimensions",
                f"the array has {len(self.shape)}",
                "give one entry per dimension, such as 'S(dp),R'",
            )
        self.layout.check(self.mesh)
        self._check_reduction()
        for dim, size in enumerate(self.shape):
            self._check_dimension(dim, size)

    def _check_reduction(self) -> None:
        averages = self.layout.partial and self.layout.op is ReduceOp.AVG
        if averages and not self.element.floating:
            rule = "an average of whole numbers is none of their type"
            raise InputError(f"partial averages of {self.element.value}", rule, "sum instead")

    def _check_dimension(self, dim: int, size: int) -> None:
        shards = self.shards(dim)
        if size % shards and self.uneven is Uneven.REFUSE:
            raise InputError(
                f"dimension {dim} of size {size}",
                f"does not divide into {shards} equal shards",
                "choose --uneven padded or --uneven nested",
            )

    def shards(self, dim: int) -> int:
        """How many ways a dimension is split."""
        return math.prod(part.size for part in self.layout.dims[dim])

    @property
    def global_bytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.element.item_bytes


def _check_shape(shape: tuple[int, ...]) -> None:
    given = f"shape {','.join(map(str, shape)) or '()'}"
    if not shape:
        rule = "an array without dimensions has nothing to shard"
        raise InputError(given, rule, "give at least one dimension")
    if len(shape) > MAX_DIMENSIONS:
        raise InputError(given, f"has more than {MAX_DIMENSIONS} dimensions")
    if min(shape) < 1:
        raise InputError(given, "an empty array has nothing to move", "give sizes of at least 1")
    if math.prod(shape) > MAX_ELEMENTS:
        raise InputError(given, "has more than 2^53 elements", "give a smaller array")
