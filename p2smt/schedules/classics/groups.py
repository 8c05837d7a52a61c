"""Collectives inside a group of ranks: what classic algorithms and programs are made of.

``members`` are ranks.  ``parts[i]`` are chunks of the working buffer, the same on every member;
a reduce-scatter leaves the sum of part i with member i, an all-gather starts from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.schedules.construction.builder import Builder, Runs

Members = Sequence[int]
TreeEdges = list[tuple[int, int]]
"""(parent, child) of a tree, parents first."""
Phase = Callable[["Builder", Members, "Sequence[Runs]", int], None]
"""A collective inside a group: builder, members, parts, channel."""


def ring_reduce_scatter(b: Builder, members: Members, parts: Sequence[Runs], channel: int) -> None:
    """n - 1 steps; in each, every member passes on one partial sum to the next member."""
    n = len(members)
    for step in range(1, n):
        b.exchange(
            ((members[i], members[(i + 1) % n], parts[(i - step) % n]) for i in range(n)),
            reduce=True,
            channel=channel,
        )


def ring_all_gather(b: Builder, members: Members, parts: Sequence[Runs], channel: int) -> None:
    """n - 1 steps; in each, every member passes on the part that came last."""
    n = len(members)
    for step in range(n - 1):
        b.exchange(
            ((members[i], members[(i + 1) % n], parts[(i - step) % n]) for i in range(n)),
            channel=channel,
        )


def direct_reduce_scatter(
    b: Builder, members: Members, parts: Sequence[Runs], channel: int
) -> None:
    """One step: each member sends every other one its part, and adds up what comes."""
    b.exchange(
        ((source, members[i], part) for source, i, part in _to_others(members, parts)),
        reduce=True,
        channel=channel,
    )


def direct_all_gather(b: Builder, members: Members, parts: Sequence[Runs], channel: int) -> None:
    """One step: each member sends its part to every other one."""
    b.exchange(
        ((members[i], target, part) for target, i, part in _to_others(members, parts)),
        channel=channel,
    )


def _to_others(members: Members, parts: Sequence[Runs]) -> Sequence[tuple[int, int, Runs]]:
    """(another member, i, part i), in the order of the distance between the two."""
    n = len(members)
    return [(members[(i - d) % n], i, parts[i]) for d in range(1, n) for i in range(n)]


def tree_reduce(b: Builder, members: Members, part: Runs, channel: int) -> None:
    """Sum of a part at the first member, up a binomial tree."""
    for source, target in reversed(binomial_edges(len(members))):
        b.exchange([(members[target], members[source], part)], reduce=True, channel=channel)


def tree_broadcast(b: Builder, members: Members, part: Runs, channel: int) -> None:
    """The first member's part to all, down a binomial tree."""
    for source, target in binomial_edges(len(members)):
        b.exchange([(members[source], members[target], part)], channel=channel)


def tree_reduce_scatter(b: Builder, members: Members, parts: Sequence[Runs], channel: int) -> None:
    """A binomial tree for every part, with its owner at the root."""
    for i, part in enumerate(parts):
        tree_reduce(b, [*members[i:], *members[:i]], part, channel)


def tree_all_gather(b: Builder, members: Members, parts: Sequence[Runs], channel: int) -> None:
    """A binomial tree for every part, with its owner at the root."""
    for i, part in enumerate(parts):
        tree_broadcast(b, [*members[i:], *members[:i]], part, channel)


def binomial_edges(n: int) -> TreeEdges:
    """(parent, child) of a binomial tree with root 0, by steps of a broadcast.

    The child of 2^s in distance, for s from the highest down: the largest subtrees come first.
    """
    steps = reversed(range((n - 1).bit_length()))
    return [(parent, parent + (1 << s)) for s in steps for parent in range(0, n - (1 << s), 2 << s)]


ALGORITHMS: dict[str, tuple[Phase, Phase]] = {
    "ring": (ring_reduce_scatter, ring_all_gather),
    "tree": (tree_reduce_scatter, tree_all_gather),
    "direct": (direct_reduce_scatter, direct_all_gather),
}
"""By name: the reduce-scatter and the all-gather of a group."""
