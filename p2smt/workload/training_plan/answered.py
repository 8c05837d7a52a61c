"""Solutions of a problem on one matrix whose answers are known: no search is needed for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Alternative, RequestAnswer, Solution, objective
from p2smt.result import SearchLimits, SolveStats, Status
from p2smt.search.one_request import single_answer
from p2smt.search.solve import as_named
from p2smt.solvers.solver import Solver


def known_answers(
    problem: Problem, known: Sequence[RequestAnswer]
) -> tuple[RequestAnswer, ...] | None:
    """The answer of each request among those found on the same matrix; None: one has none.

    What was found may name axes of one device, which the problem has not.
    """
    found = []
    for request in problem.requests:
        answer = next((one for one in known if _same(problem, request, one.request)), None)
        if answer is None:
            return None
        found.append(replace(answer, request=request))
    return tuple(found)


def _same(problem: Problem, request: Request, other: Request) -> bool:
    """Whether one execution of both is the same."""
    alike = request.kind is other.kind and request.payload_bytes == other.payload_bytes
    return alike and set(request.axes) == set(other.axes) & set(problem.axis_names)


def single_answers(problem: Problem, matrix: Matrix) -> tuple[RequestAnswer, ...]:
    """A single collective for each request of a problem that forbids none."""
    named, placement = as_named(problem), Placement(matrix)
    scenes = (
        Scene.of(named.topology, placement, named.axis_indices(one)) for one in named.requests
    )
    found = (
        single_answer(named, request, scene, Solver.CPSAT)
        for request, scene in zip(named.requests, scenes, strict=True)
    )
    return tuple(answer for answer in found if answer is not None)


def answered(
    problem: Problem,
    matrix: Matrix,
    answers: tuple[RequestAnswer, ...],
    limits: SearchLimits,
) -> Solution:
    """The solution with these answers, as proved as they are; the matrix is the only one."""
    status = (
        Status.OPTIMAL if all(one.status is Status.OPTIMAL for one in answers) else Status.FEASIBLE
    )
    objective_s, bound_s, physical_s = (
        objective(problem, tuple(seconds))
        for seconds in zip(
            *((one.seconds, one.bound_s, one.physical_bound_s) for one in answers), strict=True
        )
    )
    best = Alternative(matrix, answers, objective_s, status)
    ranking = Status.COMPLETE if status is Status.OPTIMAL else Status.TRUNCATED
    stats = SolveStats(Solver.CPSAT, 0.0, 0)
    return Solution(
        as_named(problem),
        status,
        (best,),
        bound_s,
        physical_s,
        ranking,
        stats,
        limits=limits,
    )
