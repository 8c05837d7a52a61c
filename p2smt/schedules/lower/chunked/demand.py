"""What a collective wants of every chunk of a synthesized schedule: where it is given and asked.

Chunks are numbered class by class.  The chunks of a class are given at the same ranks and asked
for at the same ranks, so that which of them is which does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.collectives.contract import RULES, CollectiveRule, MadeOf
from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class ChunkClass:
    """Chunks of one origin and one goal; None: of all ranks, or of the root's.

    ``givers`` have an input of them, ``takers`` must end with them.  The first lies at
    ``input`` and ``output`` in the caller's buffers, the others follow.
    """

    givers: tuple[int, ...]
    takers: tuple[int, ...]
    input: int
    output: int


def classes_of(collective: str, ranks: int, chunks: int, root: int) -> tuple[ChunkClass, ...]:
    """The classes, ``chunks`` chunks each, in the order in which schedules number chunks.

    All-gather, reduce-scatter: one for each rank.  All-to-all, scatter, gather: for each pair of
    different ranks that sends.  All-reduce, reduce, broadcast: one.

    Raises:
        InputError: the collective is not one of these.
    """
    rule = rule_of(collective)
    every, alone = tuple(range(ranks)), (root,)
    if rule.source is MadeOf.SUM:
        if rule.input_parts:
            return tuple(ChunkClass(every, (own,), own * chunks, 0) for own in every)
        return (ChunkClass(every, alone if rule.at_root else every, 0, 0),)
    if not rule.input_parts and not rule.at_root:
        if rule.source is MadeOf.ROOT:
            return (ChunkClass(alone, every, 0, 0),)
        return tuple(ChunkClass((own,), every, 0, own * chunks) for own in every)
    return tuple(
        _pair(rule, origin, goal, chunks)
        for origin in (alone if rule.source is MadeOf.ROOT else every)
        for goal in (alone if rule.at_root else every)
        if goal != origin
    )


def at_home(collective: str, ranks: int, chunks: int, root: int) -> tuple[ChunkClass, ...]:
    """What ranks have for themselves alone, and no message carries."""
    rule = rule_of(collective)
    if rule.source is MadeOf.SUM or not (rule.input_parts or rule.at_root):
        return ()
    alone = rule.at_root or rule.source is MadeOf.ROOT
    return tuple(_pair(rule, own, own, chunks) for own in ((root,) if alone else range(ranks)))


def rule_of(collective: str) -> CollectiveRule:
    """The rule of a collective that schedules of chunks are made for; InputError if it is none."""
    rule = RULES.get(collective)
    if rule is None or rule.source not in (MadeOf.SUM, MadeOf.OWNER, MadeOf.ROOT):
        known = [n for n, r in RULES.items() if r.source is not MadeOf.BEFORE_IN_RING]
        raise InputError(f"collective {collective[:40]!r}", f"is none of {', '.join(known)}")
    return rule


def _pair(rule: CollectiveRule, origin: int, goal: int, chunks: int) -> ChunkClass:
    first = goal * chunks if rule.input_parts else 0
    return ChunkClass((origin,), (goal,), first, origin * chunks if rule.output_parts else 0)
