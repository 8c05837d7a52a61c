"""The best strategy as a plan: with programs for its requests where these are faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.request import DEFAULT_LENGTH, Problem
from p2smt.plans.solution import RequestAnswer, Solution
from p2smt.result import SearchLimits, Status
from p2smt.search.solve import solve
from p2smt.workload.estimated import RunEstimate
from p2smt.workload.iteration import predict_with
from p2smt.workload.timing.request_columns import axis_requests
from p2smt.workload.training_plan.answered import answered, known_answers, single_answers
from p2smt.workload.training_plan.problem import fixed_problem, named_seconds, plan_matrix


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A strategy on its matrix with programs.

    ``estimate``: with the programs; ``collectives_s``: an iteration with a single collective for
    each request.  ``solution`` answers the requests on the fixed matrix; None: nothing is sent.
    ``max_length``: the longest programs that were to be looked at.
    """

    estimate: RunEstimate
    collectives_s: float
    solution: Solution | None
    max_length: int = DEFAULT_LENGTH

    @property
    def answers(self) -> tuple[RequestAnswer, ...]:
        """The requests that anything is sent for, with their programs."""
        best = None if self.solution is None else self.solution.best
        return () if best is None else best.requests

    @property
    def notes(self) -> tuple[str, ...]:
        """Which programs are not proved the best, in words; nothing where all are."""
        if self.solution is None:
            return ()
        if self.solution.problem.max_length < self.max_length:
            return ("no program was found in time: a single collective answers each request",)
        names = [one.request.name for one in self.answers if one.status is not Status.OPTIMAL]
        if not names:
            return ()
        many = f"{len(names)} of {len(self.answers)} programs"
        return (f"{many} of the plan are not proved the best: {', '.join(names)}",)


def training_plan(
    found: RunEstimate,
    limits: SearchLimits | None = None,
    max_length: int = DEFAULT_LENGTH,
    *,
    known: Sequence[RequestAnswer] = (),
    search: bool = True,
) -> TrainingPlan:
    """The plan of a run whose placement is a matrix, with the best programs for its requests.

    These are what the stage asks for that asks most.  ``known``: answers found on this matrix
    before; only where they are not those of all requests, programs are sought, and only with
    ``search``.  At a limit some programs may not be proved the best; where none is known, single
    collectives answer the requests.
    """
    run, placement, strategy = found.run, found.placement, found.run.strategy
    asked = axis_requests(run.model, run.batch, strategy, found.efficiency.framework)
    if placement is None:
        return TrainingPlan(found, found.iteration_s, None)
    problem = fixed_problem(found.topology, strategy, placement.matrix, asked, max_length)
    if problem is None:
        return TrainingPlan(found, found.iteration_s, None)
    matrix = plan_matrix(strategy, placement.matrix)
    solution = _solved(problem, matrix, limits or SearchLimits(), known, search=search)
    answers = () if solution.best is None else solution.best.requests
    device = found.topology.known_device
    timed, single = (
        predict_with(run, device, found.efficiency, named_seconds(strategy, asked, seconds))
        for seconds in ([one.seconds for one in answers], [one.single_s for one in answers])
    )
    return TrainingPlan(
        replace(found, prediction=timed), single.time.iteration_s, solution, max_length
    )


def _solved(
    problem: Problem,
    matrix: Matrix,
    limits: SearchLimits,
    known: Sequence[RequestAnswer],
    *,
    search: bool,
) -> Solution:
    """By the known answers if these are all, by those of a search, or by single collectives."""
    answers = known_answers(problem, known)
    interrupted = False
    if answers is None and search:
        solution = solve(problem, top=1, limits=limits)
        if solution.best is not None:
            return solution
        interrupted = solution.interrupted
    if answers is None:
        problem = replace(problem, max_length=1)
        answers = single_answers(problem, matrix)
    return replace(answered(problem, matrix, answers, limits), interrupted=interrupted)
