"""What an answer of `solve` rests on: the nearest flips, and what holds whatever the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from p2smt.collectives.dispatch import Dispatch
from p2smt.cost.scene import Scene
from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import (
    SEARCHED,
    ChangedNumber,
    Explanation,
    NearestTippingPoint,
    TippingPointOutcome,
)
from p2smt.plans.solution import Alternative, Solution, objective
from p2smt.programs.program import Program
from p2smt.result import OUT_OF_TIME, SAME, Status, StopWatch
from p2smt.search.explain.always import Always
from p2smt.search.explain.breakpoint import Crossing, Looked, placement_crossing, program_crossing
from p2smt.search.explain.linear import Alternatives, LinearCosts, landscape, linear_costs
from p2smt.search.explain.numbers import SampledCosts, changed, numbers_of, outward
from p2smt.search.joint import JointSearch
from p2smt.search.one_request import answer_request
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.sensitivity import recost
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
    first = watch.part(_SHARE)
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


# A flip confirmed: the problem is solved again just before it and just beyond.
# Before it the answer's placement (program) must still be a best one, beyond it another must be
# better.  These solves know nothing of how the crossing was found.


_APART = (1e-6, 1e-4, 1e-2)
"""Relative distances from a crossing at which the problem is solved again, the nearest first."""
_SHARP = 1e-3
NOT_BEFORE = "another answer is better before it"
NOT_BEYOND = "no other answer was found to be better beyond it"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What wins beyond a crossing; or (``why``) what is wrong with it.

    ``nearer``: a matrix that is better before it.
    """

    matrix: Matrix | None = None
    program: Program | None = None
    why: str = ""
    nearer: Matrix | None = None


def sides(land: Alternatives, number: ChangedNumber, x: float, apart: float) -> tuple[float, float]:
    """x on the near side of a crossing, at the least 1 (no change), and on the far side."""
    if outward(number):
        near, far = max(1.0, x * (1 - apart)), x * (1 + apart)
    else:
        near, far = min(1.0, x * (1 + apart)), x * (1 - apart)
    if number.what != "payload":
        return near, far
    payload = land.problem.requests[number.index].payload_bytes
    ends = _whole(payload, x, near, far)
    return ends[0] / payload, ends[1] / payload


def _whole(payload: int, x: float, near: float, far: float) -> tuple[int, int]:
    """Payloads in whole bytes on the two sides of payload times x; the near one at most as is."""
    at, ends = payload * x, (round(payload * near), round(payload * far))
    below, above = math.ceil(at) - 1, math.floor(at) + 1
    if far > near:
        return max(payload, min(ends[0], below)), max(ends[1], above)
    return min(payload, max(ends[0], above)), max(1, min(ends[1], below))


def problem_at(land: Alternatives, number: ChangedNumber, x: float) -> Problem:
    """The problem where times are multiplied by x: a bandwidth is divided."""
    return changed(land.problem, number, 1 / x if number.what == "bandwidth" else x)


def confirmed_placement(
    land: Alternatives, number: ChangedNumber, x: float, solver: Solver
) -> Confirmed:
    """Whether the answer's matrix is a best one before x, and beyond it another is better.

    Raises:
        OutOfTimeError: no time is left.
    """
    for apart in _APART:
        near, far = sides(land, number, x, apart)
        before, matrix = _ahead(land, number, near, solver)
        if before:
            return Confirmed(why=NOT_BEFORE, nearer=matrix)
        beyond, matrix = _ahead(land, number, far, solver)
        if beyond:
            return Confirmed(matrix)
    return Confirmed(why=NOT_BEYOND)


def still_best(
    land: Alternatives, number: ChangedNumber, request: int | None, x: float, solver: Solver
) -> Confirmed:
    """Whether the answer's matrix (a request's program) is still a best one at x.

    Raises:
        OutOfTimeError: no time is left.
    """
    ahead, found = _wins(land, number, request, x, solver)
    return Confirmed(why=NOT_BEFORE, nearer=found.matrix) if ahead else Confirmed()


def bisected(
    land: Alternatives, number: ChangedNumber, request: int | None, x: float, solver: Solver
) -> tuple[float, Confirmed]:
    """By solving alone, to a thousandth: beyond which x, up to this one, another answer is better.

    At this x one is.  Others may be nearer.

    Raises:
        OutOfTimeError: no time is left.
    """
    low, high = 1.0, x
    ahead, wins = _wins(land, number, request, high, solver)
    if not ahead:
        return x, Confirmed(why=NOT_BEYOND)
    while abs(high / low - 1) > _SHARP:
        middle = (low * high) ** 0.5
        ahead, found = _wins(land, number, request, middle, solver)
        low, high, wins = (low, middle, found) if ahead else (middle, high, wins)
    return high, wins


def _wins(
    land: Alternatives, number: ChangedNumber, request: int | None, x: float, solver: Solver
) -> tuple[bool, Confirmed]:
    if request is None:
        ahead, matrix = _ahead(land, number, x, solver)
        return ahead, Confirmed(matrix)
    ahead, program = _better_program(land, number, request, x, solver)
    return ahead, Confirmed(program=program)


def _ahead(
    land: Alternatives, number: ChangedNumber, x: float, solver: Solver
) -> tuple[bool, Matrix | None]:
    """Whether another matrix is better than the answer's at x, with proof; and which."""
    problem = problem_at(land, number, x)
    found = JointSearch(problem, land.watch.left(), solver, listings=land.listings).run(top=1)
    if found.interrupted:
        raise KeyboardInterrupt
    if found.status is not Status.OPTIMAL or found.best is None:
        raise OutOfTimeError(OUT_OF_TIME)
    ours_s = _matrix_s(land, problem, solver)
    return ours_s > found.best.objective_s * (1 + SAME), found.best.matrix


def _matrix_s(land: Alternatives, problem: Problem, solver: Solver) -> float:
    """The objective of the answer's matrix with the best programs on it."""
    seconds = []
    for request in problem.requests:
        placement = Placement(land.answer.matrix or ())
        scene = Scene.of(problem.topology, placement, problem.axis_indices(request))
        limits = land.watch.left()
        found = answer_request(problem, request, scene, limits, solver, land.listings)
        if found is None or found.status is not Status.OPTIMAL:
            raise OutOfTimeError(OUT_OF_TIME)
        seconds.append(found.seconds)
    return objective(problem, tuple(seconds))


def confirmed_program(
    land: Alternatives, number: ChangedNumber, request: int, x: float, solver: Solver
) -> Confirmed:
    """Whether the answer's program is a best one before x, and beyond it another is better.

    Raises:
        OutOfTimeError: no time is left.
    """
    for apart in _APART:
        near, far = sides(land, number, x, apart)
        before, _ = _better_program(land, number, request, near, solver)
        if before:
            return Confirmed(why=NOT_BEFORE)
        beyond, program = _better_program(land, number, request, far, solver)
        if beyond:
            return Confirmed(program=program)
    return Confirmed(why=NOT_BEYOND)


def _better_program(
    land: Alternatives, number: ChangedNumber, request: int, x: float, solver: Solver
) -> tuple[bool, Program | None]:
    """Whether another program is better than the answer's at x, with proof; and which."""
    problem = problem_at(land, number, x)
    one = replace(problem, requests=(problem.requests[request],), objective="sum")
    asked = one.requests[0]
    placement = Placement(land.answer.matrix or ())
    scene = Scene.of(one.topology, placement, one.axis_indices(asked))
    found = answer_request(one, asked, scene, land.watch.left(), solver, land.listings)
    if found is None or found.status is not Status.OPTIMAL:
        raise OutOfTimeError(OUT_OF_TIME)
    ours = _ours(land, one, request)
    return ours > asked.times * found.seconds * (1 + SAME), found.program


def _ours(land: Alternatives, problem: Problem, request: int) -> float:
    """What the answer's program takes in a problem of that request alone."""
    answer, asked = land.answer.requests[request], problem.requests[0]
    grown = asked.payload_bytes / answer.request.payload_bytes
    payloads = tuple(payload * grown for payload in answer.payloads)
    moved = replace(answer, request=asked, payloads=payloads)
    return recost(problem, replace(land.answer, requests=(moved,)))
