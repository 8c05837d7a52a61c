"""The best strategy as a plan: with programs for its requests where these are faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Topology
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import FixedEntry, Matrix, ParallelismAxis, Placement
from p2smt.parallelism.request import DEFAULT_LENGTH, Problem, Request
from p2smt.plans.check.plan import Note, PlanReport, check_plan
from p2smt.plans.file import plan_data
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.solution import Alternative, RequestAnswer, Solution, objective
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.result import SearchLimits, SolveStats, Status
from p2smt.search.one_request import single_answer
from p2smt.search.solve import as_named, solve
from p2smt.solvers.ask import Solver
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import predict_with
from p2smt.training.pipeline import axis_requests
from p2smt.training.plan_block import efficiency_in, misstated, run_of, training_data
from p2smt.training.prediction import AxisRequest, Prediction, RunEstimate
from p2smt.training.strategy import AXES, Strategy
from p2smt.training.validity import violations


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
    framework = found.efficiency.framework
    asked = axis_requests(run.model, run.batch, strategy, framework, found.efficiency)
    if placement is None or run.model.experts is not None:
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


# Solutions of a problem on one matrix whose answers are known: no search is needed for them.


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
    alike = request.kind == other.kind and request.payload_bytes == other.payload_bytes
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


# The plan file of a training as plain data.


def training_plan_data(found: TrainingPlan) -> dict[str, Any]:
    """The plan file: that of the requests' programs, and the ``training`` block.

    Raises:
        InputError: on one device nothing is sent, so there is no plan.
    """
    solution = found.solution
    if solution is None or solution.best is None:
        rule = "has no plan file: a plan has requests, and here no device sends anything"
        raise InputError(f"a training on {found.estimate.topology.name}", rule, "take more devices")
    return plan_data(solution, solution.best) | {"training": training_data(found.estimate)}


# The requests of a strategy on its placement, as a problem whose matrix is fixed.


def plan_axes(strategy: Strategy) -> tuple[ParallelismAxis, ...]:
    """The axes of several devices, in Megatron's order; of one device, dp alone."""
    sizes = zip(AXES, strategy.sizes, strict=True)
    found = tuple(ParallelismAxis(name, size) for name, size in sizes if size > 1)
    return found or (ParallelismAxis("dp", 1),)


def plan_request(strategy: Strategy, asked: AxisRequest) -> Request | None:
    """A request along those of its axes that have several devices; None: there is none."""
    several = [axis.name for axis in plan_axes(strategy) if axis.size > 1]
    axes = tuple(name for name in several if name in asked.axes)
    if not axes:
        return None
    return Request(asked.kind, axes, asked.payload_bytes, asked.calls)


def plan_requests(strategy: Strategy, asked: Sequence[AxisRequest]) -> tuple[Request, ...]:
    """The requests that devices send anything for, in their order."""
    found = (plan_request(strategy, one) for one in asked)
    return tuple(request for request in found if request is not None)


def named_seconds(
    strategy: Strategy, asked: Sequence[AxisRequest], seconds: Sequence[float]
) -> dict[str, float]:
    """Seconds of one call of each request by its name, given those of the plan's requests."""
    left = iter(seconds)
    return {one.name: 0.0 if plan_request(strategy, one) is None else next(left) for one in asked}


def plan_matrix(strategy: Strategy, matrix: Matrix) -> Matrix:
    """The rows of the plan's axes."""
    axes = plan_axes(strategy)
    return tuple(
        row for name, row in zip(AXES, matrix, strict=True) if name in [axis.name for axis in axes]
    )


def fixed_problem(
    topology: Topology,
    strategy: Strategy,
    matrix: Matrix,
    asked: Sequence[AxisRequest],
    max_length: int = DEFAULT_LENGTH,
) -> Problem | None:
    """Find programs for the requests on this matrix; None: nothing is sent.

    Every entry is fixed, so a plan that answers it cannot lie elsewhere.
    """
    requests = plan_requests(strategy, asked)
    if not requests:
        return None
    rules = tuple(
        FixedEntry(axis, level, entry)
        for axis, row in enumerate(plan_matrix(strategy, matrix))
        for level, entry in enumerate(row)
    )
    return Problem(topology, plan_axes(strategy), requests, max_length=max_length, rules=rules)


# Checks a plan and its ``training`` block: strategy, requests, and every number predicted.


KIND = "training"
"""The kind of notes on the block, and what it is called among what was checked."""


def check_training_plan(plan: AnyPlan, source: str) -> PlanReport:
    """Check a plan as :func:`~p2smt.plans.check.plan.check_plan` does, and its block if it has one.

    The prediction is computed anew from the times that the cost model gives the plan's programs.

    Raises:
        InputError: sizes that do not fit, unknown axes or levels, programs that do not parse, or
            sizes that make no model or strategy.
    """
    report = check_plan(plan, source)
    if not isinstance(plan, PlanModel) or plan.training is None:
        return report
    problem, _ = plan_problem(plan, source)
    found = _notes(plan, plan.training, problem.topology, problem.requests, report, source)
    notes = tuple(Note(KIND, text) for text in found)
    return replace(report, notes=report.notes + notes, besides=(KIND,))


def _notes(
    plan: PlanModel,
    block: TrainingBlock,
    topology: Topology,
    requests: Sequence[Request],
    report: PlanReport,
    source: str,
) -> Iterator[str]:
    run, constants = run_of(block, source), efficiency_in(block, source)
    if topology.device is None:
        yield "the topology does not say what its devices can do, so nothing can be predicted"
        return
    broken = violations(run.model, run.batch, run.strategy, topology.devices)
    yield from (str(one.error()) for one in broken)
    if broken:
        return
    yield from _wrong_requests(plan, run, constants, requests)
    if report.violations:
        return
    prediction = _again(run, topology.device, constants, report.seconds)
    if prediction is None:
        return
    yield from misstated(block.prediction, prediction)
    if prediction.memory.total > block.memory_bytes:
        yield f"it needs {prediction.memory.total} bytes a device of {block.memory_bytes}"


def _wrong_requests(
    plan: PlanModel, run: TrainingRun, constants: Efficiency, requests: Sequence[Request]
) -> Iterator[str]:
    """Whether axes and requests of the plan are those of the strategy."""
    axes = [(axis.name, axis.size) for axis in plan.axes]
    wanted = [(axis.name, axis.size) for axis in plan_axes(run.strategy)]
    if axes != wanted:
        yield f"axes are {_sizes(axes)}, and those of the strategy {_sizes(wanted)}"
        return
    asked = axis_requests(run.model, run.batch, run.strategy, constants.framework)
    expected = plan_requests(run.strategy, asked)
    if len(requests) != len(expected):
        yield f"there are {len(requests)} requests, and the strategy has {len(expected)}"
        return
    for number, (said, found) in enumerate(zip(requests, expected, strict=True), start=1):
        if said != found:
            yield f"request {number} is {said}, and that of the strategy {found}"


def _again(
    run: TrainingRun, device: Device, constants: Efficiency, seconds: Sequence[float]
) -> Prediction | None:
    """The prediction with the plan's programs; None: its requests are not the strategy's."""
    asked = axis_requests(run.model, run.batch, run.strategy, constants.framework)
    if len(plan_requests(run.strategy, asked)) != len(seconds):
        return None
    return predict_with(run, device, constants, named_seconds(run.strategy, asked, seconds))


def _sizes(axes: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"{name}={size}" for name, size in axes)
