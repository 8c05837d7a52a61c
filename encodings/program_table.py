"""Explicit table of the reachable states of a reduction problem, for table-based encodings.

A node is a vector of state matrices on the model factors, with each device's count of
non-empty rows on the real factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.  All nodes
of one depth step at once (``program_effects.py``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2smt.encodings.program_effects import Layer, goal_nodes, initial_layer, step_nodes
from p2smt.errors import TooLarge
from p2smt.problem import ProgramProblem
from p2smt.program import local_groups

MAX_MODEL_DEVICES = 64
MAX_NODES = 400_000
GOAL = 0


@dataclass(frozen=True, slots=True)
class Arc:
    """A step: ``instruction`` with a payload of ``rows`` real rows leads to node ``target``."""

    instruction: int
    rows: int
    target: int


@dataclass(frozen=True, slots=True)
class Table:
    """Nodes reachable within the length limit and from which the goal still is.

    ``arcs[node]`` are its steps in instruction order, ``need[node]`` the least number of
    steps to the goal, ``start`` the initial node.  Node 0 is the goal and has no arcs.
    ``explored`` counts all nodes seen.
    """

    start: int
    arcs: dict[int, tuple[Arc, ...]]
    need: dict[int, int]
    explored: int

    def steps(self, node: int, left: int) -> Iterator[Arc]:
        """Steps from ``node`` after which the goal can be reached in ``left - 1`` steps."""
        return (a for a in self.arcs.get(node, ()) if self.need[a.target] <= left - 1)


class _Builder:
    """Breadth-first construction of the table."""

    def __init__(self, problem: ProgramProblem) -> None:
        self.problem = problem
        self.model = problem.model_factors
        self.devices = math.prod(self.model)
        if self.devices > MAX_MODEL_DEVICES:
            raise TooLarge(
                f"programs of length {problem.max_length} over factors {list(problem.factors)}",
                f"need a table on {self.devices} devices, more than {MAX_MODEL_DEVICES}",
                "ask for length 6 or less, or for fewer levels",
            )
        self.index: dict[bytes, int] = {}
        self.arcs: dict[int, list[Arc]] = defaultdict(list)
        self.back: dict[int, set[int]] = defaultdict(set)
        self.explored = 1

    def build(self) -> Table:
        layer = initial_layer(self.problem.kind, self.devices, self.problem.rows)
        start = 1
        self.index[self._keys(layer)[0]] = start
        ids = [start]
        if goal_nodes(self.problem.kind, layer.states)[0]:
            return Table(GOAL, {}, {GOAL: 0}, 1)
        for depth in range(self.problem.max_length):
            last = depth == self.problem.max_length - 1
            layer, ids = self._expand(layer, ids, last)
            if not ids:
                break
        return self._pruned(start)

    def _keys(self, layer: Layer) -> list[bytes]:
        if not len(layer.states):
            return []
        flat = layer.states.reshape(len(layer.states), -1).view(np.uint8)
        both = np.concatenate([flat, layer.counts.view(np.uint8)], axis=1)
        return [row.tobytes() for row in both]

    def _expand(self, layer: Layer, ids: list[int], last: bool) -> tuple[Layer, list[int]]:
        found: list[Layer] = []
        new_ids: list[int] = []
        nodes = np.array(ids)
        for number, (collective, grouping) in enumerate(self.problem.instructions.items):
            if number in self.problem.forbidden:
                continue
            sizes = self.problem.factors[grouping.outer : grouping.inner]
            groups = local_groups(self.model, grouping)
            kept, after, payload = step_nodes(layer, collective, groups, math.prod(sizes))
            if not len(kept):
                continue
            goal = goal_nodes(self.problem.kind, after.states)
            for at in np.flatnonzero(goal):
                self._link(int(nodes[kept[at]]), number, int(payload[at]), GOAL)
            if last:
                continue
            rest = np.flatnonzero(~goal)
            fresh = self._register(
                Layer(after.states[rest], after.counts[rest]),
                nodes[kept[rest]].tolist(),
                number,
                payload[rest].tolist(),
                new_ids,
            )
            found.append(fresh)
        if not new_ids:
            return layer, []
        return Layer(
            np.concatenate([f.states for f in found]), np.concatenate([f.counts for f in found])
        ), new_ids

    def _register(
        self,
        after: Layer,
        sources: list[int],
        number: int,
        payload: list[int],
        new_ids: list[int],
    ) -> Layer:
        """Link sources to targets; returns the targets that were not known."""
        fresh = []
        for at, key in enumerate(self._keys(after)):
            target = self.index.get(key)
            if target is None:
                self.explored += 1
                target = self.explored
                self.index[key] = target
                fresh.append(at)
                new_ids.append(target)
            self._link(sources[at], number, payload[at], target)
        if self.explored > MAX_NODES:
            raise TooLarge(
                f"programs of length {self.problem.max_length} over {list(self.problem.factors)}",
                f"reach more than {MAX_NODES} states",
                "ask for a shorter length, or forbid a form",
            )
        return Layer(after.states[fresh], after.counts[fresh])

    def _link(self, source: int, number: int, rows: int, target: int) -> None:
        self.arcs[source].append(Arc(number, rows, target))
        self.back[target].add(source)

    def _pruned(self, start: int) -> Table:
        need, frontier = {GOAL: 0}, [GOAL]
        while frontier:
            frontier = [
                s
                for t in frontier
                for s in sorted(self.back[t])
                if s not in need and need.setdefault(s, need[t] + 1)
            ]
        arcs = {
            node: tuple(a for a in steps if a.target in need)
            for node, steps in self.arcs.items()
            if node in need
        }
        return Table(start, arcs, need, self.explored)


def build_table(problem: ProgramProblem) -> Table:
    """The table of a problem (limits and costs play no part in it)."""
    return _Builder(problem).build()
