"""Pipelined programs: the payload in equal chunks that follow each other through the steps.

A step works on one chunk at a time; steps of different chunks overlap.  With t_s the time of
step s for one chunk and w_{s,l} its wire time on the worst link of level l, M chunks take

    T(M) = sum_s t_s + (M - 1) * max(max_s t_s, max_l sum_s w_{s,l})

The first chunk needs sum_s t_s.  After it one chunk can be finished per period, the second
factor: a step needs t_s for each chunk, and each chunk occupies the worst link of a level for
the wire times of all steps together.  T(1) is the sum of the step times.

T(M) never falls below what the links allow (:mod:`p2smt.cost.bounds`).  With a_s = t_s minus the
largest w_{s,l}, the part of a step that is latency, sum_s t_s >= sum_s a_s + max_l sum_s w_{s,l},
so T(M) >= sum_s a_s + M * max_l sum_s w_{s,l}.  The first term pays the latencies of one chunk,
and the second the bytes of all M, which is what the bound adds up.

A program of one step stays whole: M chunks of it follow each other and take M * t(n/M).  Where
the fastest way is taken, t(0) >= 0 and t is concave in the payload (a minimum of concave
functions), so that is never less than t(n).  A library's choice is not always the fastest way, and
right behind a size at which it changes to a slower one, two calls of half the size can be faster
than one; they are two calls, and no answer here.  Each chunk pays for the call of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.step_time import StepTime

CHUNK_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The chunk counts that ``auto`` chooses from.  From 2 on each is at most 1.5 times the one
before: between them the time changes little, as it falls like 1/M or grows like M."""

TIE = 1e-12
"""Times that differ by no more than this part of them count as equal: it is rounding."""


def pipelined_s(step_s: FloatArray, level_wire_s: FloatArray, chunks: int) -> FloatArray:
    """T(M) in seconds from the step times of one chunk.

    Shapes: ``step_s`` (steps, ...), ``level_wire_s`` (steps, levels, ...), the rest standing
    for many programs at once.
    """
    period = np.maximum(step_s.max(axis=0), level_wire_s.sum(axis=0).max(axis=0))
    return np.asarray(step_s.sum(axis=0) + (chunks - 1) * period)


def program_s(steps: Sequence[StepTime], chunks: int) -> float:
    """Time of a program or fixed step; ``steps`` are those of one chunk.  No steps take 0 s."""
    if chunks == 1 or not steps:
        return sum(step.seconds for step in steps)
    step_s = np.array([step.seconds for step in steps])
    return float(pipelined_s(step_s, np.array([step.level_wire_s for step in steps]), chunks))


def chunk_counts(pipeline: int | None, steps: int) -> tuple[int, ...]:
    """The chunk counts to choose from for a program of so many steps (None: ``auto``)."""
    if steps <= 1:
        return (1,)
    return CHUNK_COUNTS if pipeline is None else (pipeline,)


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A program's time in so many chunks; ``steps`` are those of one chunk."""

    chunks: int
    seconds: float
    steps: tuple[StepTime, ...]


def best_chunks(
    counts: Sequence[int], steps_of: Callable[[int], tuple[StepTime, ...]]
) -> Pipelined:
    """The chunk count of least time, the smallest of tied ones.

    ``steps_of(m)`` gives the steps of one of m chunks.
    """
    tried = [
        Pipelined(m, program_s(steps, m), steps) for m in sorted(counts) for steps in [steps_of(m)]
    ]
    limit = min(one.seconds for one in tried) * (1 + TIE)
    return next(one for one in tried if one.seconds <= limit)
