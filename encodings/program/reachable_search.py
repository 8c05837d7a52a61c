"""Breadth-first search of the states that instructions reach, for ``reachable.py``.

Model factors say on which devices the states live; ``sizes`` and ``rows`` are those by
which rows are counted: the real ones, or symbolic ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.demand import Demand
from p2smt.encodings.program.reachable_effects import Layer, goal_nodes, initial_layer, step_nodes
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.problems.program import InstructionSet
from p2smt.programs.program import local_groups
from p2smt.result import StopWatch

MAX_NODES = 400_000
GOAL = 0


@dataclass(frozen=True, slots=True)
class StateSpace:
    """What a table is built from: model factors, and the sizes that count as real."""

    demand: Demand
    model: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: int
    max_length: int
    instructions: InstructionSet
    forbidden: frozenset[int]


@dataclass(frozen=True, slots=True)
class RawArc:
    """An arc with the row counts of its groups, before they are turned into a payload."""

    instruction: int
    counts: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class RawTable:
    start: int
    arcs: dict[int, list[RawArc]]
    explored: int


class StateExplorer:
    """Breadth-first construction of a raw table."""

    def __init__(self, space: StateSpace, watch: StopWatch) -> None:
        self.space, self.watch = space, watch
        self.index: dict[bytes, int] = {}
        self.arcs: dict[int, list[RawArc]] = defaultdict(list)
        self.explored = 1

    def build(self) -> RawTable:
        """Expand every depth below the length limit.

        Raises:
            OutOfTimeError: the watch expired.
            TooLarge: more than MAX_NODES states were reached.
        """
        space = self.space
        one = space.rows // math.prod(space.sizes)
        layer = initial_layer(space.demand, math.prod(space.model), space.rows, one)
        ids = [1]
        self.index[_keys(layer)[0]] = 1
        for depth in range(space.max_length):
            layer, ids = self._expand(layer, ids, last=depth == space.max_length - 1)
            if not ids:
                break
        return RawTable(1, self.arcs, self.explored)

    def _expand(self, layer: Layer, ids: list[int], last: bool) -> tuple[Layer, list[int]]:
        """Apply every instruction to every node; after the last step only the goal counts."""
        found: list[Layer] = []
        new_ids: list[int] = []
        nodes = np.array(ids)
        for number, (collective, grouping) in enumerate(self.space.instructions.items):
            if number in self.space.forbidden:
                continue
            if self.watch.expired():
                raise OutOfTimeError
            members = math.prod(self.space.sizes[grouping.outer : grouping.inner])
            groups = local_groups(self.space.model, grouping)
            kept, after, payload = step_nodes(layer, collective, groups, members)
            if not len(kept):
                continue
            counts = [tuple(sorted(set(row))) for row in payload.tolist()]
            goal = goal_nodes(self.space.demand, after.states)
            for at in np.flatnonzero(goal):
                self._link(int(nodes[kept[at]]), RawArc(number, counts[at], GOAL))
            if not last:
                rest = np.flatnonzero(~goal)
                left = Layer(after.states[rest], after.counts[rest])
                arcs = [(int(nodes[kept[at]]), number, counts[at]) for at in rest]
                found.append(self._register(left, arcs, new_ids))
        if not new_ids:
            return layer, []
        states = np.concatenate([f.states for f in found])
        return Layer(states, np.concatenate([f.counts for f in found])), new_ids

    def _register(
        self, after: Layer, arcs: list[tuple[int, int, tuple[int, ...]]], new_ids: list[int]
    ) -> Layer:
        """Link sources to targets; returns the targets that were not known."""
        fresh = []
        for at, key in enumerate(_keys(after)):
            target = self.index.get(key)
            if target is None:
                self.explored += 1
                target = self.index[key] = self.explored
                fresh.append(at)
                new_ids.append(target)
            source, number, counts = arcs[at]
            self._link(source, RawArc(number, counts, target))
        if self.explored > MAX_NODES:
            raise TooLarge(
                f"programs of length {self.space.max_length} over {list(self.space.sizes)}",
                f"reach more than {MAX_NODES} states",
                "ask for a shorter length, or forbid a form",
            )
        return Layer(after.states[fresh], after.counts[fresh])

    def _link(self, source: int, arc: RawArc) -> None:
        self.arcs[source].append(arc)


def _keys(layer: Layer) -> list[bytes]:
    """One hashable key per node."""
    if not len(layer.states):
        return []
    flat = layer.states.reshape(len(layer.states), -1).view(np.uint8)
    both = np.concatenate([flat, layer.counts.view(np.uint8)], axis=1)
    return [row.tobytes() for row in both]
