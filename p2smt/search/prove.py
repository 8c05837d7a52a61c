"""Whether a plan is the best one: its problem is solved again, under its own restrictions.

A plan holds its problem, its restrictions and the limits of the search that found it.  The
search knows nothing of the plan's answer, so what it proves is evidence of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankMap
from p2smt.parallelism.request import Problem
from p2smt.plans.check import PlanReport, check_plan
from p2smt.plans.file_model import AnyPlan, LimitsModel, PlanModel, RequestModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.solution import PlanProof, ProofStatus, RequestAnswer, Solution
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.joint import ProgressCallback
from p2smt.search.one_request import answer_request
from p2smt.search.programs_pipelined import Listings
from p2smt.search.solve import solve
from p2smt.solvers.solver import Solver, solver_of

TICK = 2.0**-24
"""One tick of the coarsest scale in which a search settles an optimum, as a part of it."""


def prove(
    plan: AnyPlan,
    source: str = "plan",
    *,
    limits: SearchLimits | None = None,
    report: PlanReport | None = None,
    progress: ProgressCallback | None = None,
) -> PlanProof:
    """Solve a plan's problem again and compare.

    Args:
        plan: a valid plan of version 2.
        source: what messages call it.
        limits: instead of those in the plan.
        report: what :func:`~p2smt.plans.check.check_plan` says of it, where that is at hand.
        progress: called with (best objective so far or None, proved bound), in seconds.

    Raises:
        InputError: the plan is not valid, or is of version 1, whose restrictions are words.
        EncodingBug: an answer failed its check, or the search finds a valid plan impossible.

    An interrupt leaves the plan open, with the best bound until then.
    """
    if not isinstance(plan, PlanModel):
        rule = "of version 1 has its restrictions in words, under which nothing can be solved again"
        raise InputError(source, rule, "write it anew with `p2smt solve -o`")
    report = report or check_plan(plan, source)
    if not report.valid:
        raise InputError(source, "is not valid, so that there is nothing to prove", "verify it")
    problem, where = plan_problem(plan, source)
    solver, watch = (
        solver_of(plan.limits.solver),
        StopWatch.start(limits or stated_limits(plan.limits)),
    )
    found = solve(problem, top=1, limits=watch.limits, solver=solver, progress=progress)
    if found.status is Status.INFEASIBLE and plan.matrix is not None:
        raise EncodingBug("a valid plan answers it", problem, plan.matrix)
    proof = _proof(report.objective_s, found, plan.matrix is None)
    if proof.status is not ProofStatus.PROVED or found.interrupted:
        return proof
    claims = [*_false_bound(plan, found), *_false_requests(plan, problem, where, watch, solver)]
    status = ProofStatus.REFUTED if claims else proof.status
    return replace(proof, status=status, false=tuple(claims))


def stated_limits(model: LimitsModel) -> SearchLimits:
    """The limits of the search that found a plan."""
    return SearchLimits(model.time_limit_s, None, model.seed, model.workers)


def _proof(objective_s: float, found: Solution, listed: bool) -> PlanProof:
    """What is proved of the objective; only a finished search has proved anything but a bound.

    What is proved of matrices does not bound rank lists: such a plan is refuted or open.
    """
    best, least_s = found.best, objective_s * (1 - TICK)
    bound_s = 0.0 if listed else min(found.bound_s, objective_s)
    if best is not None and best.objective_s < least_s:
        return PlanProof(ProofStatus.REFUTED, objective_s, bound_s, best, (), found, listed)
    proved = not listed and (found.status is Status.OPTIMAL or bound_s >= least_s)
    status = ProofStatus.PROVED if proved else ProofStatus.OPEN
    return PlanProof(status, objective_s, bound_s, None, (), found, listed)


def _false_bound(plan: PlanModel, found: Solution) -> Iterator[str]:
    """The least that the links allow over all placements comes of a finished search alone."""
    least_s = found.physical_bound_s
    if found.status is Status.OPTIMAL and plan.physical_bound_s > least_s * (1 + 1e-6):
        yield f"physical_bound_s says {plan.physical_bound_s}, the search finds {least_s}"


def _false_requests(
    plan: PlanModel, problem: Problem, where: RankMap, watch: StopWatch, solver: Solver
) -> Iterator[str]:
    """Requests whose own programs are not what the plan says: the largest hides the others.

    Where the objective is the sum, each program of a best plan is the best one.
    """
    if problem.objective == "sum" or not isinstance(where, Placement):
        return
    listings = Listings()
    for n, model in enumerate(plan.requests):
        request = problem.requests[n]
        scene = Scene.of(problem.topology, where, problem.axis_indices(request))
        try:
            answer = answer_request(problem, request, scene, watch.left(), solver, listings)
        except OutOfTimeError:
            return
        if answer is not None and answer.status is Status.OPTIMAL:
            yield from _false_request(n, model, answer)


def _false_request(n: int, model: RequestModel, answer: RequestAnswer) -> Iterator[str]:
    least_s = answer.seconds * (1 + TICK)
    if model.bound_s > least_s:
        yield f"request {n + 1} bound_s says {model.bound_s}, a program takes {answer.seconds}"
