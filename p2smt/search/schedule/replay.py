"""Replays messages step by step: what a solver says of a schedule is not believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from p2smt.problems.schedule import ChunkThere, DisseminationProblem, StepSends


def broken_rule(problem: DisseminationProblem, steps: Sequence[StepSends]) -> str | None:
    """The first rule that a schedule breaks, in words; None if it answers the problem."""
    if len(steps) != problem.steps or sum(step.rounds for step in steps) != problem.rounds:
        return f"it has {len(steps)} steps and {sum(step.rounds for step in steps)} rounds"
    after: list[set[tuple[int, int]]] = []
    held = {(c, chunk.root) for c, chunk in enumerate(problem.chunks)}
    for number, step in enumerate(steps, start=1):
        if step.rounds < 1:
            return f"step {number} has {step.rounds} rounds"
        arrived = Counter((c, problem.edges[e][1]) for c, e in step.sends)
        for c, e in step.sends:
            if (c, problem.edges[e][0]) not in held:
                return f"step {number}: chunk {c} is not where edge {e} begins"
        for (c, rank), times in arrived.items():
            if times > 1 or (c, rank) in held:
                return f"step {number}: chunk {c} comes to rank {rank} a second time"
        if too_much := _overloaded(problem, step):
            return f"step {number}: {too_much}"
        held = held | set(arrived)
        after.append(held)
    for c, chunk in enumerate(problem.chunks):
        for goal in chunk.goals:
            if (c, goal) not in held:
                return f"chunk {c} does not come to rank {goal}"
    return _decided_otherwise(problem, after)


def _decided_otherwise(
    problem: DisseminationProblem, after: Sequence[AbstractSet[tuple[int, int]]]
) -> str | None:
    """What is not as the problem has it decided; ``after``: what is held after each step."""

    def true(one: ChunkThere) -> bool:
        return ((one.chunk, one.rank) in after[one.steps - 1]) is one.there

    for one in problem.decided:
        if not true(one):
            return f"chunk {one.chunk} at rank {one.rank} is decided otherwise"
    for wrong in problem.excluded:
        if all(map(true, wrong)):
            return f"chunk {wrong[0].chunk} is as was excluded"
    return None


def _overloaded(problem: DisseminationProblem, step: StepSends) -> str | None:
    """The first capacity that carries more than it can in the rounds of a step."""
    loads = Counter(k for _, e in step.sends for k in problem.edges[e][2])
    for k, load in sorted(loads.items()):
        if load > problem.capacities[k] * step.rounds:
            return f"capacity {k} carries {load} chunks in {step.rounds} rounds"
    return None
