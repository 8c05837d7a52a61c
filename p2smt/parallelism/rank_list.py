"""Rank lists: ranks on devices in any order, also one that no parallelism matrix expresses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Matrix, Placement, rank_groups


@dataclass(frozen=True, slots=True)
class RankList:
    """The device of each rank; ranks are row-major over axes of ``axis_sizes``.

    Devices are numbered as in a topology, whose places need not all have a rank
    (:mod:`p2smt.cluster.hosts`).

    Raises:
        InputError: a device is named twice or below 0, or the sizes do not fit.
    """

    ranks: tuple[int, ...]
    axis_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        count = math.prod(self.axis_sizes)
        given = f"rank list {self.text()} with {len(self.ranks)} entries"
        if len(self.ranks) != count or len(set(self.ranks)) != count or min(self.ranks) < 0:
            raise InputError(given, f"must hold {count} devices, each once, numbered from 0")

    def check(self, topology: Topology) -> None:
        """Whether every device of the topology that is there has a rank, and no other.

        Raises:
            InputError: it is not so.
        """
        there = topology.places
        if set(self.ranks) != there:
            rule = f"must hold each device 0..{len(there) - 1} once"
            if topology.installed < topology.devices:
                rule = f"must hold each device of the hosts of {topology.name} once"
            raise InputError(f"rank list {self.text()} with {len(self.ranks)} entries", rule)

    def text(self) -> str:
        """The list as JSON without blanks, shortened where it is long."""
        shown = ",".join(map(str, self.ranks[:16]))
        return f"[{shown}]" if len(self.ranks) <= 16 else f"[{shown},..]"

    def rank_tensor(self) -> IntArray:
        """Device id of each rank: shape = axis sizes."""
        return np.array(self.ranks, dtype=np.int64).reshape(self.axis_sizes)

    def groups(self, axes: Sequence[int]) -> IntArray:
        """Groups that reducing these axes induces: shape (groups, members), members ascending."""
        return rank_groups(self.rank_tensor(), axes)

    def lines(self, axes: Sequence[int]) -> IntArray:
        """The same groups with their members in the order of the ranks, along which sends go."""
        rest = [i for i in range(len(self.axis_sizes)) if i not in axes]
        members = math.prod(self.axis_sizes[i] for i in axes)
        return self.rank_tensor().transpose([*rest, *axes]).reshape(-1, members)


RankMap = Placement | RankList
"""Where ranks lie: a parallelism matrix, or the device of each rank."""


# Which parallelism matrix has a given order of ranks, on a whole cluster or inside its nodes.


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
