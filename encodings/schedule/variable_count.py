"""How many Booleans a model of messages has, counted by arrays before any is made."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from p2smt.encodings.schedule.orbits import Firsts
from p2smt.problems.schedule import DisseminationProblem

Steps = NDArray[np.int64]


def variable_count(problem: DisseminationProblem, send_of: Firsts, hold_of: Firsts) -> int:
    """Messages and held chunks, of each orbit the first, by the steps at which they can be."""
    near = cache(lambda root: _row(problem, problem.distances([root])))
    left = cache(lambda goals: _row(problem, problem.distances(goals, back=True)))
    nears = np.array([near(one.root) for one in problem.chunks])
    lefts = np.array([left(one.goals) for one in problem.chunks])
    c, v = _firsts(hold_of)
    held = _many(problem.steps - lefts[c, v] - nears[c, v] + 1)
    c, e = _firsts(send_of)
    source = np.array([a for a, _, _ in problem.edges])[e]
    target = np.array([b for _, b, _ in problem.edges])[e]
    begin = np.maximum(nears[c, source], nears[c, target] - 1)
    end = np.minimum(problem.steps, problem.steps - lefts[c, target])
    roots = np.array([one.root for one in problem.chunks])
    return held + _many((end - begin)[target != roots[c]])


def _row(problem: DisseminationProblem, distances: tuple[int | None, ...]) -> Steps:
    """Distances; where there is no way, more than all steps."""
    far = 2 * problem.steps + 2
    return np.array([far if one is None else one for one in distances], dtype=np.int64)


def _many(spans: Steps) -> int:
    return int(np.maximum(spans, 0).sum())


def _firsts(firsts: Firsts) -> tuple[Steps, Steps]:
    """The pairs that are the first of their orbit."""
    own = np.flatnonzero(firsts.ravel() == np.arange(firsts.size))
    return own // firsts.shape[1], own % firsts.shape[1]
