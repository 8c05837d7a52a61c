"""What a program's collectives move between ranks, and how: by rows, then by messages.

A request over k members cuts the payload into k rows.  Here ranks only hold rows or do not; what
the rows are worth is for the checker of schedules to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING

from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.schedules.classics import groups as moves
from p2smt.schedules.construction.builder import runs

if TYPE_CHECKING:
    from p2smt.schedules.construction.builder import Builder

RankGroup = tuple[int, ...]
Rows = tuple[int, ...]
ChunksOf = Callable[[Sequence[int]], list[int]]
"""The chunks of some rows, ascending."""
Rings = Callable[[Sequence[int]], Sequence[Sequence[int]]]
"""The orders in which rings go round the members of a group, by their places; at least one."""


def one_ring(members: Sequence[int]) -> Sequence[Sequence[int]]:
    """A single ring, in the members' order."""
    return [range(len(members))]


@dataclass(frozen=True, slots=True)
class GroupCollective:
    """A collective on one group; ``parts``: rows that each member brings (all-gather) or keeps
    (reduce-scatter); otherwise all rows that it works on, once."""

    collective: Collective
    members: RankGroup
    parts: tuple[Rows, ...]

    @property
    def rows(self) -> Rows:
        """All rows that the collective works on."""
        return tuple(sorted(row for part in self.parts for row in part))


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """The collectives of every step, and the rows that each rank holds in the end."""

    steps: tuple[tuple[GroupCollective, ...], ...]
    held: dict[int, Rows]


def group_steps(
    kind: RequestKind,
    groups: Sequence[RankGroup],
    steps: Sequence[tuple[Collective, Sequence[RankGroup]]],
) -> LoweredProgram:
    """The rows that every group works on in every step.

    groups: reduction groups; ``steps``: collectives and the groups that run them.

    Raises:
        InputError: members hold rows on which the collective cannot work.
    """
    size = len(groups[0])
    gathers = kind is RequestKind.ALL_GATHER
    held: dict[int, Rows] = {
        rank: (i,) if gathers else tuple(range(size))
        for group in groups
        for i, rank in enumerate(group)
    }
    found = []
    for number, (collective, those) in enumerate(steps, start=1):
        check_groups(number, those, held.keys())
        found.append(tuple(_group_collective(number, collective, group, held) for group in those))
    return LoweredProgram(tuple(found), held)


def check_groups(number: int, groups: Sequence[RankGroup], known: Collection[int]) -> None:
    """Raise InputError unless the groups of a step are disjoint groups of these ranks."""
    ranks = [rank for group in groups for rank in group]
    if not all(groups) or len(set(ranks)) != len(ranks) or not set(ranks) <= set(known):
        rule = "its groups are not disjoint groups of the request's ranks"
        raise InputError(f"step {number}", rule, "check the plan")


def _group_collective(
    number: int, collective: Collective, members: RankGroup, held: dict[int, Rows]
) -> GroupCollective:
    """The step of a group; ``held`` becomes what the members hold after it."""
    own = held[members[0]]
    if not own:
        raise _cannot(number, members[0], "holds no rows")
    match collective:
        case Collective.ALL_GATHER:
            parts = tuple(held[rank] for rank in members)
            _check_gather(number, members, parts)
            after = (tuple(sorted(row for part in parts for row in part)),) * len(members)
        case Collective.REDUCE_SCATTER:
            _check_same(number, members, held)
            if len(own) % len(members):
                text = f"{len(own)} rows do not split over {len(members)} members"
                raise _cannot(number, members[0], text)
            share = len(own) // len(members)
            parts = tuple(own[i * share : (i + 1) * share] for i in range(len(members)))
            after = parts
        case Collective.REDUCE | Collective.ALL_REDUCE | Collective.BROADCAST:
            if collective is not Collective.BROADCAST:
                _check_same(number, members, held)
            parts = (own,)
            others = () if collective is Collective.REDUCE else own
            after = (own, *(others,) * (len(members) - 1))
    held.update(zip(members, after, strict=True))
    return GroupCollective(collective, members, parts)


def _check_same(number: int, members: RankGroup, held: dict[int, Rows]) -> None:
    for rank in members:
        if held[rank] != held[members[0]]:
            raise _cannot(number, rank, f"holds other rows than rank {members[0]}")


def _check_gather(number: int, members: RankGroup, parts: tuple[Rows, ...]) -> None:
    seen: set[int] = set()
    for rank, part in zip(members, parts, strict=True):
        if not part or seen & set(part):
            text = "brings no row" if not part else "brings a row that another member brings too"
            raise _cannot(number, rank, text)
        seen |= set(part)


def _cannot(number: int, rank: int, text: str) -> InputError:
    return InputError(f"step {number}, rank {rank}", text, "such a program has no schedule")


def chunks_per_row(lowered: LoweredProgram, rings: Rings = one_ring) -> int:
    """The fewest chunks of a row with which every all-reduce splits evenly over its members, and
    every collective over its rings."""
    channels = {len(rings(step.members)) for steps in lowered.steps for step in steps}
    return lcm(*channels) * lcm(
        *(
            len(step.members) // gcd(len(step.members), len(step.rows))
            for steps in lowered.steps
            for step in steps
            if step.collective is Collective.ALL_REDUCE
        )
    )


def add_step(
    b: Builder, step: GroupCollective, algorithm: str, chunks_of: ChunksOf, rings: Rings
) -> None:
    """Adds the messages of a group's collective on the chunks of its rows.

    algorithm: "ring" (a chain where there is a root), "tree" (binomial) or "direct".
    rings: the members' places in the order of each ring; a ring has a channel of its own, and an
        equal part of all chunks.
    """
    orders = rings(step.members) if algorithm == "ring" else [range(len(step.members))]
    for channel, order in enumerate(orders):

        def share(rows: Sequence[int], k: int = channel) -> list[int]:
            """The channel's part of some rows' chunks."""
            return part_of(chunks_of(rows), k, len(orders))

        _add_channel(b, step, algorithm, share, order, channel)


def part_of(chunks: Sequence[int], number: int, parts: int) -> list[int]:
    """One of so many equal parts of some chunks."""
    size = len(chunks) // parts
    return list(chunks[number * size : (number + 1) * size])


def _add_channel(
    b: Builder,
    step: GroupCollective,
    algorithm: str,
    share: ChunksOf,
    order: Sequence[int],
    channel: int,
) -> None:
    scatter, gather = moves.ALGORITHMS[algorithm]
    chunks = share(step.rows)
    members = [step.members[place] for place in order]
    match step.collective:
        case Collective.REDUCE_SCATTER:
            scatter(b, members, [runs(share(step.parts[place])) for place in order], channel)
        case Collective.ALL_GATHER:
            gather(b, members, [runs(share(step.parts[place])) for place in order], channel)
        case Collective.ALL_REDUCE if algorithm != "tree":
            even = [runs(part_of(chunks, i, len(members))) for i in range(len(members))]
            scatter(b, members, even, channel)
            gather(b, members, even, channel)
        case Collective.ALL_REDUCE:
            _reduce(b, members, chunks, algorithm, channel)
            _broadcast(b, members, chunks, algorithm, channel)
        case Collective.REDUCE:
            _reduce(b, _from_root(members, order), chunks, algorithm, channel)
        case Collective.BROADCAST:
            _broadcast(b, _from_root(members, order), chunks, algorithm, channel)


def _from_root(members: Sequence[int], order: Sequence[int]) -> list[int]:
    """The members along their ring, from the root on: the one at place 0."""
    at = list(order).index(0)
    return [*members[at:], *members[:at]]


def _reduce(
    b: Builder, members: Sequence[int], chunks: Sequence[int], algorithm: str, channel: int
) -> None:
    for part, (parent, child) in _rooted(len(members), chunks, algorithm, up=True):
        b.exchange([(members[child], members[parent], part)], reduce=True, channel=channel)


def _broadcast(
    b: Builder, members: Sequence[int], chunks: Sequence[int], algorithm: str, channel: int
) -> None:
    for part, (parent, child) in _rooted(len(members), chunks, algorithm, up=False):
        b.exchange([(members[parent], members[child], part)], channel=channel)


def _rooted(
    n: int, chunks: Sequence[int], algorithm: str, *, up: bool
) -> Iterator[tuple[tuple[tuple[int, int], ...], tuple[int, int]]]:
    """Messages (chunks, (parent, child)) of a chain, a tree or a star; a chain is pipelined."""
    edges = {
        "ring": [(i, i + 1) for i in range(n - 1)],
        "tree": moves.binomial_edges(n),
        "direct": [(0, i) for i in range(1, n)],
    }[algorithm]
    pieces = [[chunk] for chunk in chunks] if algorithm == "ring" else [list(chunks)]
    for piece in pieces:
        for edge in reversed(edges) if up else edges:
            yield runs(piece), edge
