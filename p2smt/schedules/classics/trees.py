"""Trees, and van de Geijn's broadcast, which scatters along one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.schedules.classics import groups
from p2smt.schedules.classics.start import check, rotated, start
from p2smt.schedules.construction.builder import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.classics.groups import Members, TreeEdges
    from p2smt.schedules.construction.builder import Builder
    from p2smt.schedules.model import Schedule


def binomial_broadcast(
    ranks: int, *, chunks: int = 1, root: int = 0, in_place: bool = True
) -> Schedule:
    """Binomial tree: ceil(log2 n) steps for one chunk, any number of ranks."""
    b = start("broadcast", ranks, chunks, in_place=in_place, root=root)
    _down(b, rotated(ranks, root), groups.binomial_edges(ranks), range(chunks), 0)
    return b.schedule("binomial-broadcast")


def binomial_reduce(
    ranks: int, *, chunks: int = 1, root: int = 0, in_place: bool = True
) -> Schedule:
    """Binomial tree: ceil(log2 n) steps for one chunk, any number of ranks."""
    b = start("reduce", ranks, chunks, in_place=in_place, root=root)
    _up(b, rotated(ranks, root), groups.binomial_edges(ranks), range(chunks), 0)
    return b.schedule("binomial-reduce")


def binomial_all_reduce(ranks: int, *, chunks: int = 1, in_place: bool = True) -> Schedule:
    """Up a binomial tree and down again: 2 ceil(log2 n) steps for one chunk, any number of ranks.

    One channel each way, so that the first chunks come down while others still go up.
    """
    b = start("allreduce", ranks, chunks, in_place=in_place)
    edges = groups.binomial_edges(ranks)
    _up(b, range(ranks), edges, range(chunks), 0)
    _down(b, range(ranks), edges, range(chunks), 1)
    return b.schedule("binomial-all-reduce")


def double_binary_tree_all_reduce(
    ranks: int, *, chunks: int = 2, in_place: bool = True
) -> Schedule:
    """Two binary trees, each for half of the chunks; inner ranks of one are leaves of the other.

    About 2 (2 log2 n + chunks) steps, any number of ranks, an even number of chunks.  Sanders,
    Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009.
    """
    check(chunks % 2 == 0, f"{chunks} chunks", "are shared by two trees: must be even")
    b = start("allreduce", ranks, chunks, in_place=in_place)
    edges = in_order_edges(ranks)
    mirrored = [ranks - 1 - r if ranks % 2 == 0 else (r + 1) % ranks for r in range(ranks)]
    for tree, members in enumerate((range(ranks), mirrored)):
        half = range(tree * chunks // 2, (tree + 1) * chunks // 2)
        _up(b, members, edges, half, 2 * tree)
        _down(b, members, edges, half, 2 * tree + 1)
    return b.schedule("double-binary-tree-all-reduce")


def _up(
    b: Builder, members: Members, edges: TreeEdges, chunks: Sequence[int], channel: int
) -> None:
    for chunk in chunks:
        for parent, child in reversed(edges):
            pair = (members[child], members[parent], runs([chunk]))
            b.exchange([pair], reduce=True, channel=channel)


def _down(
    b: Builder, members: Members, edges: TreeEdges, chunks: Sequence[int], channel: int
) -> None:
    for chunk in chunks:
        for parent, child in edges:
            b.exchange([(members[parent], members[child], runs([chunk]))], channel=channel)


def in_order_edges(n: int) -> TreeEdges:
    """(parent, child), parents first, of 0 above a binary tree of 1 .. n-1 numbered in order.

    The root of an interval is its number with the most factors of two: odd numbers are leaves.
    """
    edges, open_intervals = [], [(0, 1, n)]
    for parent, low, high in open_intervals:
        if low < high:
            node = high - 1
            while node & (node - 1) >= low:
                node &= node - 1
            edges.append((parent, node))
            open_intervals += [(node, low, node), (node, node + 1, high)]
    return edges


def van_de_geijn_broadcast(ranks: int, *, root: int = 0, in_place: bool = True) -> Schedule:
    """Binomial scatter, then ring all-gather: ceil(log2 n) + n - 1 steps, any number of ranks.

    Barnett, Shuler, Gupta, Payne, van de Geijn and Watts, "Building a high-performance
    collective communication library", 1994.
    """
    b = start("broadcast", ranks, ranks, in_place=in_place, root=root)
    members = rotated(ranks, root)
    for parent, child in groups.binomial_edges(ranks):
        subtree = min(child & -child, ranks - child)
        b.exchange([(members[parent], members[child], ((child, subtree),))])
    groups.ring_all_gather(b, members, [runs([i]) for i in range(ranks)], 0)
    return b.schedule("van-de-geijn-broadcast")
