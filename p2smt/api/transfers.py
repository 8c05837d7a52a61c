"""One array between two meshes, as a transfer: layouts of array types."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from p2smt.errors import InputError
from p2smt.resharding.types import ArrayType, SubAxis, Uneven
from p2smt.transfer.layouts import IndexBox, Shards, Tensor, WeightLayout

ARRAY = "array"
"""The name of the one tensor."""


def array_layout(kind: ArrayType) -> WeightLayout:
    """Who holds which box of an array; rank p is mesh position p.

    Where dimensions do not divide, padding is nobody's.

    Raises:
        InputError: it has partial values, which have to be added, not moved.
    """
    if kind.layout.partial:
        rule = "are sums still to be made, which a transfer between meshes does not make"
        raise InputError("partial values", rule, "redistribute them on their own mesh first")
    held: dict[IndexBox, list[int]] = {}
    places = itertools.product(*map(range, kind.mesh.sizes))
    for position, place in enumerate(places):
        box = tuple(
            _chunk(kind, place, size, parts)
            for size, parts in zip(kind.shape, kind.layout.dims, strict=True)
        )
        if all(start < stop for start, stop in box):
            held.setdefault(box, []).append(position)
    shards = Shards(tuple((box, tuple(ranks)) for box, ranks in held.items()))
    tensor = Tensor(ARRAY, kind.shape)
    return WeightLayout(kind.mesh.size, {ARRAY: tensor}, {ARRAY: shards})


def _chunk(
    kind: ArrayType, place: Sequence[int], size: int, parts: Sequence[SubAxis]
) -> tuple[int, int]:
    """The indices of a dimension at a mesh position."""
    digits = [_digit(kind, place, part) for part in parts]
    if kind.uneven is Uneven.PADDED:
        whole, at = math.prod(part.size for part in parts), 0
        for digit, part in zip(digits, parts, strict=True):
            at = at * part.size + digit
        each = -(-size // whole)
        return min(at * each, size), min(at * each + each, size)
    start, stop = 0, size
    for digit, part in zip(digits, parts, strict=True):
        each = -(-(stop - start) // part.size)
        start = min(start + digit * each, stop)
        stop = min(start + each, stop)
    return start, stop


def _digit(kind: ArrayType, place: Sequence[int], part: SubAxis) -> int:
    after = kind.mesh.axes[part.axis].size // (part.before * part.size)
    return place[part.axis] // after % part.size
