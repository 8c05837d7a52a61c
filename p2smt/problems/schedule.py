"""Can chunks that are copied, and never added, reach their goals in so many steps and rounds?

A schedule is k-synchronous (Cai et al., "Synthesizing optimal collective algorithms", PPoPP 2021):
it has S steps; step s lasts r_s rounds, and the rounds are R in all.  In a step a rank sends only
what it held before the step.  A message is a chunk over an edge; in a step of r rounds the
messages over all edges that load a capacity of bandwidth b are at most b r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow, edge_distances


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
    round.  Only schedules that every one of ``symmetries`` takes to itself are sought: with some,
    that there is none says nothing of schedules without them.

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
