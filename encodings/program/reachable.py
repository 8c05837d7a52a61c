"""Explicit table of the reachable states of a reduction problem: numpy, no solver.

A node is a vector of state matrices on the model factors, with each device's count of
non-empty rows on the real factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.  All nodes
of one depth step at once.

In the range of the small-model property one table serves all factors of a depth: row counts
are then kept symbolically, as exponents of one prime per factor, and filled in afterwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

from p2smt.collectives.names import Collective
from p2smt.encodings.program.reachable_search import GOAL, RawTable, StateExplorer, StateSpace
from p2smt.errors import EncodingBug, TooLarge
from p2smt.problems.program import ProgramProblem
from p2smt.programs.program import SMALL_MODEL_DEPTH, SMALL_MODEL_LENGTH
from p2smt.result import SearchLimits, StopWatch

MAX_MODEL_DEVICES = 64
_PRIMES = (2, 3, 5, 7)
_POWER = 6  # no factor is divided out more often in SMALL_MODEL_LENGTH steps


@dataclass(frozen=True, slots=True)
class Arc:
    """A step: ``instruction`` with a payload of ``rows`` real rows leads to node ``target``."""

    instruction: int
    rows: int
    target: int


@dataclass(frozen=True, slots=True)
class ReachableTable:
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
class _Timed:
    """A state space with the watch that bounds its search, which is no part of its identity."""

    space: StateSpace
    watch: StopWatch = field(compare=False)


@lru_cache(maxsize=16)
def _raw_table(timed: _Timed) -> RawTable:
    return StateExplorer(timed.space, timed.watch).build()


def _generic(problem: ProgramProblem) -> tuple[StateSpace, Callable[[int], int | None]]:
    """A state space whose sizes are primes, and real rows for one of its row counts."""
    depth = len(problem.factors)
    primes = _PRIMES[:depth]
    whole = math.prod(primes) ** _POWER
    space = StateSpace(
        problem.demand,
        problem.model_factors,
        primes,
        whole,
        problem.max_length,
        problem.instructions,
        problem.forbidden,
    )

    @cache
    def real(count: int) -> int | None:
        if whole % count:
            raise EncodingBug("a row count that no division explains", problem, count)
        divisor = 1
        for prime, factor in zip(primes, problem.factors, strict=True):
            left = whole // count
            while left % prime == 0:
                left //= prime
                divisor *= factor
        rows, rest = divmod(problem.rows, divisor)
        return rows if rest == 0 else None

    return space, real


def _exact(problem: ProgramProblem) -> tuple[StateSpace, Callable[[int], int | None]]:
    """The state space on the real factors."""
    if problem.rows > MAX_MODEL_DEVICES:
        raise TooLarge(
            f"programs of length {problem.max_length} over factors {list(problem.factors)}",
            f"need a table on {problem.rows} devices, more than {MAX_MODEL_DEVICES}",
            f"no limit holds up to length {SMALL_MODEL_LENGTH} over {SMALL_MODEL_DEPTH} factors",
        )
    space = StateSpace(
        problem.demand,
        problem.factors,
        problem.factors,
        problem.rows,
        problem.max_length,
        problem.instructions,
        problem.forbidden,
    )
    return space, lambda count: count


def _filled(
    problem: ProgramProblem, raw: RawTable, real: Callable[[int], int | None]
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


def _pruned(start: int, arcs: dict[int, list[Arc]], explored: int) -> ReachableTable:
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
    return ReachableTable(start, kept, need, explored)


def build_table(problem: ProgramProblem, watch: StopWatch | None = None) -> ReachableTable:
    """The table of a problem (costs, limits, excluded programs and bounds play no part).

    Raises:
        OutOfTimeError: the watch expired.
        TooLarge: the devices or the reachable states exceed the limits of this module.
    """
    if not problem.factors:
        return ReachableTable(GOAL, {}, {GOAL: 0}, 1)
    space, real = _generic(problem) if problem.small_model else _exact(problem)
    raw = _raw_table(_Timed(space, watch or StopWatch.start(SearchLimits())))
    return _pruned(raw.start, _filled(problem, raw, real), raw.explored)
