"""What a collective must bring where: for each of its chunks, the pairs of ranks to be joined."""

from __future__ import annotations

from itertools import permutations
from typing import assert_never

from p2smt.schedules.certificate.certificate import BoundedCollective

ChunkPairs = frozenset[tuple[int, int]]


def demands(collective: BoundedCollective, ranks: int, root: int | None) -> list[ChunkPairs]:
    """For every kind of chunk the pairs (from, to) such that data of one must come to the other.

    Of a chunk that is copied, from the rank that holds it to those that want it; of one that is
    added up, from every rank to those that want the sum, since each contributes.
    """
    own, pairs = BoundedCollective, list(permutations(range(ranks), 2))
    match collective:
        case own.ALL_GATHER:
            return _by_end(pairs, ranks, 0)
        case own.REDUCE_SCATTER:
            return _by_end(pairs, ranks, 1)
        case own.BROADCAST:
            return [frozenset(pair for pair in pairs if pair[0] == root)]
        case own.REDUCE:
            return [frozenset(pair for pair in pairs if pair[1] == root)]
        case own.SCATTER:
            return [frozenset([pair]) for pair in pairs if pair[0] == root]
        case own.GATHER:
            return [frozenset([pair]) for pair in pairs if pair[1] == root]
        case own.ALL_TO_ALL:
            return [frozenset([pair]) for pair in pairs]
        case own.ALL_REDUCE:
            return [frozenset(pairs)]
        case _:
            assert_never(collective)


def is_demanded(
    collective: BoundedCollective, ranks: int, root: int | None, pair: tuple[int, int]
) -> bool:
    """Whether a pair is one of :func:`demands`."""
    source, target = pair
    if source == target or not (0 <= source < ranks and 0 <= target < ranks):
        return False
    own = BoundedCollective
    match collective:
        case own.BROADCAST | own.SCATTER:
            return source == root
        case own.REDUCE | own.GATHER:
            return target == root
        case _:
            return True


def _by_end(pairs: list[tuple[int, int]], ranks: int, end: int) -> list[ChunkPairs]:
    """A kind of chunk for every rank: the pairs that begin (0) or end (1) there."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for pair in pairs:
        found[pair[end]].append(pair)
    return [frozenset(one) for one in found]
