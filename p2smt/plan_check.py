"""Checks a plan file: shape, groups, the meaning of its programs, and its costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt import semantics
from p2smt.bounds import request_bound_s
from p2smt.checking import check_program
from p2smt.errors import InputError
from p2smt.placement import IntArray, ParallelismAxis, Placement
from p2smt.plan import PlanModel, RequestModel
from p2smt.pricing import Scene
from p2smt.program import parse_instruction, parse_program
from p2smt.request import Problem, Request
from p2smt.semantics import Step, Trace, Violation, ViolationKind
from p2smt.solution import objective
from p2smt.topology_model import build_topology

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Verdict on a plan: violations by request, how it was checked, and the times recomputed.

    ``seconds`` per request and ``objective_s`` come from the cost model; ``cost_notes`` says
    where the file claims other times.
    """

    violations: tuple[tuple[int, Violation], ...]
    checked: tuple[str, ...]
    seconds: tuple[float, ...]
    objective_s: float
    cost_notes: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether no rule is broken and no cost is misstated."""
        return not self.violations and not self.cost_notes


def plan_problem(plan: PlanModel, source: str) -> tuple[Problem, Placement]:
    """The problem and placement of a plan file, their sizes checked."""
    topology = build_topology(plan.topology, source)
    axes = tuple(ParallelismAxis(axis.name, axis.size) for axis in plan.axes)
    requests = tuple(Request(r.kind, tuple(r.axes), r.bytes, r.times) for r in plan.requests)
    placement = Placement(tuple(tuple(row) for row in plan.matrix))
    placement.check(topology.sizes, [axis.size for axis in axes])
    return Problem(topology, axes, requests, plan.objective), placement


def check_plan(plan: PlanModel, source: str) -> PlanReport:
    """Check every request of a plan device by device, and recompute its times.

    Groups larger than the semantics can hold are checked on the quotient; the report says so.
    """
    problem, placement = plan_problem(plan, source)
    violations, checked, seconds = [], [], []
    notes: list[str] = []
    for n, (model, request) in enumerate(zip(plan.requests, problem.requests, strict=True)):
        axes = problem.axis_indices(request)
        scene = Scene.of(problem.topology, placement, axes)
        broken, how, payload_rows = _check_request(model, scene, placement.groups(axes))
        if broken is not None:
            violations.append((n, broken))
        checked.append(how)
        time_s = _time(scene, request, model, payload_rows) if broken is None else 0.0
        seconds.append(time_s)
        if broken is None:
            notes += _cost_notes(n, model, scene, time_s)
    total = objective(problem, tuple(seconds))
    if not violations and abs(total - plan.objective_s) > _TOLERANCE * max(total, 1e-30):
        notes.append(f"objective_s says {plan.objective_s}, the cost model {total}")
    return PlanReport(tuple(violations), tuple(checked), tuple(seconds), total, tuple(notes))


def _check_request(
    model: RequestModel, scene: Scene, groups: IntArray
) -> tuple[Violation | None, str, tuple[int, ...]]:
    """(violation, what it was checked on, payload rows per step)."""
    if model.program is None:
        return _check_fixed(model, scene, groups), "one fixed step", ()
    hierarchy = scene.hierarchy
    program = parse_program(model.program)
    listed = tuple(parse_instruction(step.instruction) for step in model.steps)
    if listed != program.instructions:
        text = "the instructions of the steps are not those of the program"
        return _violation(len(listed), text), "devices", ()
    steps = []
    for number, step in enumerate(model.steps, start=1):
        local = _local_groups(step.groups, groups)
        if local is None:
            text = f"step {number}: the groups do not repeat over the axes' reduction groups"
            return _violation(number, text), "devices", ()
        steps.append(Step(listed[number - 1].collective, local))
    if hierarchy.size > semantics.MAX_DEVICES:
        quotient = check_program(model.kind, hierarchy, program)
        return quotient.trace.violation, quotient.how, quotient.trace.payload_rows
    trace: Trace = semantics.run(model.kind, hierarchy.size, steps)
    return trace.violation, "devices", trace.payload_rows


def _violation(step: int, text: str) -> Violation:
    return Violation(ViolationKind.GROUP_SHAPE, step, (), None, None, text)


def _check_fixed(model: RequestModel, scene: Scene, groups: IntArray) -> Violation | None:
    """A request with one fixed step runs on the reduction groups themselves."""
    if scene.hierarchy.size == 1 and not model.steps:
        return None
    if model.kind.has_programs or len(model.steps) != 1:
        return _violation(0, f"a request {model.kind.value} over several devices needs its steps")
    if model.steps[0].groups != groups.tolist():
        return _violation(1, "step 1: the groups are not those of the axes")
    return None


def _local_groups(step: Sequence[Sequence[int]], groups: IntArray) -> IntArray | None:
    """Positions in the reduction groups; None unless every reduction group has the same ones."""
    if not step or len({len(row) for row in step}) != 1:
        return None
    listed = np.array(step, dtype=np.int64)
    count, members = groups.shape
    if listed.min() < 0 or listed.max() >= groups.size or len(listed) % count:
        return None
    where = np.empty((2, groups.size), dtype=np.int64)
    where[0, groups] = np.arange(count)[:, None]
    where[1, groups] = np.arange(members)
    owner, position = where[0, listed], where[1, listed]
    order = np.argsort(owner[:, 0], kind="stable")
    local = position[order].reshape(count, -1, listed.shape[1])
    within = (owner == owner[:, :1]).all()
    even = (np.bincount(owner[:, 0], minlength=count) == len(listed) // count).all()
    return local[0] if within and even and (local == local[0]).all() else None


def _time(
    scene: Scene, request: Request, model: RequestModel, payload_rows: tuple[int, ...]
) -> float:
    if model.program is None:
        moved = scene.hierarchy.size > 1
        return scene.fixed_time(request.kind, request.payload_bytes).seconds if moved else 0.0
    program = parse_program(model.program)
    steps = scene.program_times(program, payload_rows, request.payload_bytes)
    return sum(step.seconds for step in steps)


def _cost_notes(n: int, model: RequestModel, scene: Scene, seconds: float) -> list[str]:
    notes = []
    if abs(seconds - model.seconds) > _TOLERANCE * max(seconds, 1e-30):
        notes.append(f"request {n + 1} says {model.seconds} s, the cost model {seconds} s")
    bound = request_bound_s(scene.topology, scene.digits, model.kind, model.bytes)
    if seconds < bound * (1 - _TOLERANCE):
        raise InputError(f"request {n + 1}", f"costs {seconds} s, below its bound {bound} s")
    return notes
