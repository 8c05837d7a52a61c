"""Can chunks that are copied, and never added, reach their goals in so many steps and rounds?

A schedule is k-synchronous (Cai et al., "Synthesizing optimal collective algorithms", PPoPP 2021):
it has S steps; step s lasts r_s rounds, and the rounds are R in all.  In a step a rank sends only
what it held before the step.  A message is a chunk over an edge; in a step of r rounds the
messages over all edges that load a capacity of bandwidth b are at most b r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from p2smt.errors import InputError


def check_steps(steps: int, rounds: int) -> None:
    """Refuse what no schedule can have.

    Raises:
        InputError: no steps, or fewer rounds than steps.
    """
    if steps < 1:
        raise InputError(f"{steps} steps", "must be at least 1")
    if rounds < steps:
        given = f"rounds {rounds} in {steps} steps"
        raise InputError(given, "a step takes a round or more", "give more rounds")


@dataclass(frozen=True, slots=True, order=True)
class ChunkRoute:
    """What becomes of a chunk: ``root`` holds it at first, all of ``goals`` hold it at last."""

    root: int
    goals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScheduleSymmetry:
    """A symmetry: where it takes every rank, every edge, every chunk, by their numbers.

    One that ``reverses`` takes an edge to one that leads the other way, and the first step to the
    last; only an all-reduce can have it.
    """

    ranks: tuple[int, ...]
    edges: tuple[int, ...]
    chunks: tuple[int, ...]
    reverses: bool = False


@dataclass(frozen=True, slots=True, order=True)
class ChunkThere:
    """Whether (``there``) a rank holds a chunk after so many steps."""

    chunk: int
    rank: int
    steps: int
    there: bool


@dataclass(frozen=True, slots=True)
class DisseminationProblem:
    """Chunks 0, 1, .. over a fabric in ``steps`` steps and ``rounds`` rounds.

    ``edges`` are (source, target, loaded capacities), ``capacities`` their bandwidths in chunks a
    round.  Only schedules that every one of ``symmetries`` takes to itself are sought; through a
    switch an encoding may ask it of how many messages pass each port alone.  With some, that there
    is none says nothing of schedules without them.

    ``decided``: only schedules of which these are true are sought.  Each must be of a time at which
    the chunk can be at the rank, and still come to a goal from there: whether it comes later is of
    no use, and encodings may leave that out.  ``excluded``: nor are those sought of which all of
    one of these are true.
    """

    ranks: int
    edges: tuple[EdgeRow, ...]
    capacities: tuple[Fraction, ...]
    chunks: tuple[ChunkRoute, ...]
    steps: int
    rounds: int
    symmetries: tuple[ScheduleSymmetry, ...] = ()
    decided: tuple[ChunkThere, ...] = ()
    excluded: tuple[tuple[ChunkThere, ...], ...] = ()

    def __post_init__(self) -> None:
        check_steps(self.steps, self.rounds)
        if not self.chunks:
            raise InputError("no chunks", "must be at least 1")
        ends = {end for source, target, _ in self.edges for end in (source, target)}
        ends |= {rank for chunk in self.chunks for rank in (chunk.root, *chunk.goals)}
        if not ends <= set(range(self.ranks)):
            raise InputError(f"rank {max(ends)}", f"is none of 0 to {self.ranks - 1}")
        if min(self.capacities, default=Fraction(1)) <= 0:
            raise InputError(f"capacity {min(self.capacities)}", "must be positive")
        for one in self.symmetries:
            if one.reverses:
                raise InputError("a symmetry that reverses time", "is one of all-reduce only")
            for image, size in (
                (one.ranks, self.ranks),
                (one.edges, len(self.edges)),
                (one.chunks, len(self.chunks)),
            ):
                if sorted(image) != list(range(size)):
                    raise InputError("a symmetry", f"must permute the numbers 0 to {size - 1}")

    def distances(self, sources: Sequence[int], *, back: bool = False) -> tuple[int | None, ...]:
        """Steps from the nearest of ``sources`` to each rank (``back``: to it); None: no way."""
        return edge_distances(self.ranks, self.edges, sources, back=back)


@dataclass(frozen=True, slots=True)
class StepSends:
    """A step of a schedule: its rounds, and (chunk, edge) of its messages, sorted."""

    rounds: int
    sends: tuple[tuple[int, int], ...]


# Schedules in which chunks are added: what every message holds, and the question of an all-reduce.
# A *value* of a chunk at a rank is the rank's own input of it, or what an earlier message brought.
# Values are kept apart until something is sent: a message is a sum of values that its sender holds,
# no contribution twice.  A schedule that only copies is the special case of one value a message.


class ScheduleClass(StrEnum):
    """What the messages of an all-reduce may be; every class holds the one before it.

    Trees: each chunk is added up over a tree to a root of its own and copied over another tree;
    both run at their own times.  Accumulators: each rank keeps one sum of a chunk, sends it as it
    is, and adds what arrives to it, or drops it first.  Partial sums: any sum of values held.
    """

    TREES = "trees"
    ACCUMULATORS = "accumulators"
    PARTIAL_SUMS = "partial-sums"


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """What came to a rank: the message of the same chunk over ``edge`` in ``step`` (from 0).

    ``slot``: which one, where several messages of a chunk go over an edge in a step.
    """

    step: int
    edge: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class SumSend:
    """A message: the sum of ``parts`` of a chunk, values of the rank where the edge begins.

    A part is an arrival in an earlier step, or None for the rank's own input; no part twice.
    """

    chunk: int
    edge: int
    parts: tuple[Arrival | None, ...]
    slot: int = 0


@dataclass(frozen=True, slots=True)
class SumStep:
    """A step: its rounds, and its messages, sorted by chunk, edge and slot."""

    rounds: int
    sends: tuple[SumSend, ...]


@dataclass(frozen=True, slots=True)
class FinalSum:
    """What a rank makes of a chunk after the last step: the sum of ``parts``, or the one value."""

    chunk: int
    rank: int
    parts: tuple[Arrival | None, ...]


@dataclass(frozen=True, slots=True)
class SumSchedule:
    """Steps, and the results: one for each rank and chunk that the collective asks for, sorted."""

    steps: tuple[SumStep, ...]
    results: tuple[FinalSum, ...]


@dataclass(frozen=True, slots=True, order=True)
class ChunkSent:
    """Whether (``sent``) some message of a chunk goes over an edge in a step (from 0)."""

    chunk: int
    edge: int
    step: int
    sent: bool


@dataclass(frozen=True, slots=True)
class AllReduceProblem:
    """``chunks`` chunks are added over all ranks, in ``steps`` steps and ``rounds`` rounds.

    Edges, capacities and symmetries as in
    :class:`~p2smt.problems.schedule.DisseminationProblem`; symmetries may reverse time.
    ``messages``: of a chunk over an edge in a step, at most.

    ``decided``: only schedules of partial sums are sought of which these are true, once messages
    that are a part of nothing are left out; and none of which all of one of ``excluded`` are.
    """

    ranks: int
    edges: tuple[EdgeRow, ...]
    capacities: tuple[Fraction, ...]
    chunks: int
    steps: int
    rounds: int
    family: ScheduleClass = ScheduleClass.PARTIAL_SUMS
    messages: int = 1
    symmetries: tuple[ScheduleSymmetry, ...] = ()
    decided: tuple[ChunkSent, ...] = ()
    excluded: tuple[tuple[ChunkSent, ...], ...] = ()

    def __post_init__(self) -> None:
        check_steps(self.steps, self.rounds)
        if self.chunks < 1:
            raise InputError(f"{self.chunks} chunks", "must be at least 1")
        if self.messages < 1:
            raise InputError(f"{self.messages} messages", "must be at least 1")
        if min(self.capacities, default=Fraction(1)) <= 0:
            raise InputError(f"capacity {min(self.capacities)}", "must be positive")
        ends = {end for source, target, _ in self.edges for end in (source, target)}
        if not ends <= set(range(self.ranks)):
            raise InputError(f"rank {max(ends)}", f"is none of 0 to {self.ranks - 1}")
        if (self.decided or self.excluded) and self.family is not ScheduleClass.PARTIAL_SUMS:
            rule = "is sought in one piece"
            raise InputError(f"an all-reduce of class {self.family.value}", rule)
        for one in self.symmetries:
            self._check_symmetry(one)

    def _check_symmetry(self, symmetry: ScheduleSymmetry) -> None:
        """Refuse what does not permute, or takes an edge to one between other ranks."""
        for image, size in (
            (symmetry.ranks, self.ranks),
            (symmetry.edges, len(self.edges)),
            (symmetry.chunks, self.chunks),
        ):
            if sorted(image) != list(range(size)):
                raise InputError("a symmetry", f"must permute the numbers 0 to {size - 1}")
        for e, (source, target, _) in enumerate(self.edges):
            ends = (symmetry.ranks[source], symmetry.ranks[target])
            if self.edges[symmetry.edges[e]][:2] != (ends[::-1] if symmetry.reverses else ends):
                rule = f"must lead between the images {ends[0]} and {ends[1]} of its ranks"
                raise InputError(f"the image of edge {e} under a symmetry", rule)


# Ways along edges, as problems of schedules have these.


EdgeRow = tuple[int, int, tuple[int, ...]]
"""Source, target, loaded capacities."""


def edge_distances(
    ranks: int, edges: Sequence[EdgeRow], sources: Sequence[int], *, back: bool = False
) -> tuple[int | None, ...]:
    """Edges from the nearest of ``sources`` to each rank (``back``: to it); None: no way."""
    after: list[list[int]] = [[] for _ in range(ranks)]
    for source, target, _ in edges:
        after[target if back else source].append(source if back else target)
    found: list[int | None] = [None] * ranks
    frontier = list(dict.fromkeys(sources))
    for start in frontier:
        found[start] = 0
    for rank in frontier:
        here = found[rank]
        for other in after[rank]:
            if found[other] is None and here is not None:
                found[other] = here + 1
                frontier.append(other)
    return tuple(found)
