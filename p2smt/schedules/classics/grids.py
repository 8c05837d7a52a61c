"""All-reduce on ranks in a grid: all-pairs, hierarchies, BlueConnect, tori, rails.

Ranks are numbered row-major over the dimensions, the last one fastest: with (nodes, gpus) the
gpus of a node are adjacent.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from p2smt.schedules.classics import groups
from p2smt.schedules.classics.groups import ALGORITHMS
from p2smt.schedules.classics.start import check, check_nodes, check_ranks, start
from p2smt.schedules.construction.builder import Message, runs
from p2smt.schedules.model import Buffer, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.construction.builder import Builder, Runs
    from p2smt.schedules.model import Schedule

    RankGroup = tuple[list[int], list[Runs]]


def one_shot_all_reduce(ranks: int, *, chunks: int = 1, in_place: bool = True) -> Schedule:
    """Everybody sends everything to everybody's scratch, and adds up: one step, any number."""
    b = start("allreduce", ranks, chunks, in_place=in_place)
    pairs = [(r, (r + d) % ranks, (d - 1) * chunks) for d in range(1, ranks) for r in range(ranks)]
    b.together(
        Message(Span(r, Buffer.INPUT, 0, chunks), Span(peer, Buffer.SCRATCH, place, chunks))
        for r, peer, place in pairs
    )
    for _, rank, place in pairs:
        b.copy(Span(rank, Buffer.SCRATCH, place, chunks), b.at(rank, 0, chunks), reduce=True)
    return b.schedule("one-shot-all-reduce")


def two_shot_all_reduce(ranks: int, *, in_place: bool = True) -> Schedule:
    """All-pairs reduce-scatter, then all-pairs all-gather: two steps, any number of ranks."""
    b = start("allreduce", ranks, ranks, in_place=in_place)
    _along(b, (ranks,), (0,), ("direct",))
    return b.schedule("two-shot-all-reduce")


def hierarchical_all_reduce(ranks: int, *, gpus: int = 2, in_place: bool = True) -> Schedule:
    """Reduce in each node, ring all-reduce over the first gpus, broadcast in each node.

    2 ceil(log2 gpus) + 2 (nodes - 1) steps; multiples of ``gpus``.
    """
    nodes = check_nodes(ranks, gpus)
    b = start("allreduce", ranks, nodes, in_place=in_place)
    chunks = [runs([i]) for i in range(nodes)]
    leaders = range(0, ranks, gpus)
    for leader in leaders:
        groups.tree_reduce(b, range(leader, leader + gpus), ((0, nodes),), 0)
    groups.ring_reduce_scatter(b, leaders, chunks, 0)
    groups.ring_all_gather(b, leaders, chunks, 0)
    for leader in leaders:
        groups.tree_broadcast(b, range(leader, leader + gpus), ((0, nodes),), 0)
    return b.schedule("hierarchical-all-reduce")


def blue_connect_all_reduce(
    ranks: int, *, dims: Sequence[int] = (), in_place: bool = True
) -> Schedule:
    """Ring reduce-scatter along each dimension from the innermost, then all-gathers back.

    2 sum(d - 1) steps for dimensions d, whose product must be the number of ranks; none given:
    two, the inner one as small as can be.  With two it is reduce-scatter in nodes, all-reduce
    across, all-gather in nodes.  Cho, Finkler, Serrano, Kung and Hunter, "BlueConnect", 2019.
    """
    dims = _dims(ranks, dims)
    b = start("allreduce", ranks, ranks, in_place=in_place)
    order = tuple(reversed(range(len(dims))))
    _along(b, dims, order, ("ring",) * len(dims))
    return b.schedule("blue-connect-all-reduce")


def rail_aligned_all_reduce(ranks: int, *, gpus: int = 2, in_place: bool = True) -> Schedule:
    """All-pairs inside nodes, rings over the gpus of one number: no message changes its rail.

    2 + 2 (nodes - 1) steps; multiples of ``gpus``.
    """
    dims = (check_nodes(ranks, gpus), gpus)
    b = start("allreduce", ranks, ranks, in_place=in_place)
    _along(b, dims, (1, 0), ("direct", "ring"))
    return b.schedule("rail-aligned-all-reduce")


def torus_all_reduce(ranks: int, *, dims: Sequence[int] = (), in_place: bool = True) -> Schedule:
    """Ring all-reduce along all dimensions of a torus at once, each first for a stripe of the data.

    Stripe j goes along dimension j first and on in a circle: 2 sum(d - 1) steps, in which all
    links are busy.  The product of the (two, three or more) ``dims`` must be the number of
    ranks; none given: two.  Sack and Gropp, "Collective algorithms for multiported torus
    networks", 2015.
    """
    dims = _dims(ranks, dims)
    b = start("allreduce", ranks, ranks * len(dims), in_place=in_place)
    for stripe in range(len(dims)):
        order = tuple((stripe + i) % len(dims) for i in range(len(dims)))
        _along(b, dims, order, ("ring",) * len(dims), stripe)
    return b.schedule("torus-all-reduce")


def _along(
    b: Builder,
    dims: Sequence[int],
    order: Sequence[int],
    algorithms: Sequence[str],
    stripe: int = 0,
) -> None:
    """Reduce-scatter along the dimensions in order, then all-gather back, on the stripe's chunks.

    algorithms: one per dimension in ``order``.
    """
    stages = [list(_groups(dims, order[: s + 1], stripe)) for s in range(len(order))]
    plan = list(zip(algorithms, stages, strict=True))
    for algorithm, stage in plan:
        for members, parts in stage:
            ALGORITHMS[algorithm][0](b, members, parts, stripe)
    for algorithm, stage in reversed(plan):
        for members, parts in stage:
            ALGORITHMS[algorithm][1](b, members, parts, stripe)


def _groups(dims: Sequence[int], order: Sequence[int], stripe: int) -> Iterator[RankGroup]:
    """Groups along the last dimension of ``order``, and the parts of what they share.

    That is the part of the stripe that their coordinates along the dimensions before it say.
    """
    ranks, axis = math.prod(dims), order[-1]
    grid = np.arange(ranks).reshape(tuple(dims))
    for members in np.moveaxis(grid, axis, -1).reshape(-1, dims[axis]).tolist():
        place = np.unravel_index(members[0], tuple(dims))
        first, size = stripe * ranks, ranks
        for dim in order:
            size //= dims[dim]
            first += int(place[dim]) * size
        yield members, [((first + i * size, size),) for i in range(dims[axis])]


def _dims(ranks: int, dims: Sequence[int]) -> tuple[int, ...]:
    """The dimensions given, or two with the inner one the smallest factor above one."""
    check_ranks(ranks)
    if not dims:
        inner = next(d for d in range(2, ranks + 1) if ranks % d == 0)
        return ranks // inner, inner
    given = f"dims {','.join(map(str, dims))[:40]}"
    check(len(dims) <= 8 and all(d >= 1 for d in dims), given, "are one to eight positive numbers")
    check(math.prod(dims) == ranks, given, f"their product must be {ranks}, the number of ranks")
    return tuple(dims)
