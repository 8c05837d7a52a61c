"""What an answer of `solve` rests on: the nearest flips, and what holds whatever the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from p2smt.collectives.dispatch import Dispatch
from p2smt.errors import InputError, OutOfTimeError
from p2smt.plans.explanation import (
    SEARCHED,
    ChangedNumber,
    Explanation,
    NearestTippingPoint,
    TippingPointOutcome,
)
from p2smt.plans.solution import Alternative, Solution
from p2smt.result import OUT_OF_TIME, Status, StopWatch
from p2smt.search.explain.always import Always
from p2smt.search.explain.both_sides import (
    NOT_BEFORE,
    Confirmed,
    bisected,
    confirmed_placement,
    confirmed_program,
    still_best,
)
from p2smt.search.explain.breakpoint import Crossing, Looked, placement_crossing, program_crossing
from p2smt.search.explain.linear import Alternatives, LinearCosts, landscape, linear_costs
from p2smt.search.explain.numbers import SampledCosts, numbers_of, outward
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver

BRIEFLY_S = 60.0
"""So long an explanation may take where there is no time limit."""
_SHARE = 0.5
"""Of the time, for what holds whatever the numbers are."""


def explanation(
    found: Solution, watch: StopWatch, solver: Solver, listings: Catalogs
) -> Explanation:
    """The explanation of a solution.

    Without one, ``why`` says so: the answer is not proved best, or is no matrix.
    """
    if found.best is None or found.status is not Status.OPTIMAL:
        return Explanation(why="the answer is not proved to be the best one")
    if found.best.matrix is None:
        return Explanation(why="the answer is a rank order that no matrix expresses")
    if any(isinstance(request.kind, Dispatch) for request in found.problem.requests):
        return Explanation(why="a dispatch has no symbolic cost")
    if watch.limits.time_limit_s is None:
        watch = StopWatch.start(replace(watch.limits, time_limit_s=BRIEFLY_S))
    try:
        return _explained(found, found.best, watch, solver, listings)
    except OutOfTimeError:
        return Explanation(why="the time limit came before anything was settled")


def _explained(
    found: Solution, best: Alternative, watch: StopWatch, solver: Solver, listings: Catalogs
) -> Explanation:
    problem = found.problem
    known = [one.matrix for one in found.alternatives if one.matrix is not None]
    costs = LinearCosts(problem) if linear_costs(problem.topology) else SampledCosts(problem)
    land = landscape(problem, best, known, costs, listings, watch)
    land = _priced(land)
    left_s = watch.remaining_s() or 0.0
    first = watch.ending_at(watch.elapsed_s() + _SHARE * left_s)
    claims = Always(problem, best, listings, first).programs()
    ordered = Always(problem, best, listings, first, ordered=True)
    placements = ordered.placements(land.matrices, whole=land.whole)
    flips = tuple(flips_of(land, solver))
    return Explanation(flips, claims, placements, isinstance(land.costs, LinearCosts))


def _priced(land: Alternatives) -> Alternatives:
    """The landscape with costs by the numeric model where an algorithm has no linear form."""
    if not isinstance(land.costs, LinearCosts):
        return land
    number = next(numbers_of(land.problem))
    try:
        for matrix in land.matrices:
            for table in land.tables(matrix):
                land.costs.lines(number, table)
    except InputError:
        return replace(land, costs=SampledCosts(land.problem), _tables={}, _of={})
    return land


# The nearest flips of an answer: for each number, of the placement and of every program.


_MORE = 5
"""So many matrices may turn up that are nearer than those looked at."""


def flips_of(land: Alternatives, solver: Solver) -> Iterator[NearestTippingPoint]:
    """Where the placement changes, by each number; then the same of each program."""
    for number in numbers_of(land.problem):
        if len(land.matrices) > 1 or not land.whole:
            yield _settled(number, None, partial(_placement, land, number, solver))
    for r, answer in enumerate(land.answer.requests):
        if answer.program is None:
            continue
        for number in numbers_of(land.problem):
            if number.what != "payload" or number.index == r:
                name = str(answer.request)
                yield _settled(number, name, partial(_program, land, number, r, solver))


def _settled(
    number: ChangedNumber, request: str | None, look: Callable[[], NearestTippingPoint]
) -> NearestTippingPoint:
    """A flip; open where the time is over or a cost is not linear."""
    try:
        return look()
    except OutOfTimeError:
        return NearestTippingPoint(number, request, TippingPointOutcome.OPEN, why=OUT_OF_TIME)
    except InputError as fault:
        return NearestTippingPoint(number, request, TippingPointOutcome.OPEN, why=str(fault))


def _placement(land: Alternatives, number: ChangedNumber, solver: Solver) -> NearestTippingPoint:
    """The nearest flip; matrices that turn out to be nearer join those looked at."""
    for _ in range(_MORE):
        looked = placement_crossing(land, number)
        x, confirmed = _checked(land, number, None, looked, solver)
        if confirmed.nearer is None or confirmed.nearer in land.matrices:
            break
        land = land.with_matrix(confirmed.nearer)
    return _sharpened(land, number, None, (looked, x, confirmed), solver)


def _program(
    land: Alternatives, number: ChangedNumber, request: int, solver: Solver
) -> NearestTippingPoint:
    looked = program_crossing(land, number, request)
    x, confirmed = _checked(land, number, request, looked, solver)
    return _sharpened(land, number, request, (looked, x, confirmed), solver)


def _checked(
    land: Alternatives, number: ChangedNumber, request: int | None, looked: Looked, solver: Solver
) -> tuple[float, Confirmed]:
    """Where it was solved again, and what came of it: on both sides of a crossing, or far out."""
    if looked.crossing is None:
        x = float(SEARCHED) if outward(number) else 1 / SEARCHED
        proved = looked.proved
        return x, Confirmed() if proved else still_best(land, number, request, x, solver)
    x = looked.crossing.x
    if request is None:
        return x, confirmed_placement(land, number, x, solver)
    return x, confirmed_program(land, number, request, x, solver)


def _sharpened(
    land: Alternatives,
    number: ChangedNumber,
    request: int | None,
    found: tuple[Looked, float, Confirmed],
    solver: Solver,
) -> NearestTippingPoint:
    """The flip; where another answer is better before it, what solving again and again finds."""
    looked, x, confirmed = found
    name = None if request is None else str(land.answer.requests[request].request)
    if confirmed.why == NOT_BEFORE:
        x, confirmed = bisected(land, number, request, x, solver)
        looked = Looked(Crossing(x, None), False, looked.tried)
    return _flip(number, name, looked, confirmed)


def _flip(
    number: ChangedNumber, request: str | None, looked: Looked, confirmed: Confirmed
) -> NearestTippingPoint:
    found = NearestTippingPoint(
        number, request, TippingPointOutcome.NONE, proved=looked.proved, tried=looked.tried
    )
    if confirmed.why:
        return replace(found, outcome=TippingPointOutcome.OPEN, proved=False, why=confirmed.why)
    if looked.crossing is None:
        return found
    x, exact = looked.crossing.x, looked.crossing.exact
    return replace(
        found,
        outcome=TippingPointOutcome.FLIP,
        factor=x if x >= 1 else 1 / x,
        exact=None if exact is None else max(exact, 1 / exact),
        matrix=confirmed.matrix,
        program=confirmed.program,
    )
