"""Capacities that a schedule has to use up, because it needs all that its rounds give.

If all data must pass over some capacities, and together they carry just as much in all rounds, then
each of them is full in every step.  That follows from the other constraints, by counting, which a
solver without linear programs does not do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from p2smt.problems.schedule import ChunkRoute, DisseminationProblem


def full_capacities(problem: DisseminationProblem) -> frozenset[int]:
    """The capacities that are full in every step of every schedule, as far as counting tells.

    Raises nothing: where more is needed than there is, the same capacities are given, and the
    problem has no schedule.
    """
    found: set[int] = set()
    for edges, messages in _needs(problem):
        found |= _filled(problem, edges, messages)
    return frozenset(found)


def _needs(problem: DisseminationProblem) -> Iterator[tuple[list[int], int]]:
    """Edges, and how many messages must at least go over them in all."""
    into = Counter(goal for chunk in problem.chunks for goal in chunk.goals if goal != chunk.root)
    out = Counter(chunk.root for chunk in problem.chunks if set(chunk.goals) - {chunk.root})
    for rank in range(problem.ranks):
        yield [e for e, edge in enumerate(problem.edges) if edge[1] == rank], into[rank]
        yield [e for e, edge in enumerate(problem.edges) if edge[0] == rank], out[rank]
    yield list(range(len(problem.edges))), fewest_messages(problem)


def fewest_messages(problem: DisseminationProblem) -> int:
    """Messages that every schedule has at least: a chunk comes to each goal, by all ranks between.

    Raises:
        ValueError: never for goals that can be reached.
    """
    near = cache(lambda root: problem.distances([root]))
    return sum(_fewest(chunk, near(chunk.root)) for chunk in problem.chunks)


def _fewest(chunk: ChunkRoute, near: tuple[int | None, ...]) -> int:
    """Of one chunk: it comes to each goal, and before to a rank at every smaller distance."""
    goals = set(chunk.goals) - {chunk.root}
    return max(len(goals), max((near[goal] or 0 for goal in goals), default=0))


def _filled(problem: DisseminationProblem, edges: Iterable[int], messages: int) -> set[int]:
    """The capacities that these edges alone load, if so many messages fill them all.

    Each edge must load one of them, or all edges as many.
    """
    inside, counts = set(edges), Counter[int]()
    outside = {k for e, edge in enumerate(problem.edges) if e not in inside for k in edge[2]}
    own = {k for e in inside for k in problem.edges[e][2]} - outside
    for e in inside:
        counts[len(own.intersection(problem.edges[e][2]))] += 1
    fewest = min(counts, default=0)
    room = sum(problem.capacities[k] for k in own) * problem.rounds
    return own if fewest and messages * fewest >= room else set()
