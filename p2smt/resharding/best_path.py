"""The fastest steps between two types, of any length, with a proof."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.resharding.cuts import PathResult
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.state_graph import PERMUTE, NextSteps, StateGraph
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.step_table import StateTable, can_tabulate
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind
from p2smt.result import OUT_OF_TIME, SearchLimits, SolveStats, Status, StopWatch

SOLVER = "types-astar"
_TOLD_EVERY = 256
"""States closed between two words on how far the search is."""
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


# A* over numbered states: what is closed is proved.
# A node is a state, or a state after so many steps where their number is limited.  Permutes of
# unknown price wait in the queue at what is left to pay without them, and are priced when their
# turn comes.


SLACK = 1 + 1e-12
"""Prices are sums of floats."""


@dataclass(slots=True)
class PathFound:
    """``path``: (state, kind of the step to it) from the source on; None: no path found.

    ``done``: the path is proved best, or that there is none within the limits.
    """

    path: list[tuple[int, int]] | None
    seconds: float
    bound_s: float
    done: bool
    closed: int


@dataclass(slots=True)
class PathSearch:
    """One search.  ``left`` bounds what is left from each state.

    ``most``: no path of more steps (None: of any number).  ``limit_s``: none that takes longer.
    """

    graph: StateGraph
    source: int
    target: int
    left: FloatArray
    most: int | None = None
    limit_s: float = math.inf
    best: FloatArray = field(init=False)
    parent: dict[tuple[int, int], tuple[int, int]] = field(init=False, default_factory=dict)
    heap: list[tuple[float, float, int, int, int, int]] = field(init=False, default_factory=list)

    def run(self, watch: StopWatch) -> PathFound:
        """Search until the target is closed, nothing is left, or the time is up."""
        self.best = np.full(((self.most or 0) + 1, len(self.graph.table)), np.inf)
        self.best[0, self.source] = 0.0
        done = np.zeros(self.best.shape, dtype=bool)
        self.heap = [(float(self.left[self.source]), 0.0, 0, self.source, -1, -1)]
        closed = 0
        while self.heap:
            least, minus, steps, state, kind, before = heapq.heappop(self.heap)
            if kind == -2:
                self._price(-minus, steps, state, before)
                continue
            if done[steps, state] or least == math.inf:
                continue
            if watch.expired():
                return PathFound(None, math.inf, least, False, closed)
            done[steps, state] = True
            closed += 1
            if closed % _TOLD_EVERY == 0:
                watch.tell("states", bound_s=least, done=closed)
            if state == self.target:
                seconds = float(self.best[steps, state])
                return PathFound(self._path(steps), seconds, seconds, True, closed)
            if self.most is None or steps < self.most:
                self._expand(steps, state)
        return PathFound(None, math.inf, math.inf, True, closed)

    def _expand(self, steps: int, state: int) -> None:
        edges = self.graph.steps_from(state, first=steps == 0 and state == self.source)
        after = steps if self.most is None else steps + 1
        paid = float(self.best[steps, state])
        unknown = np.isnan(edges.seconds)
        if unknown.any():
            self._wait(paid, after, state, edges.targets[unknown])
            edges = edges.where(~unknown)
        self._reach(paid, after, state, edges)

    def _wait(self, paid: float, after: int, state: int, targets: IntArray) -> None:
        """Queue permutes whose price is not known."""
        least = paid + self.graph.sends.least(state, targets)
        total = least + self.left[targets]
        known = self.best[: after + 1, targets].min(axis=0)
        kept = np.flatnonzero((least < known) & (total <= self.limit_s * SLACK))
        for target, value in zip(targets[kept].tolist(), total[kept].tolist(), strict=True):
            self._push(paid, value, after, target, -2, state)

    def _reach(self, paid: float, after: int, state: int, edges: NextSteps) -> None:
        """Note what is reached sooner than before, with no more steps."""
        targets = edges.targets
        seconds = paid + edges.seconds
        known = self.best[: after + 1, targets].min(axis=0)
        total = seconds + self.left[targets]
        kept = np.flatnonzero((seconds < known) & (total <= self.limit_s * SLACK))
        for target, cost, kind in zip(
            targets[kept].tolist(), seconds[kept].tolist(), edges.kinds[kept].tolist(), strict=True
        ):
            if cost < self.best[after, target]:
                self.best[after, target] = cost
                self.parent[(after, target)] = (state, kind)
                least = cost + float(self.left[target])
                self._push(cost, least, after, target, kind, state)

    def _push(
        self, paid: float, least: float, steps: int, state: int, kind: int, before: int
    ) -> None:
        if least < math.inf:
            heapq.heappush(self.heap, (least, -paid, steps, state, kind, before))

    def _price(self, paid: float, after: int, target: int, before: int) -> None:
        """A permute's turn has come."""
        least = paid + float(self.graph.sends.least(before, np.array([target]))[0])
        if self.best[: after + 1, target].min() <= least:
            return
        seconds = np.array([self.graph.sends.exact(before, target)])
        one: IntArray = np.array([target])
        self._reach(paid, after, before, NextSteps(one, seconds, np.array([PERMUTE]), one))

    def _path(self, steps: int) -> list[tuple[int, int]]:
        node, found = (steps, self.target), []
        while node in self.parent:
            before, kind = self.parent[node]
            found.append((node[1], kind))
            node = (node[0] if self.most is None else node[0] - 1, before)
        return [(self.source, -1), *reversed(found)]


# What is left to pay at least: distances between states up to symmetry.
# Digits that are alike become one letter.  Steps lead to the same letters from every state with the
# same letters, so that one of these speaks for all.  A path to the target is a path to its letters;
# the shortest of those bounds it from below.  What depends on more than letters, such as the
# buffers of steps, counts as with the cheapest of digits; permutes without a price by letters cost
# a message.
#
# Letters are explored by their distance from the source's, up to a limit: no path within the limit
# passes through others.


LEAST_EXCHANGES = 2
"""Of relabelings: with one the letters are the states."""


class Relaxed:
    """Distances between letters, explored as far as asked."""

    def __init__(self, graph: StateGraph, source: int, target: int) -> None:
        self._graph = graph
        self._speakers, self._letters = np.unique(graph.sends.speaker_of, return_inverse=True)
        self._source, self._target = (
            int(self._letters[source]),
            int(self._letters[target]),
        )
        count = len(self._speakers)
        self._reached = np.full(count, np.inf)
        self._reached[self._source] = 0.0
        self._closed = np.zeros(count, dtype=bool)
        self._row = np.full(count, np.inf)
        self._heap = [(0.0, self._source)]
        self._steps: dict[int, tuple[IntArray, FloatArray]] = {}
        self.least_step_s = math.inf

    @property
    def explored_s(self) -> float:
        """All letters nearer to the source than this are explored; infinite: all there are."""
        while self._heap and self._closed[self._heap[0][1]]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def nearest_s(self, watch: StopWatch) -> float:
        """The distance from the source's letters to the target's, as far as the time allows."""
        while not self._closed[self._target] and self.explored_s < math.inf:
            if watch.expired():
                return self.explored_s
            watch.tell("bounds of what is left", bound_s=self.explored_s)
            self._explore()
        return float(self._reached[self._target])

    def left(self, limit_s: float, watch: StopWatch) -> FloatArray | None:
        """For each state what is left to pay at least; None: the time is up.

        Infinite where no path that takes at most ``limit_s`` passes.
        """
        while self.explored_s <= limit_s and self.explored_s < math.inf:
            if watch.expired():
                return None
            self._explore()
        found = self._distances()
        found[self._reached + found > limit_s * (1 + 1e-9)] = np.inf
        return np.asarray(found[self._letters])

    def _explore(self) -> None:
        """Close the nearest letters."""
        paid, letters = heapq.heappop(self._heap)
        self._closed[letters] = True
        first = letters == self._source
        speaker = int(self._speakers[letters])
        edges = self._graph.relaxed_from(speaker, first)
        self._row[:] = np.inf
        seconds, unknown = edges.seconds.copy(), np.isnan(edges.seconds)
        if unknown.any():  # permutes alone: other steps have no price by levels
            seconds[unknown] = self._graph.sends.least(speaker, edges.targets[unknown])
        np.minimum.at(self._row, self._letters[edges.targets], seconds)
        there = np.flatnonzero(self._row < np.inf)
        cost = self._row[there]
        self._steps[letters] = (there, cost)
        if (cost > 0).any():
            self.least_step_s = min(self.least_step_s, float(cost[cost > 0].min()))
        nearer = paid + cost < self._reached[there]
        self._reached[there[nearer]] = paid + cost[nearer]
        for one in there[nearer].tolist():
            heapq.heappush(self._heap, (float(self._reached[one]), one))

    def _distances(self) -> FloatArray:
        """Bellman's recursion to the target's letters over the steps that are known."""
        found = np.full(len(self._speakers), np.inf)
        found[self._target] = 0.0
        having = np.array([one for one, (there, _) in self._steps.items() if len(there)], np.int64)
        if not len(having):
            return found
        ends = np.concatenate([self._steps[one][0] for one in having.tolist()])
        seconds = np.concatenate([self._steps[one][1] for one in having.tolist()])
        counts = [len(self._steps[one][0]) for one in having.tolist()]
        first = np.cumsum([0, *counts[:-1]])
        while True:
            before = found[having]
            better = np.minimum(before, np.minimum.reduceat(seconds + found[ends], first))
            if (better == before).all():
                return found
            found[having] = better
