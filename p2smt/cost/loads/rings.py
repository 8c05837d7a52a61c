"""Rings over the members of a group: their order, and how many a level's links carry at once.

A library that joins nodes (NCCL, RCCL) numbers the nodes of a group by first appearance and walks
through each in device order; one that does not (Gloo) follows the communicator strictly.

Of the rings between siblings as many run at once as the links carry evenly.  Over a full mesh every
order of the s spanned siblings is as good as another, and over all orders each of the s(s - 1)
directed links has the same part of a ring's edges.  A ring level that a group closes runs in both
directions.  A torus whose dimensions are longer than 2 falls apart into one cycle through all
siblings per dimension (Kotzig 1973; Aubert, Schneider 1982), each used in both directions; a
dimension of 2 adds none.  A group that does not close the level keeps its one ring, in its order.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.loads.routing import FloatArray, worst_link
from p2smt.parallelism.placement import IntArray


def node_order(groups: IntArray, devices_per_node: int, by_device: bool) -> IntArray:
    """Each row with the members of a node side by side, nodes by first appearance.

    ``by_device``: those of a node in device order; otherwise they keep theirs.
    """
    count, members = groups.shape
    node = groups // devices_per_node
    key = node + (int(node.max(initial=0)) + 1) * np.arange(count)[:, None]
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    appeared = first[where.reshape(groups.shape)]
    if by_device:
        rank = np.argsort(np.argsort(groups, axis=1), axis=1)
    else:
        rank = np.broadcast_to(np.arange(members), groups.shape)
    order = np.argsort(appeared * members + rank, axis=1, kind="stable")
    return np.take_along_axis(groups, order, axis=1)


def chain_steps(topology: Topology, groups: IntArray) -> tuple[tuple[int, ...], ...]:
    """Edges of each row's chain that meet at each level: the distinct vectors."""
    apart = [np.zeros(groups[:, 1:].shape, dtype=bool)]
    for j in range(len(topology.levels)):
        apart.append(np.diff(groups // topology.devices_under(j), axis=1) != 0)
    counts = np.stack([(b & ~a).sum(axis=1) for a, b in pairwise(apart)], 1)
    return tuple(sorted({tuple(row) for row in counts.tolist()}))


def even_load(level: Level, spanned: int, closed: bool) -> float | None:
    """Load of every link if one ring through the spanned siblings is split evenly, or None.

    ``closed``: the ring's edges between these siblings are a cycle, otherwise a chain.
    """
    if level.link.kind is LinkKind.FULL_MESH:
        return 1 / (spanned - 1) if closed else 1 / spanned
    if closed and spanned == level.size:
        return 1 / parallel_rings(level)
    return None


def parallel_rings(level: Level) -> int:
    """How many rings through all siblings of a ring or torus run at once, none sharing a link."""
    if level.size == 2:
        return 1  # there and back on the one pair of links
    long = sum(length > 2 for length in level.link.torus or (level.size,))
    return 2 * max(1, long)


def mesh_load(
    level: Level, row: IntArray, source: IntArray, target: IntArray, weight: FloatArray
) -> float:
    """Worst link of full meshes when each row's edges are split evenly over its links.

    ``source`` and ``target`` are sibling indices plus ``size`` times the parent entity.
    """
    total = int(max(source.max(initial=0), target.max(initial=0))) // level.size + 1
    mesh = row * total + source // level.size
    meshes, where = np.unique(mesh, return_inverse=True)
    edges = np.bincount(where, weights=weight)
    ends = np.stack([np.tile(where, 2), np.concatenate([source, target])])
    spots = np.unique(ends, axis=1)
    starts = np.searchsorted(spots[0], np.arange(len(meshes) + 1))
    source, target, weight = source[:0], target[:0], weight[:0]
    for at, load in enumerate(edges.tolist()):
        spanned = spots[1, starts[at] : starts[at + 1]]
        apart = ~np.eye(len(spanned), dtype=bool)
        a, b = (side[apart] for side in np.meshgrid(spanned, spanned))
        source, target = np.append(source, a), np.append(target, b)
        weight = np.append(weight, np.full(len(a), load / len(a)))
    return worst_link(level, source, target, weight)
