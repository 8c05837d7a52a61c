"""Solves one request on one scene: the best program, or the one fixed step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.footprint import Digits
from p2smt.cost.pipeline import Pipelined
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.answers import fixed_answer, program_answer
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.program import Grouping, Program
from p2smt.result import SearchLimits, SolveStats, Status
from p2smt.search.programs import Found, Priced, Task, best_program, price
from p2smt.search.programs_pipelined import Listings, best_pipelined
from p2smt.solvers.solver import Solver


@dataclass(frozen=True, slots=True)
class RequestAnswers:
    """Answers of a problem's requests, each found once; ``len``: how many were found.

    Requests that differ in ``times`` only share one, since it is of one execution.
    """

    problem: Problem
    solver: Solver
    listings: Listings
    _found: dict[tuple[RequestKind, int, tuple[Digits, ...]], RequestAnswer | None] = field(
        default_factory=dict
    )

    def __len__(self) -> int:
        return len(self._found)

    def of(self, request: Request, scene: Scene, limits: SearchLimits) -> RequestAnswer | None:
        """As :func:`answer_request`."""
        key = (request.kind, request.payload_bytes, scene.digits)
        if key not in self._found:
            self._found[key] = answer_request(
                self.problem, request, scene, limits, self.solver, self.listings
            )
        answer = self._found[key]
        return answer and replace(answer, request=request)


def answer_request(
    problem: Problem,
    request: Request,
    scene: Scene,
    limits: SearchLimits,
    solver: Solver,
    listings: Listings,
) -> RequestAnswer | None:
    """The best way to run a request on a scene; None if the restrictions leave no program.

    Where the time runs out without any program, or the encoding refuses so many devices, the
    single collective stands in (checked) with status UNKNOWN, if the restrictions allow it.

    Raises:
        OutOfTimeError: neither a program nor a proof was found, and nothing may stand in.
    """
    hierarchy = scene.hierarchy
    if hierarchy.size == 1 or not request.kind.has_programs:
        return fixed_answer(request, scene)
    task = Task(
        request.kind,
        hierarchy,
        problem.max_length,
        problem.forbidden_forms,
        problem.step_limits,
        solver,
    )
    try:
        if problem.pipeline == 1:
            found = best_program(task, scene, request.payload_bytes, limits)
        else:
            found = best_pipelined(
                task, scene, request.payload_bytes, limits, problem.pipeline, listings
            )
    except TooLarge:  # this scene is left unproved; the others need not be
        found = Found(Status.UNKNOWN, None, 0.0, SolveStats(solver))
    if found.status is Status.INFEASIBLE:
        return None
    best = found.best or _single(task, scene, request.payload_bytes)
    return _searched(request, scene, best, found)


def _single(task: Task, scene: Scene, payload_bytes: int) -> Priced:
    """The single collective over the whole group as a checked program."""
    whole = Grouping(0, task.hierarchy.depth)
    instruction = task.hierarchy.instruction(DIRECT[task.kind], whole)
    if not task.allows(instruction):
        raise OutOfTimeError
    return price(task, Program((instruction,)), scene, payload_bytes)


def _searched(request: Request, scene: Scene, best: Priced, found: Found) -> RequestAnswer:
    """The answer with what the search proved of it."""
    timed = Pipelined(best.chunks, best.seconds, best.steps)
    answer = program_answer(request, scene, best.program, best.checked, timed)
    return replace(answer, status=found.status, bound_s=max(found.bound_s, answer.bound_s))
