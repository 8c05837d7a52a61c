"""Explicit table of the reachable states of a reduction problem, for table-based encodings.

A node is a vector of state matrices on the model factors, with each device's count of
non-empty rows on the real factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.  All nodes
of one depth step at once (``program_effects.py``).

In the range of the small-model property one table serves all factors of a depth: row counts
are then kept symbolically, as exponents of one prime per factor, and filled in afterwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from p2smt.collective import Collective, RequestKind
from p2smt.encodings.program_effects import Layer, goal_nodes, initial_layer, step_nodes
from p2smt.errors import TooLarge
from p2smt.problem import InstructionSet, ProgramProblem
from p2smt.program import local_groups

MAX_MODEL_DEVICES = 64
MAX_NODES = 400_000
GOAL = 0
_PRIMES = (2, 3, 5, 7)
_POWER = 6  # no factor is divided out more often in SMALL_MODEL_LENGTH steps


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


@dataclass(frozen=True, slots=True)
class _Search:
    """What a table is built from: model factors, and the sizes that count as real."""

    kind: RequestKind
    model: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: int
    max_length: int
    instructions: InstructionSet
    forbidden: frozenset[int]


@dataclass(frozen=True, slots=True)
class _RawArc:
    """An arc with the row counts of its groups, before they are turned into a payload."""

    instruction: int
    counts: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class _RawTable:
    start: int
    arcs: dict[int, list[_RawArc]]
    explored: int


class _Builder:
    """Breadth-first construction of a raw table."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self.index: dict[bytes, int] = {}
        self.arcs: dict[int, list[_RawArc]] = defaultdict(list)
        self.explored = 1

    def build(self) -> _RawTable:
        """Expand every depth below the length limit."""
        search = self.search
        one = search.rows // math.prod(search.sizes)
        layer = initial_layer(search.kind, math.prod(search.model), search.rows, one)
        ids = [1]
        self.index[_keys(layer)[0]] = 1
        for depth in range(search.max_length):
            layer, ids = self._expand(layer, ids, last=depth == search.max_length - 1)
            if not ids:
                break
        return _RawTable(1, self.arcs, self.explored)

    def _expand(self, layer: Layer, ids: list[int], last: bool) -> tuple[Layer, list[int]]:
        """Apply every instruction to every node; after the last step only the goal counts."""
        found: list[Layer] = []
        new_ids: list[int] = []
        nodes = np.array(ids)
        for number, (collective, grouping) in enumerate(self.search.instructions.items):
            if number in self.search.forbidden:
                continue
            members = math.prod(self.search.sizes[grouping.outer : grouping.inner])
            groups = local_groups(self.search.model, grouping)
            kept, after, payload = step_nodes(layer, collective, groups, members)
            if not len(kept):
                continue
            counts = [tuple(sorted(set(row))) for row in payload.tolist()]
            goal = goal_nodes(self.search.kind, after.states)
            for at in np.flatnonzero(goal):
                self._link(int(nodes[kept[at]]), _RawArc(number, counts[at], GOAL))
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
            self._link(source, _RawArc(number, counts, target))
        if self.explored > MAX_NODES:
            raise TooLarge(
                f"programs of length {self.search.max_length} over {list(self.search.sizes)}",
                f"reach more than {MAX_NODES} states",
                "ask for a shorter length, or forbid a form",
            )
        return Layer(after.states[fresh], after.counts[fresh])

    def _link(self, source: int, arc: _RawArc) -> None:
        self.arcs[source].append(arc)


def _keys(layer: Layer) -> list[bytes]:
    """One hashable key per node."""
    if not len(layer.states):
        return []
    flat = layer.states.reshape(len(layer.states), -1).view(np.uint8)
    both = np.concatenate([flat, layer.counts.view(np.uint8)], axis=1)
    return [row.tobytes() for row in both]


@lru_cache(maxsize=16)
def _raw_table(search: _Search) -> _RawTable:
    return _Builder(search).build()


def _generic(problem: ProgramProblem) -> tuple[_Search, Callable[[int], int | None]]:
    """A search whose sizes are primes, and real rows for one of its row counts."""
    depth = len(problem.factors)
    primes = _PRIMES[:depth]
    whole = math.prod(primes) ** _POWER
    search = _Search(
        problem.kind,
        problem.model_factors,
        primes,
        whole,
        problem.max_length,
        problem.instructions,
        problem.forbidden,
    )

    @cache
    def real(count: int) -> int | None:
        divisor = 1
        for prime, factor in zip(primes, problem.factors, strict=True):
            left = whole // count
            while left % prime == 0:
                left //= prime
                divisor *= factor
        rows, rest = divmod(problem.rows, divisor)
        return rows if rest == 0 else None

    return search, real


def _exact(problem: ProgramProblem) -> tuple[_Search, Callable[[int], int | None]]:
    """A search on the real factors."""
    if problem.rows > MAX_MODEL_DEVICES:
        raise TooLarge(
            f"programs of length {problem.max_length} over factors {list(problem.factors)}",
            f"need a table on {problem.rows} devices, more than {MAX_MODEL_DEVICES}",
            "ask for length 6 or less, or for fewer levels",
        )
    search = _Search(
        problem.kind,
        problem.factors,
        problem.factors,
        problem.rows,
        problem.max_length,
        problem.instructions,
        problem.forbidden,
    )
    return search, lambda count: count


def _filled(
    problem: ProgramProblem, raw: _RawTable, real: Callable[[int], int | None]
) -> dict[int, list[Arc]]:
    """Arcs with real payloads; steps that would split rows unevenly are dropped."""
    arcs: dict[int, list[Arc]] = {}
    for node, steps in raw.arcs.items():
        arcs[node] = []
        for step in steps:
            rows = [real(count) for count in step.counts]
            whole = [row for row in rows if row is not None]
            if len(whole) == len(rows) and _splits(problem, step.instruction, whole):
                arcs[node].append(Arc(step.instruction, max(whole), step.target))
    return arcs


def _splits(problem: ProgramProblem, instruction: int, rows: list[int]) -> bool:
    collective, grouping = problem.instructions.items[instruction]
    members = math.prod(problem.factors[grouping.outer : grouping.inner])
    return collective is not Collective.REDUCE_SCATTER or all(row % members == 0 for row in rows)


def _pruned(start: int, arcs: dict[int, list[Arc]], explored: int) -> Table:
    """Keep the nodes from which the goal can be reached."""
    back = defaultdict(set)
    for node, steps in arcs.items():
        for arc in steps:
            back[arc.target].add(node)
    need, frontier = {GOAL: 0}, [GOAL]
    for node in frontier:
        for source in sorted(back[node]):
            if source not in need:
                need[source] = need[node] + 1
                frontier.append(source)
    kept = {
        node: tuple(a for a in steps if a.target in need)
        for node, steps in arcs.items()
        if node in need
    }
    return Table(start, kept, need, explored)


def build_table(problem: ProgramProblem) -> Table:
    """The table of a problem (costs, limits, excluded programs and bounds play no part)."""
    if not problem.factors:
        return Table(GOAL, {}, {GOAL: 0}, 1)
    search, real = _generic(problem) if problem.small_model else _exact(problem)
    raw = _raw_table(search)
    return _pruned(raw.start, _filled(problem, raw, real), raw.explored)
