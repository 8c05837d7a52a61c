"""Rings over the members of a group: their order, and how many a level's links carry at once.

A library that joins nodes (NCCL, RCCL) numbers the nodes of a group by first appearance and walks
through each in device order; one that does not (Gloo) follows the communicator strictly.

Of the rings between siblings as many run at once as the links carry evenly.  Over a full mesh every
order of the s spanned siblings is as good as another, and over all orders each of the s(s - 1)
directed links has the same part of a ring's edges.  A ring level that a group closes runs in both
directions.  A torus whose dimensions are longer than 2 falls apart into one cycle through all
siblings per dimension (Kotzig 1973; Aubert, Schneider 1982), each used in both directions; a
dimension of 2 adds none.  A group that does not close the level keeps its one ring, in its order.

Over the uplinks of nodes and switches a ring (or a send's chain) has a connection from each rank to
the next, an all-to-all one for each ordered pair of a group.  All connections of a request carry as
many bytes, so that the uplink with most of them, for its bandwidth, is the one that decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.level_use import worst_link
from p2smt.parallelism.placement import FloatArray, IntArray


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


# The double binary tree over the nodes of a group, and what it sends out of each.
# Half of the payload goes through each of two trees; where one has an inner node, the other mostly
# has a leaf.  Inside a node the members are a chain whose head talks to other nodes.  An all-reduce
# sends up to the root and back down, so each edge carries half of the payload in both directions.
#
# Where a group spans several nodes, a library runs one such pair of trees per channel, and the
# chain of each channel starts at another member (the one next to the channel's network card): on
# average every edge of the closed chain of q members is used by (q - 1)/q of them, and every member
# is the head of 1/q.  In one node alone there is no such reason, and the chain is the same in every
# channel.
#
# Sources: Sanders, Speck, Traff 2009 (two trees); NCCL 2.30.7, src/graph/trees.cc (ncclGetDtree)
# and connect.cc (chains, channels).


HALF = 0.5
"""Part of the payload in each of the two trees."""


@lru_cache(maxsize=256)
def double_binary_tree(nodes: int) -> tuple[IntArray, IntArray]:
    """The parent of each node in both trees, -1 at the root; nodes are numbered in their order.

    The second tree mirrors the first if there is an even number of nodes; otherwise it is the
    first, shifted by one node.
    """
    first = _binary_tree(nodes)
    if nodes % 2 == 0:
        return first, np.where(first < 0, -1, nodes - 1 - first)[::-1].copy()
    shifted = np.where(first < 0, -1, (first + 1) % nodes)
    return first, np.roll(shifted, 1)


def _binary_tree(nodes: int) -> IntArray:
    """Parents in a tree that alternates leaves (odd numbers) and inner nodes; the root is 0.

    With b the lowest bit of a number, its parent has b cleared and 2b set, or where there is no
    such node, b cleared.
    """
    number = np.arange(nodes, dtype=np.int64)
    lowest = number & -number
    parent = (number ^ lowest) | (2 * lowest)
    parent = np.where(parent < nodes, parent, number ^ lowest)
    parent[0] = -1
    return parent


def tree_edges(nodes: int) -> tuple[IntArray, IntArray]:
    """The edges of both trees: children and their parents."""
    trees = double_binary_tree(nodes)
    child = np.concatenate([np.flatnonzero(parent >= 0) for parent in trees])
    return child, np.concatenate([parent[parent >= 0] for parent in trees])


@lru_cache(maxsize=4096)
def block_load(nodes: int, block: int) -> float:
    """What the worst of equal blocks of successive nodes sends out (and receives), per n.

    A block is what an entity holds of a group in device order: one node, or the nodes of a leaf.
    """
    child, parent = (end // block for end in tree_edges(nodes))
    apart = child != parent
    ends = np.concatenate([child[apart], parent[apart]])
    return HALF * float(np.bincount(ends).max(initial=0))


def inner_load(nodes: int, local: int, inside: int) -> float:
    """The same for an entity with ``inside`` successive ones of the ``local`` members of a node."""
    if nodes > 1:
        chain = 2 * chain_part(local) if inside < local else 0.0
        return chain + block_load(nodes, 1) * inside / local
    return float(min(2, local // inside - 1))


def chain_part(local: int) -> float:
    """The part of the channels that use an edge of the closed chain of a node's members."""
    return (local - 1) / local


@dataclass(frozen=True, slots=True)
class GroupTrees:
    """The edges of the trees of many groups, between positions in the flattened array of groups.

    ``source``, ``target``, ``part``: each edge of a node's chain and the part of the channels that
    use it.  ``child``, ``parent``: edges between nodes, by node; ``head`` is the position of a
    node's first member, ``node`` the node of each member, ``local`` the members of each node.
    """

    source: IntArray
    target: IntArray
    part: FloatArray
    child: IntArray
    parent: IntArray
    head: IntArray
    node: IntArray
    local: IntArray

    def sent(self, entity: IntArray, inside_nodes: bool) -> FloatArray:
        """What each entity sends out, per n; ``entity`` is that of each member (of each group)."""
        ends = entity[self.source], entity[self.target]
        apart = ends[0] != ends[1]
        weight = np.where(apart, self.part, 0.0)
        found = sum(np.bincount(end, weight, entity.max() + 1) for end in ends)
        child, parent = self.head[self.child], self.head[self.parent]
        if inside_nodes:  # every member is the head of as many channels
            half = np.full(len(child), HALF)
            both = np.bincount(np.concatenate([self.child, self.parent]), np.tile(half, 2))
            each = np.zeros(len(self.head))
            each[: len(both)] = both
            share = (each / self.local)[self.node]
            return np.asarray(found + np.bincount(entity, share))
        ends = entity[child], entity[parent]
        weight = np.where(ends[0] != ends[1], HALF, 0.0)
        return np.asarray(found + sum(np.bincount(e, weight, entity.max() + 1) for e in ends))


def group_trees(groups: IntArray, devices_per_node: int) -> GroupTrees:
    """The trees of groups whose rows have the members of each node side by side."""
    members = groups.shape[1]
    host = groups // devices_per_node
    fresh = np.ones(groups.shape, dtype=bool)
    fresh[:, 1:] = np.diff(host, axis=1) != 0
    head, node = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    local = np.diff(head, append=groups.size)
    nodes = fresh.sum(axis=1)
    source = np.arange(groups.size)
    last = np.append(fresh.ravel()[1:], True)
    target = np.where(last, head[node], source + 1)
    one = np.repeat(nodes == 1, members)
    part = np.where(one, np.where(last, 0.0, 1.0), (1 - 1 / local)[node])
    used = part > 0
    child, parent = _edges_between(nodes)
    return GroupTrees(source[used], target[used], part[used], child, parent, head, node, local)


def _edges_between(nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Edges of the trees of every group, by node; ``nodes`` is how many each group has."""
    first = np.cumsum(nodes) - nodes
    found = [tree_edges(1)]
    for count in np.unique(nodes).tolist():
        start = first[nodes == count][:, None]
        found.append(tuple((start + end).ravel() for end in tree_edges(count)))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def crossings(
    topology: Topology, ranks: IntArray, axes: Sequence[int], kind: RequestKind
) -> tuple[FloatArray, ...]:
    """Per level from the outermost to that of the nodes: connections over each entity's uplink.

    Shape (2, entities of the hull): out of each, and into it.  ``ranks`` is a rank tensor (shape:
    axis sizes, entries: device ids), ``axes`` those of the request, by index.
    """
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    lines = ranks.transpose([*rest, *axes]).reshape(-1, members)
    levels = range(topology.node_level + 1)
    if kind is RequestKind.ALL_TO_ALL:
        return tuple(_pairs(topology, lines, j) for j in levels)
    if kind is RequestKind.SEND:
        source, target = lines[:, :-1].ravel(), lines[:, 1:].ravel()
    else:
        ring = _ring(topology, lines)
        source, target = ring.ravel(), np.roll(ring, -1, axis=1).ravel()
    return tuple(_edges(topology, source, target, j) for j in levels)


def _ring(topology: Topology, lines: IntArray) -> IntArray:
    """The members of each group in the order in which the library's rings visit them."""
    if topology.library and not topology.known_library.joins_nodes:
        return lines
    return node_order(lines, topology.devices_under(topology.node_level), by_device=True)


def _edges(topology: Topology, source: IntArray, target: IntArray, j: int) -> FloatArray:
    under, count = topology.devices_under(j), math.prod(topology.sizes[: j + 1])
    apart = source // under != target // under
    ends = [np.bincount(side[apart] // under, minlength=count) for side in (source, target)]
    return np.array(ends, dtype=float)


def _pairs(topology: Topology, lines: IntArray, j: int) -> FloatArray:
    """Of q members of p in an entity, each sends to the p - q others."""
    under, count = topology.devices_under(j), math.prod(topology.sizes[: j + 1])
    found, members = np.zeros(count), lines.shape[1]
    for row in lines:
        inside = np.bincount(row // under, minlength=count)
        found += inside * (members - inside)
    return np.stack([found, found])
