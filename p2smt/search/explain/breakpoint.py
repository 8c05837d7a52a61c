"""Where another answer is cheaper first, as one number grows or shrinks.

Between neighbouring kinks of all steps, and of the least of the answer's own programs, the answer's
objective is a line, and that of another matrix with its best programs is concave (a sum of least
lines).  A concave function that is no less than a line at both ends is nowhere less.  So it is
enough to look at the kinks; the crossing lies before the first of these at which another is less,
and there it is unique.  Of an objective ``max``, or under a library, only the factors that are
tried are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2smt.parallelism.placement import FloatArray, Matrix
from p2smt.plans.explanation import SEARCHED, ChangedNumber
from p2smt.result import SAME
from p2smt.search.explain.linear import Alternatives, LinearCosts
from p2smt.search.explain.numbers import ProgramTable, outward

_ZOOM = {True: (64, 4), False: (2, 22)}
"""Parts of an interval that are looked at, and how often again: where points are cheap, or not."""
_REFINED = 20


@dataclass(frozen=True, slots=True)
class Crossing:
    """Beyond ``x`` another answer is less; x multiplies times, so a bandwidth is divided by it.

    ``exact``: the same as a fraction, if it is known.
    """

    x: float
    exact: Fraction | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found (None: nothing) at so many points, and whether no point lies between."""

    crossing: Crossing | None
    proved: bool
    tried: int


@dataclass(frozen=True, slots=True)
class _Race:
    """Our time and the least of the others' at some x; ``exact`` finds their crossing near one."""

    ours: Callable[[FloatArray], FloatArray]
    others: Callable[[FloatArray], FloatArray]
    exact: Callable[[float, float, float], Fraction | None]


def placement_crossing(land: Alternatives, number: ChangedNumber) -> Looked:
    """Where another matrix is better first.

    Raises:
        OutOfTimeError: no time is left.
        InputError: a step has no linear form.
    """
    others = land.different
    if not others:
        return Looked(None, land.whole, 0)
    own = [land.answer.matrix or ()]
    every = [table for matrix in land.matrices for table in land.tables(matrix)]
    xs, kinks = _points(land, number, list({id(t): t for t in every}.values()))
    if kinks:
        xs, kinks = _with_own_kinks(land, number, xs)
    race = _Race(
        lambda at: np.asarray(land.objective_s(number, own, at)[0]),
        lambda at: np.asarray(land.objective_s(number, others, at).min(axis=0)),
        lambda low, high, x: _exact_placement(land, number, (low, high), x),
    )
    whole = land.whole and all(table.whole for table in every)
    return _looked(race, xs, kinks and whole and _linear_sum(land))


def program_crossing(land: Alternatives, number: ChangedNumber, request: int) -> Looked:
    """Where another program of a request is better first, on the answer's placement.

    Raises:
        OutOfTimeError, InputError: as above.
    """
    table, ours = land.table(land.answer.matrix or (), request), land.ours(request)
    if ours is None or len(table.programs) < 2:
        return Looked(None, ours is not None and table.whole, 0)
    xs, kinks = _points(land, number, [table])

    def least(at: FloatArray) -> FloatArray:
        return np.asarray(np.delete(land.step_s(number, table, at), ours, axis=0).min(axis=0))

    race = _Race(
        lambda at: np.asarray(land.step_s(number, table, at)[ours]),
        least,
        lambda low, high, x: _exact_program(land, number, table, (low, high), x),
    )
    return _looked(race, xs, kinks and table.whole)


def _linear_sum(land: Alternatives) -> bool:
    return land.problem.objective == "sum" or len(land.problem.requests) == 1


def _points(
    land: Alternatives, number: ChangedNumber, tables: list[ProgramTable]
) -> tuple[FloatArray, bool]:
    """The x to look at, from 1 outward; and whether every kink is among them."""
    grows = outward(number)
    if isinstance(land.costs, LinearCosts):
        low, high = (1.0, float(SEARCHED)) if grows else (1 / SEARCHED, 1.0)
        found = land.costs.points(number, tables, low, high)
        if found is not None:
            return (found if grows else found[::-1]), True
        return np.geomspace(1.0, high if grows else low, 200), False
    return (land.costs.points() if grows else 1 / land.costs.points()), False


def _with_own_kinks(
    land: Alternatives, number: ChangedNumber, xs: FloatArray
) -> tuple[FloatArray, bool]:
    """The points with those where the best programs of the answer's placement change."""
    for _ in range(_REFINED):
        found: set[float] = set()
        for table in land.tables(land.answer.matrix or ()):
            found |= _switches(land.step_s(number, table, xs), xs)
        new = found - set(xs.tolist())
        if not new:
            return xs, True
        merged = np.array(sorted({*xs.tolist(), *new}))
        xs = merged if xs[0] < xs[-1] else merged[::-1]
    return xs, False


def _switches(times: FloatArray, xs: FloatArray) -> set[float]:
    """Between points with different best programs: where the lines of these two meet."""
    best, found = times.argmin(axis=0), set[float]()
    for k in np.flatnonzero(best[1:] != best[:-1]):
        left, right = times[[best[k], best[k + 1]], k], times[[best[k], best[k + 1]], k + 1]
        before, after = left[1] - left[0], right[0] - right[1]
        if before > SAME * left[0] and after > SAME * right[0]:
            found.add(float(xs[k] + (xs[k + 1] - xs[k]) * before / (before + after)))
    return found


def _looked(race: _Race, xs: FloatArray, proved: bool) -> Looked:
    ours, others = race.ours(xs), race.others(xs)
    below = np.flatnonzero(others < ours * (1 - SAME))
    if not below.size:
        return Looked(None, proved, len(xs))
    k = int(below[0])
    low, high = (float(xs[max(0, k - 1)]), float(xs[k]))
    near = _zoomed(race, low, high, *_ZOOM[proved])
    exact = race.exact(low, high, near) if proved else None
    return Looked(Crossing(near if exact is None else float(exact), exact), proved, len(xs))


def _zoomed(race: _Race, low: float, high: float, parts: int, rounds: int) -> float:
    """Just beyond where the others fall below us first, between a point and another one."""
    for _ in range(rounds):
        xs = np.linspace(low, high, parts + 1)[1:]
        below = np.flatnonzero(race.others(xs) < race.ours(xs) * (1 - SAME))
        k = int(below[0]) if below.size else len(xs) - 1
        low, high = (low if k == 0 else float(xs[k - 1])), float(xs[k])
    return high


def _exact_placement(
    land: Alternatives, number: ChangedNumber, ends: tuple[float, float], x: float
) -> Fraction | None:
    """Where the best of the others meets ours, with the programs that both have there."""
    times = land.objective_s(number, land.different, np.array([x]))[:, 0]
    other = land.different[int(times.argmin())]
    ours: Matrix = land.answer.matrix or ()
    plans = [(m, land.best_programs(number, m, x)) for m in (other, ours)]

    def ahead(at: Fraction) -> Fraction:
        left, right = (_plan_s(land, number, matrix, chosen, at) for matrix, chosen in plans)
        return left - right

    return _root(ahead, ends, x)


def _plan_s(
    land: Alternatives, number: ChangedNumber, matrix: Matrix, chosen: tuple[int, ...], at: Fraction
) -> Fraction:
    assert isinstance(land.costs, LinearCosts), "fractions are known where costs are linear"
    total = Fraction(0)
    for table, row in zip(land.tables(matrix), chosen, strict=True):
        seconds = land.costs.exact_s(number, table, row, at)
        total += land.problem.requests[table.number].times * seconds
    return total


def _exact_program(
    land: Alternatives,
    number: ChangedNumber,
    table: ProgramTable,
    ends: tuple[float, float],
    x: float,
) -> Fraction | None:
    times = land.step_s(number, table, np.array([x]))[:, 0]
    other, ours, costs = int(times.argmin()), land.ours(table.number), land.costs
    if ours is None or not isinstance(costs, LinearCosts):
        return None
    pair = [other, ours]

    def ahead(at: Fraction) -> Fraction:
        left, right = (costs.exact_s(number, table, row, at) for row in pair)
        return left - right

    return _root(ahead, ends, x)


def _root(
    ahead: Callable[[Fraction], Fraction], ends: tuple[float, float], near: float
) -> Fraction | None:
    """Where a function that is a line between two points is zero; None: not near enough."""
    low, high = map(Fraction, ends)
    one, two = low + (high - low) / 4, high - (high - low) / 4
    first, second = ahead(one), ahead(two)
    if first == second:
        return None
    found = one - first * (two - one) / (second - first)
    close = abs(found - Fraction(near)) <= Fraction(near) / 10**5
    return found if close and ahead(found) == 0 else None
