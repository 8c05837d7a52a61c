"""Explicit table of the reachable states of a reduction problem, for table-based encodings.

A node is a vector of state matrices on the model factors, with each device's count of
non-empty rows on the *real* factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.

Matrices are numpy words: ``states[node, device, row]`` has bit c set when that row of the
device holds the contribution of device c.  All nodes of a layer step at once.  This file
states the effect of the collectives a second time, on purpose: the checker
(``p2smt.semantics``) shares no code with it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2smt.collective import Collective, RequestKind
from p2smt.errors import TooLarge
from p2smt.problem import ProgramProblem
from p2smt.program import local_groups

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
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


@dataclass(slots=True)
class _Layer:
    """Nodes of one depth: matrices (n, devices, rows) and real row counts (n, devices)."""

    states: Words
    counts: Counts


def _dtype(devices: int) -> type[np.unsignedinteger]:
    return np.uint8 if devices <= 8 else np.uint16 if devices <= 16 else np.uint64


def _initial(kind: RequestKind, devices: int, real: int) -> _Layer:
    word = _dtype(devices)
    full = word((1 << devices) - 1)
    bits = np.array([1 << d for d in range(devices)], dtype=word)
    if kind is RequestKind.ALL_GATHER:
        states = np.diag(np.full(devices, full, dtype=word))
        return _Layer(states[None], np.ones((1, devices), dtype=np.int64))
    states = np.repeat(bits[:, None], devices, axis=1)
    return _Layer(states[None], np.full((1, devices), real, dtype=np.int64))


def _is_goal(kind: RequestKind, states: Words) -> Flags:
    devices = states.shape[1]
    full = states == states.dtype.type((1 << devices) - 1)
    if kind is not RequestKind.REDUCE_SCATTER:
        return np.asarray(full.all(axis=(1, 2)))
    one_row = (full.sum(axis=2) == 1) & ((states != 0).sum(axis=2) == 1)
    distinct = full.sum(axis=1) == 1
    return np.asarray(one_row.all(axis=1) & distinct.all(axis=1))


@dataclass(frozen=True, slots=True)
class _View:
    """An instruction's groups: member words (n, groups, members, rows) and what is common."""

    words: Words
    filled: Flags
    union: Words

    @staticmethod
    def of(states: Words, groups: npt.NDArray[np.int64]) -> _View:
        words = states[:, groups]
        return _View(words, words != 0, np.bitwise_or.reduce(words, axis=2))

    def reducible(self) -> Flags:
        """C1: all members have the same rows, at least one, with disjoint contributors."""
        same = (self.filled == self.filled[:, :, :1]).all(axis=(1, 2, 3))
        some = self.filled[:, :, 0].any(axis=2).all(axis=1)
        parts = np.bitwise_count(self.words).sum(axis=2, dtype=np.int64)
        disjoint = (parts == np.bitwise_count(self.union)).all(axis=(1, 2))
        return np.asarray(same & some & disjoint)

    def gatherable(self) -> Flags:
        """C3: the members' rows are disjoint, the same positive number each."""
        sizes = self.filled.sum(axis=3)
        equal = ((sizes == sizes[:, :, :1]) & (sizes > 0)).all(axis=(1, 2))
        return np.asarray(equal & (self.filled.sum(axis=2) <= 1).all(axis=(1, 2)))

    def broadcastable(self) -> Flags:
        """C5: the first member's state strictly contains every other member's."""
        first, others = self.words[:, :, :1], self.words[:, :, 1:]
        contained = ((others & ~first) == 0).all(axis=(1, 2, 3))
        return np.asarray(contained & (others != first).any(axis=3).all(axis=(1, 2)))


def _scattered(view: _View, members: int) -> tuple[Flags, Words]:
    """C2: the number of rows divides by the group size; member i keeps the i-th run."""
    filled = view.filled[:, :, 0]
    total = filled.sum(axis=2)
    valid = view.reducible() & (total % members == 0).all(axis=1)
    run = np.maximum(total // members, 1)[..., None]
    owner = (np.cumsum(filled, axis=2) - 1) // run
    mine = owner[:, :, None, :] == np.arange(members)[None, None, :, None]
    return valid, np.where(mine & filled[:, :, None, :], view.union[:, :, None, :], 0)


def _effect(collective: Collective, view: _View) -> tuple[Flags, Words]:
    """Which nodes may take the step, and the members' words after it."""
    members = view.words.shape[2]
    spread = np.broadcast_to(view.union[:, :, None, :], view.words.shape)
    match collective:
        case Collective.ALL_REDUCE:
            return view.reducible(), spread
        case Collective.REDUCE_SCATTER:
            return _scattered(view, members)
        case Collective.ALL_GATHER:
            return view.gatherable(), spread
        case Collective.REDUCE:
            after = np.zeros_like(view.words)
            after[:, :, 0] = view.union
            return view.reducible(), after
        case Collective.BROADCAST:
            return view.broadcastable(), np.broadcast_to(view.words[:, :, :1], view.words.shape)


def _real_counts(
    collective: Collective, counts: Counts, members: int
) -> tuple[Flags, Counts, Counts]:
    """Real divisibility, members' real row counts after the step, and the step's payload."""
    first = counts[:, :, :1]
    whole = np.ones(len(counts), dtype=bool)
    payload = first.max(axis=(1, 2))
    match collective:
        case Collective.REDUCE_SCATTER:
            whole = (first % members == 0).all(axis=(1, 2))
            return whole, np.broadcast_to(first // members, counts.shape), payload
        case Collective.ALL_GATHER:
            return whole, np.broadcast_to(first * members, counts.shape), payload * members
        case Collective.REDUCE:
            after = np.zeros_like(counts)
            after[:, :, 0] = first[:, :, 0]
            return whole, after, payload
        case _:
            return whole, np.broadcast_to(first, counts.shape), payload


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
        layer = _initial(self.problem.kind, self.devices, self.problem.rows)
        start = 1
        self.index[self._keys(layer)[0]] = start
        ids = [start]
        if _is_goal(self.problem.kind, layer.states)[0]:
            return Table(GOAL, {}, {GOAL: 0}, 1)
        for depth in range(self.problem.max_length):
            last = depth == self.problem.max_length - 1
            layer, ids = self._expand(layer, ids, last)
            if not ids:
                break
        return self._pruned(start)

    def _keys(self, layer: _Layer) -> list[bytes]:
        if not len(layer.states):
            return []
        flat = layer.states.reshape(len(layer.states), -1).view(np.uint8)
        both = np.concatenate([flat, layer.counts.view(np.uint8)], axis=1)
        return [row.tobytes() for row in both]

    def _expand(self, layer: _Layer, ids: list[int], last: bool) -> tuple[_Layer, list[int]]:
        found: list[_Layer] = []
        new_ids: list[int] = []
        nodes = np.array(ids)
        for number, (collective, grouping) in enumerate(self.problem.instructions.items):
            if number in self.problem.forbidden:
                continue
            sizes = self.problem.factors[grouping.outer : grouping.inner]
            groups = local_groups(self.model, grouping)
            kept, after, payload = _step(layer, collective, groups, math.prod(sizes))
            if not len(kept):
                continue
            goal = _is_goal(self.problem.kind, after.states)
            for at in np.flatnonzero(goal):
                self._link(int(nodes[kept[at]]), number, int(payload[at]), GOAL)
            if last:
                continue
            rest = np.flatnonzero(~goal)
            fresh = self._register(
                _Layer(after.states[rest], after.counts[rest]),
                nodes[kept[rest]].tolist(),
                number,
                payload[rest].tolist(),
                new_ids,
            )
            found.append(fresh)
        if not new_ids:
            return layer, []
        return _Layer(
            np.concatenate([f.states for f in found]), np.concatenate([f.counts for f in found])
        ), new_ids

    def _register(
        self,
        after: _Layer,
        sources: list[int],
        number: int,
        payload: list[int],
        new_ids: list[int],
    ) -> _Layer:
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
        return _Layer(after.states[fresh], after.counts[fresh])

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


def _step(
    layer: _Layer, collective: Collective, groups: npt.NDArray[np.int64], real_members: int
) -> tuple[npt.NDArray[np.int64], _Layer, Counts]:
    """Apply one instruction to every node: (kept node positions, nodes after, payloads)."""
    view = _View.of(layer.states, groups)
    valid, words = _effect(collective, view)
    whole, counts, payload = _real_counts(collective, layer.counts[:, groups], real_members)
    kept = np.flatnonzero(valid & whole)
    states, real = layer.states[kept], layer.counts[kept]
    states[:, groups] = words[kept]
    real[:, groups] = counts[kept]
    return kept, _Layer(states, real), payload[kept]


def build_table(problem: ProgramProblem) -> Table:
    """The table of a problem (limits and costs play no part in it)."""
    return _Builder(problem).build()
