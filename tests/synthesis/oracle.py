"""Brute force: all states that copies reach, step by step, for every division of the rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from p2smt.problems.schedule import DisseminationProblem

State = frozenset[tuple[int, int]]


def has_schedule(problem: DisseminationProblem) -> bool:
    """Whether some schedule answers the problem."""
    start = frozenset((c, chunk.root) for c, chunk in enumerate(problem.chunks))
    goal = {(c, v) for c, chunk in enumerate(problem.chunks) for v in chunk.goals}
    for rounds in _divisions(problem.rounds, problem.steps):
        states = {start}
        for count in rounds:
            states = {after for state in states for after in _steps(problem, state, count)}
        if any(goal <= state for state in states):
            return True
    return False


def _divisions(rounds: int, steps: int) -> Iterator[tuple[int, ...]]:
    return (d for d in product(range(1, rounds + 1), repeat=steps) if sum(d) == rounds)


def _steps(problem: DisseminationProblem, state: State, rounds: int) -> Iterator[State]:
    """The states after a step: those of every set of messages that fits."""
    able = [
        (c, e)
        for c in range(len(problem.chunks))
        for e, (source, target, _) in enumerate(problem.edges)
        if (c, source) in state and (c, target) not in state
    ]
    for count in range(len(able) + 1):
        for sends in combinations(able, count):
            if _fits(problem, sends, rounds):
                yield state | {(c, problem.edges[e][1]) for c, e in sends}


def _fits(problem: DisseminationProblem, sends: tuple[tuple[int, int], ...], rounds: int) -> bool:
    for k, bandwidth in enumerate(problem.capacities):
        load = sum(k in problem.edges[e][2] for _, e in sends)
        if load > bandwidth * rounds:
            return False
    return True
