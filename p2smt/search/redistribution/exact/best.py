"""The fastest steps between two types, of any length, with a proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.arrays.steps import KINDS, ArrayStep, StepKind
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.result import OUT_OF_TIME, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.redistribution.exact.astar import PathFound, PathSearch
from p2smt.search.redistribution.exact.graph import StateGraph
from p2smt.search.redistribution.exact.relaxed import LEAST_EXCHANGES, Relaxed
from p2smt.search.redistribution.exact.table import StateTable, can_tabulate
from p2smt.search.redistribution.path import PathResult

SOLVER = "types-astar"
FIRST, GROWTH = 1.25, 1.6
"""The first limit, as a multiple of what is left to pay at least, and how later ones grow."""
TOO_MANY = "there are too many types"


def best_path(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    limits: SearchLimits,
    *,
    max_steps: int | None = None,
    at_most_s: float | None = None,
) -> PathResult:
    """The fastest plan for one of the ends; ``prices[k]`` are those of ``ends[k]``'s frame.

    ``max_steps``: plans of more steps do not count.  ``at_most_s``: nor do slower ones; if then
    none is left the status is UNKNOWN and the bound is ``at_most_s``.
    """
    watch = StopWatch.start(limits)
    limit_s = math.inf if at_most_s is None else at_most_s
    best: tuple[float, int, tuple[ArrayStep, ...]] = (math.inf, 0, ())
    bound_s, closed, reason = math.inf, 0, ""
    for number, (one, price) in enumerate(zip(ends, prices, strict=True)):
        outcome, steps, why = _search(one, price, memory, watch, max_steps, min(limit_s, best[0]))
        bound_s, closed, reason = (
            min(bound_s, outcome.bound_s),
            closed + outcome.closed,
            why or reason,
        )
        if outcome.path is not None and outcome.seconds < best[0]:
            best = (outcome.seconds, number, steps)
    stats = SolveStats(SOLVER, watch.elapsed_s(), len(ends), (("closed", closed),), reason=reason)
    return _result(best, bound_s, at_most_s, stats)


def _result(
    best: tuple[float, int, tuple[ArrayStep, ...]],
    bound_s: float,
    at_most_s: float | None,
    stats: SolveStats,
) -> PathResult:
    seconds, number, steps = best
    if seconds < math.inf:
        proved = not stats.reason
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        return PathResult(
            status, number, steps, seconds, seconds if proved else min(bound_s, seconds), stats
        )
    if stats.reason:
        return PathResult(Status.UNKNOWN, 0, (), None, min(bound_s, at_most_s or bound_s), stats)
    if at_most_s is not None:
        return PathResult(Status.UNKNOWN, 0, (), None, at_most_s, stats)
    return PathResult(Status.INFEASIBLE, 0, (), None, 0.0, stats)


def _search(
    ends: Ends,
    prices: StepPrices,
    memory: MemoryLimit,
    watch: StopWatch,
    max_steps: int | None,
    limit_s: float,
) -> tuple[PathFound, tuple[ArrayStep, ...], str]:
    """The best path between these ends; why it is not proved, if so."""
    nothing = PathFound(None, math.inf, 0.0, False, 0)
    if not can_tabulate(ends):
        return nothing, (), TOO_MANY
    table = StateTable.of(ends, memory.limit_bytes)
    source, target = table.index(ends.source), table.index(ends.target)
    if source < 0 or target < 0:
        return PathFound(None, math.inf, math.inf, True, 0), (), ""
    graph = StateGraph(ends, table, prices, memory, max_steps is not None)
    outcome = _outcome(graph, source, target, max_steps, limit_s, watch)
    steps = () if outcome.path is None else _steps(graph, outcome.path)
    return outcome, steps, "" if outcome.done else OUT_OF_TIME


def _outcome(
    graph: StateGraph, source: int, target: int, most: int | None, limit_s: float, watch: StopWatch
) -> PathFound:
    """Search within a limit that grows until a path keeps to it."""
    if graph.symmetry.exchanges < LEAST_EXCHANGES:
        nothing = np.zeros(len(graph.table))
        return PathSearch(graph, source, target, nothing, most, limit_s).run(watch)
    relaxed = Relaxed(graph, source, target)
    bound_s, closed = relaxed.nearest_s(watch), 0
    within_s = max(FIRST * bound_s, FIRST * relaxed.least_step_s) if bound_s < math.inf else 0.0
    while True:
        within_s = math.inf if relaxed.explored_s == math.inf else within_s
        left = relaxed.left(min(within_s, limit_s), watch)
        if left is None:
            return PathFound(None, math.inf, bound_s, False, closed)
        found = PathSearch(graph, source, target, left, most, min(within_s, limit_s)).run(watch)
        closed += found.closed
        found = replace(found, bound_s=max(bound_s, min(found.bound_s, within_s)), closed=closed)
        if found.path is not None or not found.done or within_s >= limit_s or within_s == math.inf:
            return found
        bound_s, within_s = within_s, GROWTH * within_s


def _steps(graph: StateGraph, path: Sequence[tuple[int, int]]) -> tuple[ArrayStep, ...]:
    """The steps of a path; slices that follow each other are one, and so are permutes.

    Two permutes cost what one does where one of them is free; where ports are shared they may cost
    less, and stay.
    """
    merges = _merging(graph)
    found: list[ArrayStep] = []
    for (before, _), (after, kind) in itertools.pairwise(path):
        step = graph.step(before, after, kind)
        if found and found[-1].kind is step.kind and step.kind in merges:
            step = KINDS[step.kind](found.pop().before, step.after)
        found.append(step)
    return tuple(found)


def _merging(graph: StateGraph) -> tuple[StepKind, ...]:
    """The kinds of which two steps in a row are one."""
    if graph.table.frame.nested:
        return ()
    alone = (StepKind.SLICE,)
    return (*alone, StepKind.PERMUTE) if graph.prices.one_permute_suffices else alone
