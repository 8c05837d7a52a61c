"""The contract of a request: a collective inside every reduction group at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES, SEND, CollectiveRule, Contract, Contribution, goals_of
from p2smt.collectives.names import CUSTOM, SCHEDULE_NAMES, RequestKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    Groups = Sequence[tuple[int, ...]]


def request_contract(
    kind: RequestKind, groups: Groups, row: int, shards: Sequence[int], *, in_place: bool
) -> Contract:
    """What the ranks of disjoint groups of k members start from and end with.

    row: chunks of a row; buffers have one row (the input of an all-gather, the output of a
        reduce-scatter, both of a send) or k.
    shards: the row that member i of a group starts with (all-gather) or ends with
        (reduce-scatter); otherwise i.

    It has the collective's own name if there is one group with its shards in order.
    """
    rule, size = _rule(kind), len(groups[0])
    plain = len(groups) == 1 and list(shards) == list(range(size)) and kind in SCHEDULE_NAMES
    chunks = row * size if kind is RequestKind.ALL_REDUCE else row
    own = range(chunks * size if rule.input_parts else chunks)
    shifts = _shifts(rule, groups, row, shards)
    return Contract(
        SCHEDULE_NAMES[kind] if plain else CUSTOM,
        tuple(tuple(Contribution(rank, c) for c in own) for rank in range(len(shifts))),
        tuple(sorted(g for group in groups for g in goals_of(rule, group, shards, chunks))),
        in_place,
        tuple(shifts) if in_place else (),
    )


def row_places(kind: RequestKind, groups: Groups, row: int, shards: Sequence[int]) -> list[int]:
    """Per rank, where its smaller buffer begins in its larger one."""
    return [abs(shift) for shift in _shifts(_rule(kind), groups, row, shards)]


def _rule(kind: RequestKind) -> CollectiveRule:
    return RULES[SCHEDULE_NAMES[kind]] if kind in SCHEDULE_NAMES else SEND


def _shifts(rule: CollectiveRule, groups: Groups, row: int, shards: Sequence[int]) -> list[int]:
    """Per rank, the shift of its contract in place."""
    shifts = [0] * sum(len(group) for group in groups)
    for group in groups:
        for rank, shard in zip(group, shards, strict=True):
            shifts[rank] = rule.shift(shard, row)
    return shifts
