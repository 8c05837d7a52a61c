"""Rings, and chains: each rank talks to its two neighbours only.

Rings: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", 2009.  Bidirectional rings split the data over the two directions.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.schedules.classics import groups
from p2smt.schedules.construction.builder import Builder, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from p2smt.schedules.classics.groups import Members, TreeEdges
    from p2smt.schedules.construction.builder import Builder, Runs
    from p2smt.schedules.model import Schedule

    Partner = Callable[[int, int], int]


def ring_all_reduce(
    ranks: int,
    *,
    directions: int = 1,
    channels: int = 1,
    fused: bool = False,
    in_place: bool = True,
) -> Schedule:
    """Ring reduce-scatter, then ring all-gather: 2(n - 1) steps, any number of ranks.

    directions: 2 adds a ring the other way round for each of the ``channels``.
    fused: rrcs and rcs steps; they need connections that hold two messages.
    """
    rings = _rings(ranks, directions, channels)
    b = start("allreduce", ranks, ranks * len(rings), in_place=in_place)
    _go_round(b, rings, groups.ring_reduce_scatter, groups.ring_all_gather)
    return b.schedule("ring-all-reduce", fused=fused)


def ring_reduce_scatter(
    ranks: int,
    *,
    directions: int = 1,
    channels: int = 1,
    fused: bool = False,
    in_place: bool = True,
) -> Schedule:
    """The first half of a ring all-reduce: n - 1 steps, any number of ranks."""
    rings = _rings(ranks, directions, channels)
    b = start("reduce_scatter", ranks, len(rings), in_place=in_place)
    _go_round(b, rings, groups.ring_reduce_scatter)
    return b.schedule("ring-reduce-scatter", fused=fused)


def ring_all_gather(
    ranks: int,
    *,
    directions: int = 1,
    channels: int = 1,
    fused: bool = False,
    in_place: bool = True,
) -> Schedule:
    """The second half of a ring all-reduce: n - 1 steps, any number of ranks."""
    rings = _rings(ranks, directions, channels)
    b = start("allgather", ranks, len(rings), in_place=in_place)
    _go_round(b, rings, groups.ring_all_gather)
    return b.schedule("ring-all-gather", fused=fused)


def _rings(ranks: int, directions: int, channels: int) -> list[list[int]]:
    """The members of every ring, one ring per channel of the schedule."""
    check(directions in (1, 2), f"{directions} directions", "a ring has one or two")
    check(1 <= channels <= 256, f"{channels} channels", "must be 1 to 256")
    check_ranks(ranks)
    ways = [list(range(ranks)), list(reversed(range(ranks)))]
    return ways[:directions] * channels


def _go_round(b: Builder, rings: Sequence[Sequence[int]], *phases: groups.Phase) -> None:
    """Every ring on its own channel and chunks, one phase after the other."""
    for channel, members in enumerate(rings):
        parts = _parts(members, channel, len(rings))
        for phase in phases:
            phase(b, members, parts, channel)


def _parts(members: Sequence[int], ring: int, rings: int) -> list[Runs]:
    """The chunk of a ring in each member's share of ``rings`` chunks."""
    return [((rank * rings + ring, 1),) for rank in members]


def chain_broadcast(
    ranks: int, *, chunks: int = 4, root: int = 0, fused: bool = False, in_place: bool = True
) -> Schedule:
    """Chunk after chunk down a chain of all ranks: n + chunks - 2 steps, any number of ranks."""
    b = start("broadcast", ranks, chunks, in_place=in_place, root=root)
    chain = rotated(ranks, root)
    for chunk in range(chunks):
        for source, target in pairwise(chain):
            b.exchange([(source, target, ((chunk, 1),))])
    return b.schedule("chain-broadcast", fused=fused)


# Exchanges with partners at growing distance: recursive doubling and halving, Bruck, Swing.
# Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
# 2005, describe all but Swing.


def recursive_doubling_all_reduce(
    ranks: int, *, chunks: int = 1, in_place: bool = True
) -> Schedule:
    """Partners at distance 1, 2, 4, .. exchange all they have: log2 n steps, any number of ranks.

    With n = 2^k + e ranks, e of them first give their data to a neighbour and wait for the
    result: two steps more.
    """
    b = start("allreduce", ranks, chunks, in_place=in_place)
    everything = ((0, chunks),)
    core, folded = _core(ranks)
    b.exchange(((r + 1, r, everything) for r in folded), reduce=True)
    for step in range(_log2(len(core))):
        pairs = ((core[i], core[i ^ (1 << step)], everything) for i in range(len(core)))
        b.exchange(pairs, reduce=True)
    b.exchange((r, r + 1, everything) for r in folded)
    return b.schedule("recursive-doubling-all-reduce")


def halving_doubling_all_reduce(ranks: int, *, in_place: bool = True) -> Schedule:
    """Recursive halving, then recursive doubling: 2 log2 n steps, powers of two."""
    check_power(ranks, "recursive halving and doubling")
    b = start("allreduce", ranks, ranks, in_place=in_place)
    _halve_and_double(b, range(ranks), _opposite(ranks))
    return b.schedule("halving-doubling-all-reduce")


def rabenseifner_all_reduce(ranks: int, *, in_place: bool = True) -> Schedule:
    """Recursive halving and doubling for any number of ranks: 2 log2 n + 3 steps at most.

    Of n = 2^k + e ranks, e pairs first add up half of the data each, and one of them goes on with
    both halves.  Rabenseifner, "Optimization of collective reduction operations", 2004.
    """
    check_ranks(ranks)
    core, folded = _core(ranks)
    b = start("allreduce", ranks, len(core), in_place=in_place)
    half = len(core) // 2
    low, high = ((0, half),), ((half, len(core) - half),)
    swaps = [(r + 1, r, low) for r in folded] + [(r, r + 1, high) for r in folded]
    b.exchange(swaps, reduce=True)
    b.exchange((r + 1, r, high) for r in folded)
    _halve_and_double(b, core, _opposite(len(core)))
    b.exchange((r, r + 1, ((0, len(core)),)) for r in folded)
    return b.schedule("rabenseifner-all-reduce")


def swing_all_reduce(ranks: int, *, in_place: bool = True) -> Schedule:
    """Partners alternate sides at distance 1, 1, 3, 5, 11, ..: 2 log2 n steps, powers of two.

    Bandwidth-optimal form; a step sends a message for each run of adjacent chunks.  De Sensi,
    Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", 2024.
    """
    check_power(ranks, "Swing")
    b = start("allreduce", ranks, ranks, in_place=in_place)

    def partner(rank: int, step: int) -> int:
        distance = int(1 - (-2) ** (step + 1)) // 3
        return (rank + (distance if rank % 2 == 0 else -distance)) % ranks

    _halve_and_double(b, range(ranks), partner)
    return b.schedule("swing-all-reduce")


def bruck_all_gather(ranks: int, *, in_place: bool = True) -> Schedule:
    """Each step doubles what a rank has: ceil(log2 n) steps, any number of ranks.

    Chunks stay where they belong, so what wraps around the end of the buffer is a second message.
    Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
    in multiport message-passing systems", 1997.
    """
    b = start("allgather", ranks, in_place=in_place)
    held = 1
    while held < ranks:
        more = min(held, ranks - held)
        b.exchange(
            (r, (r - held) % ranks, runs((r + i) % ranks for i in range(more)))
            for r in range(ranks)
        )
        held += more
    return b.schedule("bruck-all-gather")


def _core(ranks: int) -> tuple[list[int], range]:
    """Of 2^k + e ranks: 2^k of them, and those of these that act for the next rank too."""
    extra = ranks - (1 << (ranks.bit_length() - 1))
    folded = range(0, 2 * extra, 2)
    return [*folded, *range(2 * extra, ranks)], folded


def _log2(power: int) -> int:
    return power.bit_length() - 1


def _opposite(ranks: int) -> Partner:
    """Partners at distance n/2, n/4, .., 1."""
    return lambda rank, step: rank ^ (ranks >> (step + 1))


def _halve_and_double(b: Builder, members: Sequence[int], partner: Partner) -> None:
    """Reduce-scatter by halving and all-gather by doubling, chunk i with member i in between.

    ``needs[s][i]``: chunks that still go through member i after s steps: its own in the end, and
    before that also those of its partners.
    """
    n, steps = len(members), _log2(len(members))
    needs = [[{i} for i in range(n)]]
    for step in reversed(range(steps)):
        needs.insert(0, [needs[0][i] | needs[0][partner(i, step)] for i in range(n)])
    for step in range(steps):
        pairs = [(i, partner(i, step)) for i in range(n)]
        parts = [(members[i], members[p], runs(needs[step + 1][p])) for i, p in pairs]
        b.exchange(parts, reduce=True)
    for step in reversed(range(steps)):
        pairs = [(i, partner(i, step)) for i in range(n)]
        b.exchange((members[i], members[p], runs(needs[step + 1][i])) for i, p in pairs)


# What the generators share: checked sizes, and a builder for a collective.


MAX_RANKS = 4096
MAX_GOALS = 2**20


def start(
    collective: str, ranks: int, chunks: int = 1, *, in_place: bool = True, root: int = 0
) -> Builder:
    """A builder for a collective; ``chunks`` as in :func:`p2smt.collectives.contract.contract`.

    Raises:
        InputError: fewer than two ranks, no chunks, no such root, or a schedule too large.
    """
    check_ranks(ranks)
    check(chunks >= 1, f"{chunks} chunks", "must be at least 1")
    spread = collective in ("allgather", "reduce_scatter", "alltoall")
    size = ranks * chunks if spread else chunks
    text = f"{ranks} ranks with buffers of {size} chunks"
    check(ranks * size <= MAX_GOALS, text, f"are more than {MAX_GOALS} chunks in all")
    wanted = contract(collective, ranks, chunks, in_place=in_place, root=root)
    places = contract(collective, ranks, chunks, in_place=True, root=root).shift
    inputs = chunks if collective == "allgather" else size
    outputs = chunks if collective == "reduce_scatter" else size
    if collective == "alltoall":
        return Builder(wanted, inputs, outputs)
    return Builder(wanted, inputs, outputs, [abs(place) for place in places])


def check(condition: bool, given: str, rule: str, remedy: str = "") -> None:
    """Raise InputError unless a condition holds."""
    if not condition:
        raise InputError(given, rule, remedy)


def check_ranks(ranks: int) -> None:
    """Raise InputError unless there may be so many ranks."""
    check(2 <= ranks <= MAX_RANKS, f"{ranks} ranks", f"must be 2 to {MAX_RANKS}")


def check_power(ranks: int, algorithm: str) -> None:
    """Raise InputError unless the number of ranks is a power of two."""
    check_ranks(ranks)
    check(ranks & (ranks - 1) == 0, f"{ranks} ranks", f"{algorithm} needs a power of two")


def check_nodes(ranks: int, gpus: int) -> int:
    """The number of nodes; InputError unless each has so many gpus."""
    check_ranks(ranks)
    check(1 <= gpus <= ranks, f"{gpus} gpus per node", f"must be 1 to {ranks}")
    check(ranks % gpus == 0, f"{ranks} ranks", f"do not fill nodes of {gpus} gpus")
    return ranks // gpus


def rotated(ranks: int, root: int) -> list[int]:
    """All ranks in order, from the root on."""
    return [(root + i) % ranks for i in range(ranks)]


# Trees, and van de Geijn's broadcast, which scatters along one.


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
