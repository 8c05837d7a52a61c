"""What a collective is given and what it must produce, chunk by chunk.

A contribution is named (rank, chunk): what that rank's input chunk holds at the start.  The rules
say it once for any number of ranks; contracts are what they come to for given ranks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from p2smt.collectives.names import COLLECTIVES, CUSTOM, SCHEDULE_NAMES, RequestKind
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Groups = Sequence[tuple[int, ...]]


class Contribution(NamedTuple):
    """The data that a rank's input chunk holds at the start."""

    rank: int
    chunk: int

    def __str__(self) -> str:
        return f"rank {self.rank}'s chunk {self.chunk}"


class Goal(NamedTuple):
    """An output chunk of a rank, and the contributions it must be the sum of."""

    rank: int
    chunk: int
    parts: tuple[Contribution, ...]

    def multiset(self) -> Counter[Contribution]:
        """How often each contribution must be in the sum."""
        return Counter(self.parts)


@dataclass(frozen=True, slots=True)
class Contract:
    """Precondition and postcondition of a collective.

    collective: its name ("allreduce", .., or "custom").
    starts: per rank, the contribution in each input chunk (None: undefined at the start).
    goals: every output chunk that must hold something; other chunks may hold anything.
    in_place: input and output share memory: input chunk j of rank r is at place
        ``j + shift[r]`` of the shared memory if shift[r] >= 0, otherwise output chunk j is at
        place ``j - shift[r]``.
    shift: per rank; zeros out of place.
    """

    collective: str
    starts: tuple[tuple[Contribution | None, ...], ...]
    goals: tuple[Goal, ...]
    in_place: bool = False
    shift: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.in_place and len(self.shift) != len(self.starts):
            raise InputError(
                f"{len(self.shift)} shifts", f"there are {len(self.starts)} ranks", "give one each"
            )

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return len(self.starts)


class MadeOf(Enum):
    """Whose input an output part is made of."""

    SUM = "the sum of everyone's"
    ROOT = "the root's"
    OWNER = "that of the rank whose part it is"
    BEFORE = "that of the member before; the first one ends with nothing"
    BEFORE_IN_RING = "that of the member before; the first one ends with the last one's"


@dataclass(frozen=True, slots=True)
class CollectiveRule:
    """A collective among any number of ranks.

    A buffer is a single part of so many chunks, or has a part for every rank.
    input_parts: inputs have one for every rank, of which a rank ends with its own.
    at_root: only the root ends with something.
    """

    source: MadeOf
    input_parts: bool = False
    at_root: bool = False

    @property
    def output_parts(self) -> bool:
        """Whether outputs have a part for every rank."""
        return self.source is MadeOf.OWNER

    @property
    def rooted(self) -> bool:
        """Whether one of the ranks is the root."""
        return self.at_root or self.source is MadeOf.ROOT

    def shift(self, part: int, chunks: int) -> int:
        """``Contract.shift`` of the rank with this part: the smaller buffer lies at its part."""
        return (self.output_parts - self.input_parts) * part * chunks


RULES: Mapping[str, CollectiveRule] = {
    "allreduce": CollectiveRule(MadeOf.SUM),
    "allgather": CollectiveRule(MadeOf.OWNER),
    "reduce_scatter": CollectiveRule(MadeOf.SUM, input_parts=True),
    "alltoall": CollectiveRule(MadeOf.OWNER, input_parts=True),
    "reduce": CollectiveRule(MadeOf.SUM, at_root=True),
    "broadcast": CollectiveRule(MadeOf.ROOT),
    "scatter": CollectiveRule(MadeOf.ROOT, input_parts=True),
    "gather": CollectiveRule(MadeOf.OWNER, at_root=True),
    "sendrecv": CollectiveRule(MadeOf.BEFORE_IN_RING),
}
"""By the name of the collective."""

SEND = CollectiveRule(MadeOf.BEFORE)


def goals_of(
    rule: CollectiveRule, group: Sequence[int], parts: Sequence[int], chunks: int, root: int = 0
) -> list[Goal]:
    """What the members of a group must end with; ``parts`` are the numbers of their parts."""
    summed = cache(lambda chunk: tuple([Contribution(q, chunk) for q in group]))
    owners = list(zip(parts, group, strict=True))
    found: list[Goal] = []
    for place, (own, rank) in enumerate(owners):
        if rule.at_root and rank != root:
            continue
        first = own * chunks if rule.input_parts else 0
        match rule.source:
            case MadeOf.SUM:
                found += [Goal(rank, c, summed(first + c)) for c in range(chunks)]
            case MadeOf.OWNER:
                found += [
                    Goal(rank, part * chunks + c, (Contribution(owner, first + c),))
                    for part, owner in owners
                    for c in range(chunks)
                ]
            case MadeOf.ROOT:
                found += _copied(root, rank, first, chunks)
            case MadeOf.BEFORE_IN_RING:
                found += _copied(group[place - 1], rank, 0, chunks)
            case MadeOf.BEFORE if place:
                found += _copied(group[place - 1], rank, 0, chunks)
    return found


def _copied(giver: int, rank: int, first: int, chunks: int) -> list[Goal]:
    """A rank ends with a part of another's, from its chunk ``first`` on."""
    return [Goal(rank, c, (Contribution(giver, first + c),)) for c in range(chunks)]


def contract(
    collective: str, ranks: int, chunks: int, *, in_place: bool = False, root: int = 0
) -> Contract:
    """The contract of a named collective.

    chunks: of a part: of the smaller buffer, and for an all-to-all from each to each.

    Raises:
        InputError: no such collective, or a root that is not a rank.
    """
    if collective not in RULES:
        raise InputError(
            f"collective {collective[:60]!r}", "is not known", f"one of {', '.join(COLLECTIVES)}"
        )
    rule, everyone = RULES[collective], range(ranks)
    if rule.rooted and not 0 <= root < ranks:
        raise InputError(f"root {root}", f"the ranks are 0 to {ranks - 1}", "name one of them")
    return Contract(
        collective,
        tuple(_start(rule, rank, ranks, chunks, root) for rank in everyone),
        tuple(goals_of(rule, everyone, everyone, chunks, root)),
        in_place,
        tuple(rule.shift(rank, chunks) for rank in everyone) if in_place else (),
    )


def _start(
    rule: CollectiveRule, rank: int, ranks: int, chunks: int, root: int
) -> tuple[Contribution | None, ...]:
    size = chunks * (ranks if rule.input_parts else 1)
    if rule.source is MadeOf.ROOT and rank != root:
        return (None,) * size
    return tuple([Contribution(rank, c) for c in range(size)])


# The contract of a request: a collective inside every reduction group at the same time.


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
