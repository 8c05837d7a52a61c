"""Which parallelism matrix has a given order of ranks, on a whole cluster or inside its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.parallelism.rank_list import RankList


def matrix_of(ranks: IntArray, levels: Sequence[int]) -> Matrix | None:
    """The matrix whose rank tensor this is; None if no matrix expresses the order.

    The ranks along one axis that stay in the first entity of a level, all others being 0, are as
    many as the axis is split further in: that gives the only matrix it can be.
    """
    rows = tuple(_row(ranks, axis, levels) for axis in range(ranks.ndim))
    matrix = tuple(row for row in rows if row is not None)
    if len(matrix) < len(rows) or Placement(matrix).level_sizes != tuple(levels):
        return None
    return matrix if np.array_equal(Placement(matrix).rank_tensor(), ranks) else None


def _row(ranks: IntArray, axis: int, levels: Sequence[int]) -> tuple[int, ...] | None:
    line = np.moveaxis(ranks, axis, 0).reshape(ranks.shape[axis], -1)[:, 0]
    inside = [
        int(np.count_nonzero(line // math.prod(levels[j:]) == 0)) for j in range(len(levels) + 1)
    ]
    pairs = list(pairwise(inside))
    whole = all(inner > 0 and outer % inner == 0 for outer, inner in pairs)
    return tuple(outer // inner for outer, inner in pairs) if whole else None


def inside_matrix(where: RankList, topology: Topology) -> Matrix | None:
    """The matrix by which the ranks of each node lie on its devices, outermost level inside first.

    None: the nodes differ, or no matrix expresses it.  Each node is full or empty.
    """
    sizes = topology.sizes[topology.node_level + 1 :]
    devices = where.rank_tensor()
    order = np.argsort(devices, axis=None)
    coordinates = np.array(np.unravel_index(order, devices.shape))
    by_node = coordinates.reshape(devices.ndim, -1, math.prod(sizes))
    local = by_node - by_node.min(axis=2, keepdims=True)
    first = local[:, 0]
    shape = tuple((first.max(axis=1) + 1).tolist())
    if (local != local[:, :1]).any() or math.prod(shape) != first.shape[1]:
        return None
    tensor = np.empty(shape, dtype=np.int64)
    tensor[tuple(first)] = np.arange(first.shape[1])  # ranks differ, so every cell is set
    return matrix_of(tensor, sizes)
