"""The valid programs of a request, or the best of them, on a hierarchy or on a placement."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.programs.program import Program
from p2smt.result import SearchLimits, Status
from p2smt.search.programs import Task, best_few, list_programs
from p2smt.solvers.solver import Solver, solver_of


@dataclass(frozen=True, slots=True)
class ListedProgram:
    """A valid program: ``seconds`` per execution where it was priced, ``checked`` what it was
    simulated on."""

    program: Program
    seconds: float | None
    checked: str


@dataclass(frozen=True, slots=True)
class ProgramList:
    """Programs of at most ``max_length`` instructions.

    ``status`` says whether these are all, or the best (``by_time``: of least time, else the
    shortest), ``note`` why there can be none.
    """

    status: Status
    programs: tuple[ListedProgram, ...]
    max_length: int
    checked: str
    by_time: bool = False
    note: str = ""

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
        return ProgramList(result.status, every, task.max_length, how)
    status, found, _ = best_few(task, scene, payload_bytes, limits, top)
    timed = scene is not None
    best = tuple(
        ListedProgram(one.program, one.seconds if timed else None, one.checked.how) for one in found
    )
    return ProgramList(status, best, task.max_length, "", timed)


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
        request: along axes of the problem.  An all-to-all, a send, and what needs no program in a
            group of one device have none: ``note`` says so.
        top: only so many, those of least time; None: all.
        limits: the wall-clock limit, and how many to list.
        solver: ``cpsat`` or ``z3``.
        timed: False: its size does not count, and the best are the shortest.

    Raises:
        InputError: sizes that do not fit, or a problem beyond a limit of the encoding.
    """
    placement.check(problem.topology.sizes, problem.axis_sizes)
    topology = problem.topology
    if problem.algorithms is not None:
        topology = topology.running(problem.algorithms)
    scene = Scene.of(topology, placement, problem.axis_indices(request))
    if not request.kind.has_programs:
        return _none(problem, "one fixed step")
    if scene.hierarchy.size == 1:
        return _none(problem, "nothing to do in a group of one device")
    task = Task(
        request.kind,
        scene.hierarchy,
        problem.max_length,
        problem.forbidden_forms,
        problem.step_limits,
        solver_of(solver),
    )
    priced = scene if timed else None
    return programs_on(task, limits or SearchLimits(), top, priced, request.payload_bytes)


def _none(problem: Problem, why: str) -> ProgramList:
    return ProgramList(Status.COMPLETE, (), problem.max_length, why, note=why)
