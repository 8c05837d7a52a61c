"""The shards of small arrays, empty ones too, against DTensor's own computation of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.distributed.tensor import Placement, Replicate, Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset

from p2smt.interop.arrays.torch_spec import array_type_of_placements
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.index_maps import blocks_of_type, intervals
from p2smt.resharding.types import ArrayType, Mesh
from p2smt.runtime.arrays.block_values import ArrayBlock, block_of

MESHES = ((4,), (8,), (3,), (2, 2), (2, 3), (3, 2), (2, 2, 2))
SHAPES = [(size,) for size in range(1, 10)] + list(itertools.product((1, 2, 3, 4), (1, 2, 5)))


def dtensor_blocks(
    sizes: tuple[int, ...], shape: tuple[int, ...], placements: tuple[Placement, ...]
) -> Iterator[ArrayBlock]:
    """What DTensor gives to each position of a mesh, row-major."""
    for place in np.ndindex(*sizes):
        length, first = _compute_local_shape_and_global_offset(
            shape, sizes, list(place), placements
        )
        yield ArrayBlock(tuple(first), tuple(length))


def same(one: ArrayBlock, other: ArrayBlock) -> bool:
    """Whether blocks are alike; an empty one begins nowhere."""
    return one.shape == other.shape and (one.first == other.first or 0 in one.shape)


def by_index_maps(kind: ArrayType) -> list[ArrayBlock]:
    """The blocks that the specification gives to each device."""
    pairs = zip(kind.shape, blocks_of_type(kind).dims, strict=True)
    found = [intervals(size, splits, kind.mesh.size) for size, splits in pairs]
    return [
        ArrayBlock(
            tuple(int(first[d]) for first, _ in found), tuple(int(length[d]) for _, length in found)
        )
        for d in range(kind.mesh.size)
    ]


@pytest.mark.parametrize("sizes", MESHES)
def test_shards_are_those_of_dtensor(sizes: tuple[int, ...]) -> None:
    mesh, empty = Mesh.of([(f"a{i}", size) for i, size in enumerate(sizes)]), 0
    for shape in SHAPES:
        dims = [Replicate(), *map(Shard, range(len(shape)))]
        for placements in itertools.product(dims, repeat=len(sizes)):
            kind = array_type_of_placements(mesh, placements, shape, torch.float32)
            ends = ends_of(kind, kind)[0]
            theirs = list(dtensor_blocks(sizes, shape, placements))
            ours = [block_of(ends.frame, ends.source, device) for device in range(mesh.size)]
            assert all(map(same, theirs, ours)), (shape, placements)
            assert all(map(same, theirs, by_index_maps(kind))), (shape, placements)
            largest = math.prod(ends.frame.local_shape(ends.source))
            assert largest == max(math.prod(block.shape) for block in theirs)
            empty += any(0 in block.shape for block in theirs)
    assert empty
