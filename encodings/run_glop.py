"""Running GLOP: a time limit, and interrupts."""

from __future__ import annotations

from ortools.linear_solver.python import model_builder_helper as linear

from p2smt.encodings.interruptible import is_useless, run_interruptibly
from p2smt.result import SearchLimits

SOLVER = "glop"
Model = linear.ModelBuilderHelper


def run(
    model: Model, limits: SearchLimits, parameters: str = ""
) -> linear.ModelSolverHelper | None:
    """The solver with an optimum; None: the limit came, or it was stopped."""
    left = limits.time_limit_s
    if (left is not None and left <= 0) or is_useless():
        return None
    solver = linear.ModelSolverHelper(SOLVER)
    if parameters:
        solver.set_solver_specific_parameters(parameters)
    if left is not None:
        solver.set_time_limit_in_seconds(left)
    run_interruptibly(lambda: solver.solve(model), lambda: _stop(solver))
    return solver if solver.status() == linear.OPTIMAL else None


def _stop(solver: linear.ModelSolverHelper) -> None:
    solver.interrupt_solve()
