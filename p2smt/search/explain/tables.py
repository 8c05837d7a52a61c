"""The programs of a request on a scene as arrays of step numbers; steps that are alike are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, Request
from p2smt.problems.program import Indices
from p2smt.programs.payload_rows import RowCounts
from p2smt.programs.program import Grouping, Program
from p2smt.result import Status, StopWatch
from p2smt.search.programs import Task
from p2smt.search.programs_pipelined import Listings
from p2smt.search.weaker.sufficient_first import known_programs
from p2smt.solvers.solver import Solver

TABLED_DEPTH = 3
"""Over more levels the programs are too many; then those known beforehand are looked at."""


@dataclass(frozen=True, slots=True)
class StepKey:
    """An operation on groups with a share of the payload: what a step costs depends on it."""

    operation: Operation
    grouping: Grouping
    share: Fraction


@dataclass(frozen=True, slots=True)
class ProgramTable:
    """Programs of the request of that number on a scene: a row of ``steps`` each.

    Entries are numbers of ``keys``; one more than these stands for no step.  ``programs`` is empty
    where there is one fixed step, or none.  ``whole``: these are all programs that there are.
    """

    number: int
    scene: Scene
    keys: tuple[StepKey, ...]
    steps: IntArray
    programs: tuple[Program, ...]
    whole: bool

    def times(self, step_s: FloatArray) -> FloatArray:
        """Of each program, at each point: shape (programs, points), of steps (keys, points)."""
        padded = np.vstack([step_s, np.zeros((1, step_s.shape[1]))])
        total = np.zeros((len(self.steps), step_s.shape[1]))
        for column in self.steps.T:
            total += padded[column]
        return total


def program_table(
    problem: Problem,
    number: int,
    scene: Scene,
    listings: Listings | None,
    watch: StopWatch,
    also: Sequence[Program] = (),
) -> ProgramTable:
    """The programs of a request on a scene, or its fixed step.

    ``listings`` None: those known beforehand, and ``also`` these.
    """
    request = problem.requests[number]
    if scene.hierarchy.size == 1:
        return ProgramTable(number, scene, (), np.zeros((1, 0), dtype=np.int64), (), True)
    if not request.kind.has_programs:
        return _fixed(number, request, scene)
    task = _task(problem, request, scene)
    listed, whole = _listed(task, listings, watch)
    listed = tuple(dict.fromkeys((*listed, *(_indices(task, program) for program in also))))
    items = task.problem().instructions.items
    rows = RowCounts(task.problem().demand, scene.hierarchy.factors, items)
    numbers: dict[StepKey, int] = {}
    kept, steps = [], []
    for indices in listed:
        counts = rows.payloads(indices)
        if counts is None:
            continue
        shares = [Fraction(n, scene.hierarchy.size) for n in counts]
        keys = [StepKey(*items[i], share) for i, share in zip(indices, shares, strict=True)]
        steps.append([numbers.setdefault(key, len(numbers)) for key in keys])
        kept.append(task.program(task.problem(), indices))
    return ProgramTable(
        number, scene, tuple(numbers), _padded(steps, len(numbers)), tuple(kept), whole
    )


def _fixed(number: int, request: Request, scene: Scene) -> ProgramTable:
    whole = Grouping(0, scene.hierarchy.depth)
    operation: Operation = (
        RequestKind.SEND
        if request.kind is RequestKind.SEND
        else DIRECT.get(request.kind, RequestKind.ALL_TO_ALL)
    )
    key = StepKey(operation, whole, Fraction(1))
    return ProgramTable(number, scene, (key,), np.zeros((1, 1), dtype=np.int64), (), True)


def _task(problem: Problem, request: Request, scene: Scene) -> Task:
    forms, limits = problem.forbidden_forms, problem.step_limits
    return Task(request.kind, scene.hierarchy, problem.max_length, forms, limits, Solver.CPSAT)


def _indices(task: Task, program: Program) -> Indices:
    items = task.problem().instructions.items
    steps = ((one.collective, task.hierarchy.grouping(one)) for one in program.instructions)
    return tuple(items.index(step) for step in steps)


def _listed(
    task: Task, listings: Listings | None, watch: StopWatch
) -> tuple[Sequence[Indices], bool]:
    """All programs, if they are wanted and not too many; else those known beforehand."""
    if listings is not None and task.hierarchy.depth <= TABLED_DEPTH and task.problem().small_model:
        status, found = listings.of(task, watch.left())
        if status is Status.COMPLETE:
            return found, True
    return known_programs(task.problem()), False


def _padded(steps: Sequence[Sequence[int]], none: int) -> IntArray:
    length = max(map(len, steps), default=0)
    rows = [[*row, *([none] * (length - len(row)))] for row in steps]
    return np.array(rows, dtype=np.int64).reshape(len(steps), length)
