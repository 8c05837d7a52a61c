"""Explicit table of the reachable states of a reduction problem: no solver.

A node is what every device holds on the model factors, with each device's count of
non-empty rows on the real factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.

In the range of the small-model theorem one table serves all factors of a depth: row counts
are then kept symbolically, as exponents of one prime per factor, and filled in afterwards.  Of more
than five levels neighbouring ones are merged, in every way (``reachable_merged.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Generic, TypeVar

from p2smt.collectives.names import Collective
from p2smt.encodings.program.reachable_merged import merged_table
from p2smt.encodings.program.reachable_search import GOAL, RawTable, StateExplorer, StateSpace
from p2smt.encodings.program.reachable_table import Arc, ReachableTable, pruned
from p2smt.errors import EncodingBug, TooLarge
from p2smt.problems.program import ProgramProblem
from p2smt.programs.program import MODEL_DEPTH, small_model_length
from p2smt.result import SearchLimits, StopWatch

T = TypeVar("T")
MAX_MODEL_DEVICES = 512
"""Most devices of a table on the real factors; its contents have a limit of their own."""
_PRIMES = (2, 3, 5, 7, 11)


@dataclass(frozen=True, slots=True)
class _Timed(Generic[T]):
    """What is asked with the watch that bounds the search, which is no part of its identity."""

    asked: T
    watch: StopWatch = field(compare=False)


@lru_cache(maxsize=16)
def _raw_table(timed: _Timed[StateSpace]) -> RawTable:
    return StateExplorer(timed.asked, timed.watch).build()


@lru_cache(maxsize=64)  # eight levels have 35 ways to keep five apart
def _table(timed: _Timed[StateSpace], factors: tuple[int, ...]) -> ReachableTable:
    """The table of a space whose row counts stand for those on these factors."""
    space, raw = timed.asked, _raw_table(timed)
    exact = space.rows == math.prod(space.sizes)
    real = _same if exact else _real_rows(space, factors)
    return pruned(raw.start, _filled(space, factors, raw, real), raw.explored)


@lru_cache(maxsize=16)
def _merged_table(timed: _Timed[ProgramProblem]) -> ReachableTable:
    """The table of a problem over many levels, from those over fewer."""
    apart = min(MODEL_DEPTH, timed.asked.max_length)
    return merged_table(timed.asked, apart, partial(build_table, watch=timed.watch), timed.watch)


def _same(count: int) -> int | None:
    return count


def _real_rows(space: StateSpace, factors: tuple[int, ...]) -> Callable[[int], int | None]:
    """The real rows for a symbolic row count; None if they are not whole."""

    @cache
    def real(count: int) -> int | None:
        if space.rows % count:
            raise EncodingBug("a row count that no division explains", str(space), count)
        divisor = 1
        for prime, factor in zip(space.sizes, factors, strict=True):
            left = space.rows // count
            while left % prime == 0:
                left //= prime
                divisor *= factor
        rows, rest = divmod(math.prod(factors), divisor)
        return rows if rest == 0 else None

    return real


def _space(problem: ProgramProblem, model: tuple[int, ...], symbolic: bool) -> StateSpace:
    """The state space on model factors, its rows counted by primes or as they are."""
    sizes = _PRIMES[: len(model)] if symbolic else model
    length, items = problem.max_length, problem.instructions
    # symbolic: each step may divide them once, and they are never the real ones
    rows = math.prod(sizes) ** (length + 1 if symbolic else 1)
    return StateSpace(problem.demand, model, sizes, rows, length, items, problem.forbidden)


def _filled(
    space: StateSpace,
    factors: tuple[int, ...],
    raw: RawTable,
    real: Callable[[int], int | None],
) -> dict[int, list[Arc]]:
    """Arcs with real payloads; steps that would split rows unevenly are dropped."""
    arcs: dict[int, list[Arc]] = {}
    for node, steps in raw.arcs.items():
        arcs[node] = []
        for step in steps:
            rows = [real(count) for count in step.counts]
            whole = [row for row in rows if row is not None]
            if len(whole) == len(rows) and _splits(space, factors, step.instruction, whole):
                arcs[node].append(Arc(step.instruction, max(whole), step.target))
    return arcs


def _splits(space: StateSpace, factors: tuple[int, ...], instruction: int, rows: list[int]) -> bool:
    collective, grouping = space.instructions.items[instruction]
    members = math.prod(factors[grouping.outer : grouping.inner])
    return collective is not Collective.REDUCE_SCATTER or all(row % members == 0 for row in rows)


def build_table(problem: ProgramProblem, watch: StopWatch | None = None) -> ReachableTable:
    """The table of a problem (costs, limits, excluded programs and bounds play no part).

    Raises:
        OutOfTimeError: the watch expired.
        TooLarge: the devices or the reachable states exceed the limits of this module.
    """
    if not problem.small_model:
        return exact_table(problem, watch)
    if len(problem.factors) > MODEL_DEPTH:
        watch = watch or StopWatch.start(SearchLimits())
        bare = replace(problem, limits=(), costs=None, excluded=frozenset(), at_most=None, slack=0)
        return _merged_table(_Timed(bare, watch))
    return _built(problem, problem.model_factors, True, watch)


def exact_table(problem: ProgramProblem, watch: StopWatch | None = None) -> ReachableTable:
    """The table on the real factors, which rests on no property of small ones.

    Raises:
        OutOfTimeError: the watch expired.
        TooLarge: the devices or the reachable states exceed the limits of this module.
    """
    if problem.rows > MAX_MODEL_DEVICES:
        depth = len(problem.factors)
        raise TooLarge(
            f"programs of length {problem.max_length} over factors {list(problem.factors)}",
            f"need a table on {problem.rows} devices, more than {MAX_MODEL_DEVICES}",
            f"no limit holds up to length {small_model_length(depth)} over {depth} factors",
        )
    return _built(problem, problem.factors, False, watch)


def _built(
    problem: ProgramProblem, model: tuple[int, ...], symbolic: bool, watch: StopWatch | None
) -> ReachableTable:
    if not model:
        return ReachableTable(GOAL, {}, {GOAL: 0}, 1)
    timed = _Timed(_space(problem, model, symbolic), watch or StopWatch.start(SearchLimits()))
    return _table(timed, problem.factors)
