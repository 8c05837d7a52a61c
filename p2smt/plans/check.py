"""Checks a plan file: shape, groups, the meaning of its programs, and its costs."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cost.pipeline import program_s
from p2smt.cost.scene import Scene
from p2smt.plans.check_numbers import plan_notes, request_notes, step_times
from p2smt.plans.check_steps import check_request
from p2smt.plans.file_model import PlanModel, plan_problem
from p2smt.plans.solution import objective
from p2smt.programs.semantics import Violation


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Verdict on a plan: violations by request, how it was checked, and the times recomputed.

    ``seconds`` per request and ``objective_s`` come from the cost model (0 where a request is
    not valid); ``cost_notes`` says where the file claims other numbers.
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


def check_plan(plan: PlanModel, source: str) -> PlanReport:
    """Check every request of a plan device by device, and recompute its numbers.

    Groups larger than the semantics can hold are checked on the quotient; the report says so.

    Raises:
        InputError: sizes that do not fit, unknown axes, or programs that do not parse.
    """
    problem, placement = plan_problem(plan, source)
    violations, checked, seconds = [], [], []
    notes: list[str] = []
    for n, (model, request) in enumerate(zip(plan.requests, problem.requests, strict=True)):
        axes = problem.axis_indices(request)
        scene = Scene.of(problem.topology, placement, axes)
        trace, how = check_request(model, scene, placement.groups(axes))
        checked.append(how)
        if trace.violation is not None:
            violations.append((n, trace.violation))
            seconds.append(0.0)
            continue
        steps = step_times(model, scene, trace)
        seconds.append(program_s(steps, model.chunks))
        notes += request_notes(n, model, scene, trace, steps)
    total = objective(problem, tuple(seconds))
    if not violations:
        notes += plan_notes(plan, total)
    return PlanReport(tuple(violations), tuple(checked), tuple(seconds), total, tuple(notes))
