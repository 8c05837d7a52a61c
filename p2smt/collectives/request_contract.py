"""The contract of a request: a collective inside every reduction group at the same time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.collectives.names import RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Groups = Sequence[tuple[int, ...]]

NAMES = {
    RequestKind.ALL_REDUCE: "allreduce",
    RequestKind.REDUCE_SCATTER: "reduce_scatter",
    RequestKind.ALL_GATHER: "allgather",
    RequestKind.ALL_TO_ALL: "alltoall",
}


def request_contract(
    kind: RequestKind, groups: Groups, row: int, shards: Sequence[int], *, in_place: bool
) -> Contract:
    """What the ranks of disjoint groups of k members start from and end with.

    row: chunks of a row; buffers have one row (the input of an all-gather, the output of a
        reduce-scatter, both of a send) or k.
    shards: the row that member i of a group starts with (all-gather) or ends with
        (reduce-scatter).

    It has the collective's own name if there is one group with its shards in order.
    """
    plain = len(groups) == 1 and list(shards) == list(range(len(shards))) and kind in NAMES
    places = row_places(kind, groups, row, shards)
    size = row if kind in (RequestKind.ALL_GATHER, RequestKind.SEND) else row * len(groups[0])
    starts = [tuple(Contribution(r, c) for c in range(size)) for r in range(len(places))]
    sign = -1 if kind is RequestKind.REDUCE_SCATTER else 1
    return Contract(
        NAMES[kind] if plain else "custom",
        tuple(starts),
        tuple(sorted(goal for group in groups for goal in _goals(kind, group, row, shards))),
        in_place,
        tuple(sign * place for place in places) if in_place else (),
    )


def row_places(kind: RequestKind, groups: Groups, row: int, shards: Sequence[int]) -> list[int]:
    """Per rank, where its smaller buffer begins in its larger one."""
    places = [0] * sum(len(group) for group in groups)
    if kind in (RequestKind.ALL_GATHER, RequestKind.REDUCE_SCATTER):
        for group in groups:
            for rank, shard in zip(group, shards, strict=True):
                places[rank] = shard * row
    return places


def _goals(
    kind: RequestKind, group: Sequence[int], row: int, shards: Sequence[int]
) -> Iterator[Goal]:
    """What the members of one group must hold."""
    everything = range(row * len(group))
    match kind:
        case RequestKind.ALL_REDUCE:
            sums = [tuple(Contribution(q, c) for q in group) for c in everything]
            yield from (Goal(r, c, parts) for r in group for c, parts in enumerate(sums))
        case RequestKind.REDUCE_SCATTER:
            for rank, shard in zip(group, shards, strict=True):
                for c in range(row):
                    parts = tuple(Contribution(q, shard * row + c) for q in group)
                    yield Goal(rank, c, parts)
        case RequestKind.ALL_GATHER:
            for rank in group:
                for q, shard in zip(group, shards, strict=True):
                    for c in range(row):
                        yield Goal(rank, shard * row + c, (Contribution(q, c),))
        case RequestKind.ALL_TO_ALL:
            for i, rank in enumerate(group):
                for c in everything:
                    q, part = divmod(c, row)
                    yield Goal(rank, c, (Contribution(group[q], i * row + part),))
        case RequestKind.SEND:
            for before, rank in pairwise(group):
                yield from (Goal(rank, c, (Contribution(before, c),)) for c in range(row))
