"""A* over numbered states: what is closed is proved.

A node is a state, or a state after so many steps where their number is limited.  Permutes of
unknown price wait in the queue at what is left to pay without them, and are priced when their turn
comes.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import IntArray
from p2smt.result import StopWatch
from p2smt.search.redistribution.exact.graph import PERMUTE, NextSteps, StateGraph

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
