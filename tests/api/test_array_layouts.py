"""An array between two meshes: its boxes are those of its type, and redistributions obey bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2smt.api.arrays import ARRAY, array_layout
from p2smt.errors import InputError
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh


def kind(
    mesh: str, shape: tuple[int, ...], layout: str, uneven: Uneven = Uneven.REFUSE
) -> ArrayType:
    made = parse_mesh(mesh)
    return ArrayType(made, shape, ElementType.BF16, parse_layout(layout, made), uneven)


def held(one: ArrayType) -> dict[int, Any]:
    """The elements of each position, row-major, as lists of numbers."""
    numbers = np.arange(int(np.prod(one.shape))).reshape(one.shape)
    found: dict[int, Any] = {}
    for box, ranks in array_layout(one).shards[ARRAY].boxes:
        for rank in ranks:
            found[rank] = numbers[tuple(slice(*ends) for ends in box)].tolist()
    return found


def test_axes_are_major_first() -> None:
    assert held(kind("a=2,b=2", (4,), "S(b,a)")) == {0: [0], 2: [1], 1: [2], 3: [3]}
    assert held(kind("a=2,b=2", (4,), "S(a)")) == {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}


def test_parts_of_axes() -> None:
    assert held(kind("a=4", (4,), "S(a:(2)2,a:(1)2)")) == {0: [0], 2: [1], 1: [2], 3: [3]}


def test_dimensions_that_do_not_divide() -> None:
    """Chunks of chunks as torch.chunk has them; padded ones end where the array does."""
    nested = held(kind("a=2,b=2", (5,), "S(a,b)", Uneven.NESTED))
    assert nested == {0: [0, 1], 1: [2], 2: [3], 3: [4]}
    padded = held(kind("a=2,b=2", (5,), "S(a,b)", Uneven.PADDED))
    assert padded == {0: [0, 1], 1: [2, 3], 2: [4]}


def test_partial_values_are_refused() -> None:
    with pytest.raises(InputError, match="partial values: are sums still to be made"):
        array_layout(kind("a=2", (4,), "R;P(a)"))
