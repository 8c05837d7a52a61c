"""The best strategy as a plan: with programs for its requests where these are faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import PriceRange, summed
from p2smt.cost.scene import Scene
from p2smt.display import Displayed, told
from p2smt.errors import InputError
from p2smt.parallelism.folded import with_copies
from p2smt.parallelism.placement import FixedEntry, Matrix, ParallelismAxis, Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import DEFAULT_LENGTH, Problem, Request
from p2smt.plans.check.check_plan import Note, PlanReport, check_plan
from p2smt.plans.file import plan_data, range_data
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.ranges import range_of
from p2smt.plans.sides import joined, several, sides_of_block
from p2smt.plans.solution import (
    Allocation,
    Alternative,
    RequestAnswer,
    Solution,
    objective,
    rank_alternative,
)
from p2smt.plans.training.file_model import ATTENTION, EXPERTS, PlacementBlock, TrainingBlock
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.one_request import single_answer
from p2smt.search.solve import as_named, solve
from p2smt.solvers.ask import Solver
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import predict_with, sent, trained_seconds
from p2smt.training.on_hosts import HostRanks
from p2smt.training.pipeline import axis_requests, call_seconds, is_of_experts
from p2smt.training.plan_block import efficiency_in, misstated, run_of, training_data
from p2smt.training.prediction import AxisRequest, Prediction, RunEstimate
from p2smt.training.strategy import Strategy, strategy_text
from p2smt.training.validity import violations


@dataclass(frozen=True, slots=True, repr=False)
class TrainingPlan(Displayed):
    """A strategy on its matrix with programs.

    ``estimate``: with the programs; ``collectives_s``: an iteration with a single collective for
    each request.  ``solution`` answers the requests on the fixed matrix, ``experts`` those of a
    mixture along axes of experts; None: nothing is sent.  ``max_length``: the longest programs that
    were to be looked at.
    """

    estimate: RunEstimate
    collectives_s: float
    solution: Solution | None
    max_length: int = DEFAULT_LENGTH
    experts: Solution | None = None

    def summary(self) -> str:
        """Model, devices, strategy and time."""
        run = self.estimate.run
        size = f"{run.model.name!r} on {run.strategy.devices} devices"
        return f"{size}: {told(strategy_text(run.strategy), self.estimate.iteration_s)}"

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """Those of the matrices along which anything is sent, attention's first."""
        return tuple(one for one in (self.solution, self.experts) if one is not None)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the search for programs."""
        return any(one.interrupted for one in self.solutions)

    @property
    def answers(self) -> tuple[RequestAnswer, ...]:
        """The requests that anything is sent for, with their programs."""
        return tuple(
            answer
            for one in self.solutions
            for answer in (() if one.best is None else one.best.requests)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Which programs are not proved the best, in words; nothing where all are."""
        if self.estimate.on_hosts is not None:
            return ("on named hosts a single collective answers each request of a training",)
        if any(one.problem.max_length < self.max_length for one in self.solutions):
            return ("no program was found in time: a single collective answers each request",)
        names = [one.request.name for one in self.answers if one.status is not Status.OPTIMAL]
        if not names:
            return ()
        many = f"{len(names)} of {len(self.answers)} programs"
        return (f"{many} of the plan are not proved the best: {', '.join(names)}",)

    def within(self, limits: SearchLimits) -> TrainingPlan:
        """The plan as found within these limits, of which its programs had the rest."""
        found = (one and replace(one, limits=limits) for one in (self.solution, self.experts))
        solution, experts = found
        return replace(self, solution=solution, experts=experts)


def training_plan(
    found: RunEstimate,
    limits: SearchLimits | None = None,
    max_length: int = DEFAULT_LENGTH,
    *,
    known: Sequence[RequestAnswer] = (),
    search: bool = True,
) -> TrainingPlan:
    """The plan of a run whose placement is a matrix, with the best programs for its requests.

    These are what the stage asks for that asks most; those along axes of experts have programs on
    the matrix of experts.  ``known``: answers found on this matrix
    before; only where they are not those of all requests, programs are sought, and only with
    ``search``.  At a limit some programs may not be proved the best; where none is known, single
    collectives answer the requests.
    """
    if found.on_hosts is not None:
        return _on_hosts(found, found.on_hosts, limits or SearchLimits())
    run, asked = found.run, sent_requests(found.run, found.efficiency)
    watch = StopWatch.start(limits or SearchLimits())
    solutions: list[Solution | None] = []  # of attention, and of experts
    for side, placement in ((ATTENTION, found.placement), (EXPERTS, found.experts)):
        requests = plan_requests(run.strategy, asked, side)
        if requests and placement is None:
            return TrainingPlan(found, found.iteration_s, None)
        if not requests or placement is None:
            solutions.append(None)
            continue
        matrix = plan_matrix(run.strategy, placement.matrix, side)
        problem = fixed_problem(found.topology, run.strategy, matrix, requests, side, max_length)
        solutions.append(_solved(problem, matrix, watch.left(), known, search=search))
    made = TrainingPlan(found, found.iteration_s, solutions[0], max_length, solutions[1])
    if not made.solutions:
        return made
    device, constants = found.topology.known_device, found.efficiency
    timed, single = (
        predict_with(run, device, constants, named_seconds(run, constants, asked, seconds))
        for seconds in (
            [one.seconds for one in made.answers],
            [one.single_s for one in made.answers],
        )
    )
    estimate = replace(found, prediction=timed)
    return replace(made, estimate=estimate, collectives_s=single.time.iteration_s)


def _on_hosts(found: RunEstimate, where: HostRanks, limits: SearchLimits) -> TrainingPlan:
    """The plan of ranks on named hosts: a single collective answers each request."""
    strategy = found.run.strategy
    sides = {ATTENTION: where.ranks, EXPERTS: where.of_experts(strategy)}
    attention, experts = (_listed(found, where, *side, limits) for side in sides.items())
    return TrainingPlan(found, found.iteration_s, attention, max_length=1, experts=experts)


def _listed(
    found: RunEstimate, where: HostRanks, side: str, ranks: RankList, limits: SearchLimits
) -> Solution | None:
    """The requests along the axes of one side on its ranks; None: nothing is sent."""
    strategy = found.run.strategy
    requests = plan_requests(strategy, sent_requests(found.run, found.efficiency), side)
    if not requests:
        return None
    problem = as_named(Problem(found.topology, plan_axes(strategy, side), requests, max_length=1))
    best = rank_alternative(problem, RankList(ranks.ranks, problem.axis_sizes))
    return Solution(
        problem,
        Status.FEASIBLE,
        (best,),
        0.0,
        0.0,
        Status.TRUNCATED,
        SolveStats(Solver.CPSAT, 0.0, 0),
        limits=limits,
        allocation=Allocation(where.cluster, where.listed, where.idle, where.inside or ()),
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
        InputError: there is no plan, as on one device nothing is sent, or no matrix expresses where
            ranks lie.
    """
    made = [plan_data(one, one.best) for one in found.solutions if one.best is not None]
    if not made:
        raise _no_plan(found.estimate)
    data = made[0]
    if found.estimate.run.model.experts is not None:
        theirs = made[1] if made[1:] else None
        data = joined(data, theirs) | range_data(_range(found.solutions), "range_basis")
    return data | {"training": training_data(found.estimate)}


def _no_plan(found: RunEstimate) -> InputError:
    given = f"a training on {found.topology.name}"
    if found.run.strategy.devices > 1:
        rule = "has no plan file: no matrix expresses the order of its ranks"
        return InputError(given, rule, "give --placement, and of a mixture --expert-placement")
    rule = "has no plan file: a plan has requests, and here no device sends anything"
    return InputError(given, rule, "take more devices")


def _range(solutions: Sequence[Solution]) -> PriceRange | None:
    """The range of what all requests take together."""
    ranges = (range_of(one.problem, one.best) for one in solutions if one.best is not None)
    return summed([one for one in ranges if one is not None])


# The requests of a strategy on its placement, as problems whose matrices are fixed.


def sent_requests(run: TrainingRun, efficiency: Efficiency) -> tuple[AxisRequest, ...]:
    """Every request of a run as it is sent, in the order of plans: those of attention first."""
    framework = efficiency.framework
    asked = axis_requests(run.model, run.batch, run.strategy, framework, efficiency)
    return tuple(sent(run, one) for one in sorted(asked, key=lambda one: is_of_experts(one.axes)))


def side_of(asked: AxisRequest) -> str:
    """The matrix that a request's axes are rows of."""
    return EXPERTS if is_of_experts(asked.axes) else ATTENTION


def plan_axes(strategy: Strategy, side: str = ATTENTION) -> tuple[ParallelismAxis, ...]:
    """The axes of several devices of a matrix, in Megatron's order; of one device, dp alone."""
    found = tuple(ParallelismAxis(*one) for one in _sizes_of(strategy, side) if one[1] > 1)
    return found or (ParallelismAxis("dp", 1),)


def _sizes_of(strategy: Strategy, side: str) -> list[tuple[str, int]]:
    """The rows of a matrix: names and sizes."""
    return list(strategy.rows(experts=side == EXPERTS).items())


def plan_request(strategy: Strategy, asked: AxisRequest) -> Request | None:
    """A request along those of its axes that have several devices; None: there is none."""
    several = [axis.name for axis in plan_axes(strategy, side_of(asked)) if axis.size > 1]
    axes = tuple(name for name in several if name in asked.axes)
    if not axes:
        return None
    return Request(asked.kind, axes, asked.payload_bytes, asked.calls)


def plan_requests(
    strategy: Strategy, asked: Sequence[AxisRequest], side: str
) -> tuple[Request, ...]:
    """The requests on a matrix that devices send anything for, in their order."""
    found = (plan_request(strategy, one) for one in asked if side_of(one) == side)
    return tuple(request for request in found if request is not None)


def named_seconds(
    run: TrainingRun,
    efficiency: Efficiency,
    asked: Sequence[AxisRequest],
    seconds: Sequence[float],
) -> dict[str, float]:
    """Seconds of one call of each request by its name, given those of the plan's requests."""
    left = iter(seconds)
    return {
        one.name: 0.0
        if plan_request(run.strategy, one) is None
        else trained_seconds(efficiency, one, next(left))
        for one in asked
    }


def plan_matrix(strategy: Strategy, matrix: Matrix, side: str = ATTENTION) -> Matrix:
    """The rows of the plan's axes; of a matrix whose dp is copies of shards that row is divided."""
    kept = [axis.name for axis in plan_axes(strategy, side)]
    if strategy.dp_replicate > 1:
        matrix = with_copies(Placement(matrix), strategy.dp_replicate).matrix
    rows = zip(_sizes_of(strategy, side), matrix, strict=True)
    return tuple(row for (name, _), row in rows if name in kept)


def fixed_problem(
    topology: Topology,
    strategy: Strategy,
    matrix: Matrix,
    requests: tuple[Request, ...],
    side: str = ATTENTION,
    max_length: int = DEFAULT_LENGTH,
) -> Problem:
    """Find programs for the requests on this matrix.

    Every entry is fixed, so a plan that answers it cannot lie elsewhere.
    """
    rules = tuple(
        FixedEntry(axis, level, entry)
        for axis, row in enumerate(matrix)
        for level, entry in enumerate(row)
    )
    return Problem(
        topology, plan_axes(strategy, side), requests, max_length=max_length, rules=rules
    )


# Checks a plan and its ``training`` block: strategy, requests, and every number predicted.


KIND = "training"
"""The kind of notes on the block, and what it is called among what was checked."""


def check_training_plan(plan: AnyPlan, source: str) -> PlanReport:
    """Check a plan as :mod:`p2smt.plans.check.check_plan` does, and its block if it has one.

    The prediction is computed anew from the times that the cost model gives the plan's programs.

    Raises:
        InputError: sizes that do not fit, unknown axes or levels, programs that do not parse, or
            sizes that make no model or strategy.
    """
    report = check_plan(plan, source)
    if not isinstance(plan, PlanModel) or plan.training is None:
        return report
    topology = build_topology(plan.topology, source)
    found = _notes(plan, plan.training, topology, report, source)
    notes = tuple(Note(KIND, text) for text in found)
    return replace(report, notes=report.notes + notes, besides=(KIND,))


def _notes(
    plan: PlanModel, block: TrainingBlock, topology: Topology, report: PlanReport, source: str
) -> Iterator[str]:
    run, constants = run_of(block, source), efficiency_in(block, source)
    if topology.device is None:
        yield "the topology does not say what its devices can do, so nothing can be predicted"
        return
    broken = violations(run.model, run.batch, run.strategy, topology.installed)
    yield from (str(one.error()) for one in broken)
    if broken:
        return
    if (run.model.experts is None) != (block.placement is None):
        yield "a mixture of experts, and no other model, has a placement of its experts"
        return
    yield from _wrong_axes(plan, block, run.strategy)
    yield from _wrong_requests(plan, run, constants)
    if report.violations:
        return
    listed = RankList(tuple(plan.ranks), run.strategy.sizes) if plan.matrix is None else None
    prediction = _again(run, topology, constants, report.seconds, listed)
    if prediction is None:
        return
    yield from misstated(block.prediction, prediction)
    if prediction.memory.total > block.memory_bytes:
        yield f"it needs {prediction.memory.total} bytes a device of {block.memory_bytes}"


def _wrong_axes(plan: PlanModel, block: TrainingBlock, strategy: Strategy) -> Iterator[str]:
    """Whether axes of attention and of experts have the sizes of the strategy."""
    found = [(ATTENTION, [(axis.name, axis.size) for axis in plan.axes])]
    if isinstance(block.placement, PlacementBlock):
        theirs = sides_of_block(block)[1]
        found.append((EXPERTS, several(*theirs)[0]))
    for side, axes in found:
        wanted = [(axis.name, axis.size) for axis in plan_axes(strategy, side)]
        if axes != wanted:
            whose = "axes of experts" if side == EXPERTS else "axes"
            yield f"{whose} are {_sizes(axes)}, and those of the strategy {_sizes(wanted)}"


def _wrong_requests(plan: PlanModel, run: TrainingRun, constants: Efficiency) -> Iterator[str]:
    """Whether the requests of the plan are those of the strategy, each on its matrix."""
    asked = sent_requests(run, constants)
    sides = (ATTENTION, EXPERTS)
    expected = [(on, one) for on in sides for one in plan_requests(run.strategy, asked, on)]
    if len(plan.requests) != len(expected):
        yield f"there are {len(plan.requests)} requests, and the strategy has {len(expected)}"
        return
    for number, (model, (on, found)) in enumerate(zip(plan.requests, expected, strict=True), 1):
        said = model.as_request
        if said != found:
            yield f"request {number} is {said}, and that of the strategy {found}"
        elif model.matrix not in (None, on):
            yield f"request {number} is on the matrix of {model.matrix}, and {said} on that of {on}"


def _again(
    run: TrainingRun,
    topology: Topology,
    constants: Efficiency,
    seconds: Sequence[float],
    listed: RankList | None,
) -> Prediction | None:
    """The prediction with the plan's programs; None: its requests are not the strategy's.

    Requests of plans send along a chain: what a send takes that is closed is computed for ranks
    that are ``listed``.
    """
    asked = sent_requests(run, constants)
    if sum(plan_request(run.strategy, one) is not None for one in asked) != len(seconds):
        return None
    call_s = named_seconds(run, constants, asked, seconds)
    if listed is not None:
        closed = (one for one in asked if one.closed)
        call_s |= {one.name: call_seconds(topology, run.strategy, one, listed) for one in closed}
    return predict_with(run, topology.known_device, constants, call_s)


def _sizes(axes: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"{name}={size}" for name, size in axes)
