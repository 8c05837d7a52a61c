"""What a request takes on a scene, with a program or as one fixed step; and all on a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.collectives.names import DIRECT
from p2smt.cost.bounds import priced_bound_s
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.requested_algorithms import NamedStep
from p2smt.cost.scene import Scene, step_payloads
from p2smt.cost.step_time import Pipelined, StepTime
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Alternative, RequestAnswer, objective
from p2smt.programs.check import Checked
from p2smt.programs.program import Program
from p2smt.result import Status


def physical_bound_s(scene: Scene, request: Request) -> float:
    """Least time of one execution that the links of the scene allow."""
    return link_bound_s(scene.topology, scene.digits, request.kind, request.payload_bytes)


def least_s(scene: Scene, request: Request) -> float:
    """Least time of one execution that any program can have, as the model prices it."""
    return priced_bound_s(scene.topology, scene.digits, request.kind, request.payload_bytes)


def program_answer(
    request: Request, scene: Scene, program: Program, checked: Checked, timed: Pipelined
) -> RequestAnswer:
    """A valid program as the answer; FEASIBLE, with the bound of any: nothing was searched.

    Raises:
        EncodingBug: it takes less time than its physical bound.
    """
    trace, rows = checked.trace, scene.hierarchy.size
    physical = physical_bound_s(scene, request)
    if physical > timed.seconds * (1 + 1e-9):
        text = f"a program takes {timed.seconds} s, less than its physical bound {physical} s"
        raise EncodingBug(text, str(scene), str(program))
    return RequestAnswer(
        request,
        scene.hierarchy,
        program,
        Status.FEASIBLE,
        timed.seconds,
        min(least_s(scene, request), timed.seconds),
        scene.fixed_time(request.kind, request.payload_bytes).seconds,
        physical,
        timed.steps,
        step_payloads(trace.payload_rows, rows, request.payload_bytes, timed.chunks),
        -(-request.payload_bytes * trace.peak_rows // rows),
        trace.shards,
        checked.how,
        timed.chunks,
    )


def fixed_answer(request: Request, scene: Scene) -> RequestAnswer:
    """A request with one fixed step, or none at all in a group of one device."""
    hierarchy = scene.hierarchy
    moved = hierarchy.size > 1
    step = scene.fixed_time(request.kind, request.payload_bytes)
    twice = 2 if moved else 1  # what is sent and what is received
    physical = physical_bound_s(scene, request)
    return RequestAnswer(
        request,
        hierarchy,
        None,
        Status.OPTIMAL,
        step.seconds,
        step.seconds,
        step.seconds,
        min(physical, step.seconds),
        (step,) if moved else (),
        (float(request.payload_bytes),) if moved else (),
        twice * request.payload_bytes,
        None,
        "one fixed step" if moved else "nothing to do",
    )


def named_steps(answer: RequestAnswer) -> tuple[NamedStep, ...]:
    """The collectives of an answer and what runs them; none of a send or an all-to-all."""
    request, whole = answer.request, DIRECT.get(answer.request.kind)
    if answer.program is not None:
        return steps_named(request, answer.program, answer.steps)
    if whole is None:
        return ()
    return tuple(NamedStep(request.name, whole, step.algorithm) for step in answer.steps)


def steps_named(
    request: Request, program: Program, steps: Sequence[StepTime]
) -> tuple[NamedStep, ...]:
    """The collectives of a request's program and what runs each of its steps."""
    pairs = zip(program.instructions, steps, strict=True)
    return tuple(
        NamedStep(f"{i} ({request.name})", i.collective, step.algorithm) for i, step in pairs
    )


def matrix_alternative(
    problem: Problem, matrix: Matrix, answers: tuple[RequestAnswer, ...]
) -> Alternative:
    """A matrix with an answer to each request."""
    proved = all(answer.status is Status.OPTIMAL for answer in answers)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(matrix, answers, total_s, Status.OPTIMAL if proved else Status.FEASIBLE)
