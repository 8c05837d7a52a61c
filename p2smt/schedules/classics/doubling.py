"""Exchanges with partners at growing distance: recursive doubling and halving, Bruck, Swing.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
2005, describe all but Swing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.schedules.classics.start import check_power, check_ranks, start
from p2smt.schedules.construction.builder import runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from p2smt.schedules.construction.builder import Builder
    from p2smt.schedules.model import Schedule

    Partner = Callable[[int, int], int]


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
