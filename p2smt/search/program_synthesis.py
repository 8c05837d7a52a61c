"""Synthesis of programs: ask an encoding, decode, check by the semantics, cost again.

A :class:`Task` is one synthesis.  ``best_program`` finds its best program, ``request_programs``
lists all programs of a request on a placement, or the best few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import Form, ProgramOperation, RequestKind
from p2smt.cost.accuracy import PriceRange
from p2smt.cost.requested_algorithms import running
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime, program_s
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.ranges import range_of_program
from p2smt.problems.placement import Indices, InstructionSet, ProgramProblem, StepLimit
from p2smt.programs.check import Checked, checked_once, list_checker
from p2smt.programs.program import (
    ON_REAL_SIZES,
    Grouping,
    Hierarchy,
    Instruction,
    Program,
    ProofBasis,
    proof_basis,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.warm_start import bounded
from p2smt.solvers.ask import Best, CostKeys, Every, Optimum, Solver, ask, solver_of

_RESOLUTION = 2**44


@dataclass(frozen=True, slots=True)
class Task:
    """One program synthesis: a request kind over a hierarchy, with restrictions.

    ``step_limits``: (level name, at most so many steps whose groups cross that level).
    """

    kind: RequestKind
    hierarchy: Hierarchy
    max_length: int
    forbidden_forms: frozenset[Form] = frozenset()
    step_limits: tuple[tuple[str, int], ...] = ()
    solver: Solver = Solver.CPSAT

    def problem(self) -> ProgramProblem:
        """The encodings' input, without costs."""
        instructions = self._instructions
        restricted = [(n, item) for n, item in enumerate(instructions.items) if self._bound(item)]
        forbidden = {n for n, (c, g) in restricted if self._form(c, g) in self.forbidden_forms}
        limits = [
            StepLimit(frozenset(n for n, (_, g) in restricted if self._crosses(g, level)), count)
            for level, count in self.step_limits
        ]
        return ProgramProblem(
            demand_of(self.kind),
            self.hierarchy.factors,
            self.max_length,
            instructions,
            frozenset(forbidden),
            tuple(limits),
        )

    @property
    def _instructions(self) -> InstructionSet:
        depth = self.hierarchy.depth
        if self.kind.has_exchanges:
            return InstructionSet.of_exchanges(depth)
        return InstructionSet.of(depth)

    def _bound(self, item: tuple[ProgramOperation, Grouping]) -> bool:
        """Whether restrictions are of this instruction: of all but the single all-to-all, which is
        no program of several steps."""
        return not self.kind.has_exchanges or item[1] != Grouping(0, self.hierarchy.depth)

    @property
    def basis(self) -> ProofBasis:
        """What it rests on that no program is missed."""
        if self.kind.has_exchanges and self.solver not in ON_REAL_SIZES:
            return ProofBasis.SMALL_MODEL
        return proof_basis(self.hierarchy.depth, self.max_length, self.solver)

    def allows(self, instruction: Instruction) -> bool:
        """Whether the restrictions let a program use an instruction at least once."""
        problem, grouping = self.problem(), self.hierarchy.grouping(instruction)
        index = problem.instructions.items.index((instruction.collective, grouping))
        used = [limit for limit in problem.limits if index in limit.instructions]
        return index not in problem.forbidden and all(limit.at_most > 0 for limit in used)

    def _form(self, collective: ProgramOperation, grouping: Grouping) -> Form:
        return self.hierarchy.instruction(collective, grouping).form

    def _crosses(self, grouping: Grouping, level: str) -> bool:
        """Whether groups of this grouping span several entities of the level."""
        depth = self.hierarchy.depth_of(level)
        return grouping.outer < depth

    def items_on(self, scene: Scene) -> tuple[tuple[ProgramOperation, Grouping], ...]:
        """The instructions in tie-breaking order, with their groupings on a scene.

        The task's hierarchy is the scene's, or that one with some of its levels merged.
        """
        items, whole = self._instructions.items, scene.hierarchy
        if whole.factors == self.hierarchy.factors:
            return items
        return tuple((c, whole.grouping(self.hierarchy.instruction(c, g))) for c, g in items)

    def program(self, problem: ProgramProblem, indices: Indices) -> Program:
        """The program with these instruction indices, in printed form."""
        items = problem.instructions.items
        return Program(tuple(self.hierarchy.instruction(*items[i]) for i in indices))


@dataclass(frozen=True, slots=True)
class Priced:
    """A checked program with its recomputed time (no steps and 0 s where there is no cost).

    ``steps`` are those of one of ``chunks`` chunks.
    """

    program: Program
    seconds: float
    steps: tuple[StepTime, ...]
    checked: Checked
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of a search for the best program: ``bound_s`` is the solver's proved bound."""

    status: Status
    best: Priced | None
    bound_s: float
    stats: SolveStats


def list_programs(task: Task, limits: SearchLimits) -> tuple[Result[tuple[Program, ...]], str]:
    """Every valid program up to the length once, checked; and what it was checked on."""
    problem = task.problem()
    result, how = checked_listing(task, problem, task.hierarchy, limits)
    programs = _decoded(problem, task.hierarchy, result.value or ())
    return Result(result.status, programs, stats=result.stats), how


def checked_listing(
    task: Task, problem: ProgramProblem, hierarchy: Hierarchy, limits: SearchLimits
) -> tuple[Result[tuple[Indices, ...]], str]:
    """Every program of a problem by instruction indices, checked on a hierarchy of its depth.

    Raises:
        EncodingBug: a program is not valid there, or was listed twice.
        TooLarge: all of them cannot be checked on the real factors, and on no others.
    """
    checker = list_checker(problem.demand, hierarchy, problem.max_length)
    result = ask(problem, Every(), task.solver, limits)
    programs = _decoded(problem, hierarchy, result.value or ())
    for program in programs:
        if broken := checker.violation(program):
            raise EncodingBug(broken.message, task, str(program))
    if len(set(programs)) != len(programs):
        raise EncodingBug("a program was listed twice", task, list(map(str, programs)))
    how = "devices" if checker.exact else "quotient " + "x".join(map(str, checker.factors))
    return result, how


def _decoded(
    problem: ProgramProblem, hierarchy: Hierarchy, listed: Sequence[Indices]
) -> tuple[Program, ...]:
    """The programs with these instruction indices; each instruction is named once."""
    named = [hierarchy.instruction(*item) for item in problem.instructions.items]
    return tuple(Program(tuple(named[i] for i in indices)) for indices in listed)


def price(
    task: Task, program: Program, scene: Scene | None, payload_bytes: int, chunks: int = 1
) -> Priced:
    """Check a program by the semantics and recompute its time (0 without a scene).

    Raises:
        EncodingBug: the program breaks a rule of the semantics.
    """
    checked = checked_once(demand_of(task.kind), task.hierarchy, program)
    if checked.trace.violation is not None:
        raise EncodingBug(checked.trace.violation.message, task, str(program))
    if scene is None:
        return Priced(program, 0.0, (), checked)
    steps = scene.program_times(program, checked.trace.payload_rows, payload_bytes, chunks)
    return Priced(program, program_s(steps, chunks), steps, checked, chunks)


@dataclass(frozen=True, slots=True)
class _Costs:
    """Integer costs of a problem: one tick is ``tick_s`` seconds, costs are rounded down."""

    table: Mapping[tuple[int, int], int]
    tick_s: float


def _costs(
    task: Task,
    problem: ProgramProblem,
    scene: Scene,
    payload_bytes: int,
    limits: SearchLimits,
) -> _Costs | None:
    """The cost table; None if the time ran out before it was known what it must cover."""
    keys = ask(problem, CostKeys(), task.solver, limits).value
    if keys is None:
        return None
    items, rows = task.items_on(scene), problem.rows
    seconds = {
        (i, count): scene.step_time(*items[i], payload_bytes * count / rows).seconds
        for i, count in keys
    }
    tick = max(seconds.values(), default=0.0) / _RESOLUTION or 1.0
    return _Costs({key: int(value / tick) for key, value in seconds.items()}, tick)


def _with_costs(problem: ProgramProblem, costs: _Costs) -> ProgramProblem:
    """Each step loses less than a tick by rounding, so ``max_length`` ticks are a tie."""
    return replace(problem, costs=costs.table, slack=problem.max_length)


def best_program(
    task: Task, scene: Scene | None, payload_bytes: int, limits: SearchLimits
) -> Found:
    """The program of least time (without a scene: the shortest), checked and re-costed."""
    problem = task.problem()
    tick, watch = 1.0, StopWatch.start(limits)
    if scene is not None:
        costs = _costs(task, problem, scene, payload_bytes, limits)
        if costs is None:
            return Found(Status.UNKNOWN, None, 0.0, SolveStats(task.solver, watch.elapsed_s()))
        problem, tick = _with_costs(problem, costs), costs.tick_s
    result = ask(bounded(problem), Optimum(), task.solver, watch.left())
    bound = (result.bound or 0) * tick
    if result.value is None:
        return Found(result.status, None, bound, result.stats)
    best = price(task, task.program(problem, result.value), scene, payload_bytes)
    if scene is not None:
        _same_cost(task, best, dict(result.stats.counters)["objective"] * tick, tick)
    return Found(result.status, best, min(bound, best.seconds), result.stats)


def _same_cost(task: Task, best: Priced, claimed_s: float, tick_s: float) -> None:
    """Raise EncodingBug unless the solver's objective is the recomputed time."""
    slack = 2 * (task.max_length + 1) * tick_s + 1e-9 * best.seconds
    if abs(claimed_s - best.seconds) > slack:
        text = f"the solver claims {claimed_s} s, the cost model says {best.seconds} s"
        raise EncodingBug(text, task, str(best.program))


def best_few(
    task: Task, scene: Scene | None, payload_bytes: int, limits: SearchLimits, k: int
) -> tuple[Status, tuple[Priced, ...], SolveStats]:
    """The k programs of least time in order, checked and re-costed."""
    problem, watch = task.problem(), StopWatch.start(limits)
    if scene is not None:
        costs = _costs(task, problem, scene, payload_bytes, limits)
        if costs is None:
            return Status.TRUNCATED, (), SolveStats(task.solver, watch.elapsed_s())
        problem = _with_costs(problem, costs)
    result = ask(problem, Best(k), task.solver, watch.left())
    priced = tuple(
        price(task, task.program(problem, indices), scene, payload_bytes)
        for indices in result.value or ()
    )
    return result.status, priced, result.stats


@dataclass(frozen=True, slots=True)
class ListedProgram:
    """A valid program: ``seconds`` per execution, its range and its ``steps`` where it was priced,
    ``checked`` what it was simulated on."""

    program: Program
    seconds: float | None
    checked: str
    steps: tuple[StepTime, ...] = ()
    within: PriceRange | None = None


@dataclass(frozen=True, slots=True)
class ProgramList:
    """Programs of at most ``max_length`` instructions.

    ``status`` says whether these are all, or the best (``by_time``: of least time, else the
    shortest), ``basis`` why none is missed, ``note`` why there can be none.
    """

    status: Status
    programs: tuple[ListedProgram, ...]
    max_length: int
    checked: str
    by_time: bool = False
    note: str = ""
    basis: ProofBasis | None = None

    @property
    def count_by_length(self) -> tuple[int, ...]:
        """How many there are of length 1, 2, .. up to ``max_length``."""
        lengths = [len(listed.program) for listed in self.programs]
        return tuple(lengths.count(n) for n in range(1, self.max_length + 1))


def programs_on(
    task: Task,
    limits: SearchLimits,
    top: int | None = None,
    scene: Scene | None = None,
    payload_bytes: int = 0,
) -> ProgramList:
    """Every program of a task, or its best: with a scene by time, else by length.

    Raises:
        InputError: a group of one device, or a problem beyond a limit of the encoding.
    """
    if task.hierarchy.depth == 0:
        raise InputError("a reduction group of one device", "needs no program")
    if top is None:
        result, how = list_programs(task, limits)
        every = tuple(ListedProgram(program, None, how) for program in result.value or ())
        return ProgramList(result.status, every, task.max_length, how, basis=task.basis)
    status, found, _ = best_few(task, scene, payload_bytes, limits, top)
    best = tuple(_listed(one, scene) for one in found)
    return ProgramList(status, best, task.max_length, "", scene is not None, basis=task.basis)


def _listed(found: Priced, scene: Scene | None) -> ListedProgram:
    """A program with its time and range, where a scene prices it."""
    if scene is None:
        return ListedProgram(found.program, None, found.checked.how, found.steps)
    within = range_of_program(scene.topology, scene.hierarchy, found.program, found.steps).whole
    return ListedProgram(found.program, found.seconds, found.checked.how, found.steps, within)


def request_programs(
    problem: Problem,
    placement: Placement,
    request: Request,
    *,
    top: int | None = None,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    timed: bool = True,
) -> ProgramList:
    """The valid programs of a request on a placement, or its best.

    Args:
        problem: cluster and axes, and what restricts programs (``max_length``,
            ``forbidden_forms``, ``step_limits``, ``algorithms``).
        placement: the matrix.
        request: along axes of the problem.  A send, an all-to-all over one level, and what needs no
            program in a group of one device have none: ``note`` says so.
        top: only so many, those of least time; None: all.
        limits: the wall-clock limit, and how many to list.
        solver: ``cpsat`` or ``z3``.
        timed: False: its size does not count, and the best are the shortest.

    Raises:
        InputError: sizes that do not fit, or a problem beyond a limit of the encoding.
    """
    placement.check(problem.topology.sizes, problem.axis_sizes)
    scene = scene_of(problem, placement, request)
    several = request.kind.has_exchanges and scene.hierarchy.depth > 1
    if not (request.kind.has_programs or several):
        return _none(problem, "one fixed step")
    if scene.hierarchy.size == 1:
        return _none(problem, "nothing to do in a group of one device")
    task = program_task(problem, request, scene.hierarchy, solver_of(solver))
    priced = scene if timed else None
    return programs_on(task, limits or SearchLimits(), top, priced, request.payload_bytes)


def programs_of_each(
    problem: Problem,
    placement: Placement,
    *,
    timed: Sequence[bool],
    top: int | None = None,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
) -> list[ProgramList]:
    """:func:`request_programs` of every request (each with its ``timed``), in one time limit."""
    watch = StopWatch.start(limits or SearchLimits())
    return [
        request_programs(
            problem,
            placement,
            request,
            top=top,
            limits=watch.left(),
            solver=solver,
            timed=sized,
        )
        for request, sized in zip(problem.requests, timed, strict=True)
    ]


def scene_of(problem: Problem, placement: Placement, request: Request) -> Scene:
    """Where a request runs, by the algorithms that the problem allows."""
    topology = running(problem.topology, problem.algorithms)
    return Scene.of(topology, placement, problem.axis_indices(request))


def program_task(problem: Problem, request: Request, hierarchy: Hierarchy, solver: Solver) -> Task:
    """The synthesis for a request under the problem's restrictions."""
    forms, steps = problem.forbidden_forms, problem.step_limits
    return Task(plain_kind(request.kind), hierarchy, problem.max_length, forms, steps, solver)


def _none(problem: Problem, why: str) -> ProgramList:
    return ProgramList(Status.COMPLETE, (), problem.max_length, why, note=why)
