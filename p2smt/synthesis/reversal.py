"""Schedules that only copy, as schedules of sums, and turned round in time.

What copies a chunk from a root to its goals adds it up from the goals to the root when every
message goes back over its edge, the last step first.  Each rank must then have sent a chunk once:
so second arrivals, which reversed would add twice, and messages that no goal needs are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from p2smt.errors import InputError
from p2smt.problems.schedule import (
    Arrival,
    DisseminationProblem,
    EdgeRow,
    FinalSum,
    StepSends,
    SumSchedule,
    SumSend,
    SumStep,
)


def pruned(problem: DisseminationProblem, steps: Sequence[StepSends]) -> tuple[StepSends, ...]:
    """The steps without second arrivals of a chunk at a rank, and without what no goal needs.

    A rank keeps what came first: in the earliest step, by the edge of the lowest number.
    """
    once = _first_arrivals(problem, steps)
    wanted = {(c, goal) for c, chunk in enumerate(problem.chunks) for goal in chunk.goals}
    kept: list[StepSends] = []
    for step in reversed(once):
        sends = tuple((c, e) for c, e in step.sends if (c, problem.edges[e][1]) in wanted)
        wanted |= {(c, problem.edges[e][0]) for c, e in sends}
        kept.append(StepSends(step.rounds, sends))
    return tuple(reversed(kept))


def _first_arrivals(
    problem: DisseminationProblem, steps: Sequence[StepSends]
) -> tuple[StepSends, ...]:
    held = {(c, chunk.root) for c, chunk in enumerate(problem.chunks)}
    found: list[StepSends] = []
    for step in steps:
        sends: list[tuple[int, int]] = []
        for c, e in sorted(step.sends):
            place = (c, problem.edges[e][1])
            if place not in held:
                held.add(place)
                sends.append((c, e))
        found.append(StepSends(step.rounds, tuple(sends)))
    return tuple(found)


def sums_of(problem: DisseminationProblem, steps: Sequence[StepSends]) -> SumSchedule:
    """A schedule that only copies, pruned: every message is one value, every goal has its result.

    A chunk's root has no result of its own.

    Raises:
        InputError: a rank sends or is to end with what never came to it.
    """
    came: dict[tuple[int, int], Arrival | None] = {
        (c, chunk.root): None for c, chunk in enumerate(problem.chunks)
    }
    made: list[SumStep] = []
    for number, step in enumerate(pruned(problem, steps)):
        sends = [
            SumSend(c, e, (_value(came, c, problem.edges[e][0]),)) for c, e in sorted(step.sends)
        ]
        came |= {(s.chunk, problem.edges[s.edge][1]): Arrival(number, s.edge) for s in sends}
        made.append(SumStep(step.rounds, tuple(sends)))
    results = [
        FinalSum(c, goal, (_value(came, c, goal),))
        for c, chunk in enumerate(problem.chunks)
        for goal in sorted(chunk.goals)
    ]
    return SumSchedule(tuple(made), tuple(results))


def _value(came: dict[tuple[int, int], Arrival | None], chunk: int, rank: int) -> Arrival | None:
    if (chunk, rank) not in came:
        raise InputError(f"chunk {chunk}", f"does not come to rank {rank}", "replay the schedule")
    return came[chunk, rank]


def reversed_sums(
    problem: DisseminationProblem,
    steps: Sequence[StepSends],
    edges: Sequence[EdgeRow],
    *,
    adds: bool = True,
) -> SumSchedule:
    """The schedule turned round in time: chunks go from their goals to their roots.

    ``problem`` is one of the reversed fabric: an all-gather for a reduce-scatter, a broadcast for
    a reduce, a scatter for a gather; ``edges`` are those of the fabric itself.  What meets on the
    way is added up, with each goal's own input, and with the root's own if it ``adds`` (a gather
    does not).  Pruned first.

    Raises:
        InputError: the edges are not those of the problem turned round, or a chunk does not come
            to a goal.
    """
    turned = _turned_edges(problem, edges)
    kept = pruned(problem, steps)
    sums_of(problem, kept)  # every chunk comes to its goals
    came: dict[tuple[int, int], list[Arrival | None]] = defaultdict(list)
    for c, chunk in enumerate(problem.chunks):
        for rank in (*chunk.goals, *((chunk.root,) if adds else ())):
            came[c, rank].append(None)
    made: list[SumStep] = []
    for number, step in enumerate(reversed(kept)):
        sends = [SumSend(c, turned[e], tuple(came[c, problem.edges[e][1]])) for c, e in step.sends]
        for c, e in sorted(step.sends, key=lambda send: turned[send[1]]):
            came[c, problem.edges[e][0]].append(Arrival(number, turned[e]))
        made.append(SumStep(step.rounds, tuple(sorted(sends, key=lambda s: (s.chunk, s.edge)))))
    results = [
        FinalSum(c, chunk.root, tuple(came[c, chunk.root]))
        for c, chunk in enumerate(problem.chunks)
    ]
    return SumSchedule(tuple(made), tuple(results))


def _turned_edges(problem: DisseminationProblem, edges: Sequence[EdgeRow]) -> tuple[int, ...]:
    """For each edge of the problem the one of ``edges`` that leads back; equal ones in order."""
    back: dict[EdgeRow, list[int]] = defaultdict(list)
    for number, (source, target, loads) in enumerate(edges):
        back[target, source, loads].append(number)
    taken = [back[edge].pop(0) if back[edge] else None for edge in problem.edges]
    found = tuple(number for number in taken if number is not None)
    if len(found) < len(taken) or len(found) != len(edges):
        rule = "are not those of the problem turned round"
        raise InputError(f"{len(edges)} edges", rule, "ask about the reversed fabric")
    return found
