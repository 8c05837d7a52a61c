"""Rings, and chains: each rank talks to its two neighbours only.

Rings: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", 2009.  Bidirectional rings split the data over the two directions.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.schedules.classics import groups
from p2smt.schedules.classics.start import check, check_ranks, rotated, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.construction.builder import Builder, Runs
    from p2smt.schedules.model import Schedule


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
