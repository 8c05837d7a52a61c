"""What is left to pay at least: distances between states up to symmetry.

Digits that are alike become one letter.  Steps lead to the same letters from every state with the
same letters, so that one of these speaks for all.  A path to the target is a path to its letters;
the shortest of those bounds it from below.  What depends on more than letters, such as the buffers
of steps, counts as with the cheapest of digits; permutes without a price by letters cost a message.

Letters are explored by their distance from the source's, up to a limit: no path within the limit
passes through others.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import IntArray
from p2smt.result import StopWatch
from p2smt.search.redistribution.exact.graph import StateGraph

LEAST_EXCHANGES = 2
"""Of relabelings: with one the letters are the states."""


class Relaxed:
    """Distances between letters, explored as far as asked."""

    def __init__(self, graph: StateGraph, source: int, target: int) -> None:
        self._graph = graph
        self._speakers, self._letters = np.unique(graph.sends.speaker_of, return_inverse=True)
        self._source, self._target = int(self._letters[source]), int(self._letters[target])
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
