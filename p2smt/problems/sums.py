"""Schedules in which chunks are added: what every message holds, and the question of an all-reduce.

A *value* of a chunk at a rank is the rank's own input of it, or what an earlier message brought.
Values are kept apart until something is sent: a message is a sum of values that its sender holds,
no contribution twice.  A schedule that only copies is the special case of one value a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.schedule import ScheduleSymmetry, check_steps


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
