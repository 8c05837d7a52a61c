"""What an answer of `solve` rests on: the nearest flips, and what holds whatever the numbers."""

from __future__ import annotations

from dataclasses import replace

from p2smt.errors import InputError, OutOfTimeError
from p2smt.plans.explanation import Explanation
from p2smt.plans.solution import Alternative, Solution
from p2smt.result import Status, StopWatch
from p2smt.search.explain.always import Always
from p2smt.search.explain.flips import flips_of
from p2smt.search.explain.landscape import Landscape, landscape
from p2smt.search.explain.linear import LinearCosts, linear_costs
from p2smt.search.explain.numbers import numbers_of
from p2smt.search.explain.sampled import SampledCosts
from p2smt.search.programs_pipelined import Listings
from p2smt.solvers.solver import Solver

BRIEFLY_S = 60.0
"""So long an explanation may take where there is no time limit."""
_SHARE = 0.5
"""Of the time, for what holds whatever the numbers are."""


def explanation(
    found: Solution, watch: StopWatch, solver: Solver, listings: Listings
) -> Explanation:
    """The explanation of a solution.

    Without one, ``why`` says so: the answer is not proved best, or is no matrix.
    """
    if found.best is None or found.status is not Status.OPTIMAL:
        return Explanation(why="the answer is not proved to be the best one")
    if found.best.matrix is None:
        return Explanation(why="the answer is a rank order that no matrix expresses")
    if watch.limits.time_limit_s is None:
        watch = StopWatch.start(replace(watch.limits, time_limit_s=BRIEFLY_S))
    try:
        return _explained(found, found.best, watch, solver, listings)
    except OutOfTimeError:
        return Explanation(why="the time limit came before anything was settled")


def _explained(
    found: Solution, best: Alternative, watch: StopWatch, solver: Solver, listings: Listings
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


def _priced(land: Landscape) -> Landscape:
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
