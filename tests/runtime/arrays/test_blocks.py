"""Where blocks lie, against torch's own chunks and the definition of an even layout."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from p2smt.resharding.types import Uneven
from p2smt.runtime.arrays.block_values import block_of, chunk_lengths, part_of
from tests.runtime.arrays.tools import ends


@given(st.integers(1, 40), st.integers(1, 12))
def test_chunks_are_those_of_torch(size: int, ways: int) -> None:
    found = [length for length in chunk_lengths(size, ways) if length]
    assert found == [len(chunk) for chunk in torch.arange(size).chunk(ways)]
    assert len(chunk_lengths(size, ways)) == ways


def test_nested_chunks_of_five_on_two_by_two() -> None:
    found = ends("a=2,b=2", (5,), "S(a,b)", "R", uneven=Uneven.NESTED)
    blocks = [block_of(found.frame, found.source, device) for device in range(4)]
    assert [(block.first[0], block.shape[0]) for block in blocks] == [
        (0, 2),
        (2, 1),
        (3, 1),
        (4, 1),
    ]


def test_major_comes_first_and_positions_have_devices() -> None:
    found = ends("a=2,b=2", (4, 3), "S(b,a),R", "R,R", devices=(3, 1, 0, 2))
    first = [block_of(found.frame, found.source, device).first[0] for device in range(4)]
    # positions (a, b) = (0, 0), (0, 1), (1, 0), (1, 1) are devices 3, 1, 0, 2; b is major
    assert first == [1, 2, 3, 0]


@pytest.mark.parametrize("uneven", [Uneven.PADDED, Uneven.NESTED])
@pytest.mark.parametrize("shape", [(7, 5), (6, 12), (5, 9), (1, 2)])
def test_blocks_cover_the_array_as_often_as_it_is_replicated(
    uneven: Uneven, shape: tuple[int, int]
) -> None:
    found = ends("a=2,b=3,c=2", shape, "S(c),S(b)", "R,R", uneven=uneven)
    count = np.zeros(found.frame.shape, dtype=np.int64)
    for device in range(12):
        block = block_of(found.frame, found.source, device)
        pairs = zip(block.first, block.shape, strict=True)
        count[tuple(slice(first, first + length) for first, length in pairs)] += 1
    assert (count == 2).all()


def test_every_contribution_is_held_once_per_block() -> None:
    found = ends("a=2,b=2,c=2", (4,), "S(b);P(a);P(c)", "R")
    held = Counter(
        (block_of(found.frame, found.source, device), part_of(found.frame, found.source, device))
        for device in range(8)
    )
    assert set(held.values()) == {1}
    assert len(held) == 8
