"""Running CP-SAT: seed, workers, time limits shared by several solves, and interrupts."""

from __future__ import annotations

from ortools.sat.python import cp_model

from p2smt.encodings.interruptible import run_interruptibly
from p2smt.errors import EncodingBug
from p2smt.result import SearchLimits

_SEED_RANGE = 2**31


def run(
    model: cp_model.CpModel,
    limits: SearchLimits,
    callback: cp_model.CpSolverSolutionCallback | None = None,
    every: bool = False,
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """Solve a model under ``limits``; with ``every``, show each solution to ``callback``.

    A time limit of 0 or less gives UNKNOWN without solving; the solver then holds no answer.
    An enumeration (``every``) always uses one worker, as CP-SAT requires, and repeats a
    solution for each value of a variable that the others do not determine.

    Raises:
        EncodingBug: CP-SAT rejects the model (for example because sums overflow).
        KeyboardInterrupt: after the search has been stopped.
    """
    solver = _solver(limits, every)
    if limits.time_limit_s is not None and limits.time_limit_s <= 0:
        return solver, cp_model.UNKNOWN
    status = run_interruptibly(lambda: solver.solve(model, callback), solver.stop_search)
    if status == cp_model.MODEL_INVALID:
        raise EncodingBug(f"invalid CP-SAT model: {model.validate()}", None, None)
    return solver, status


def proved_bound(solver: cp_model.CpSolver) -> int:
    """The proved lower bound on an integer objective, exact where a float would round.

    Only after a solve with an objective without constant term that found an answer.
    """
    return int(solver.response_proto.inner_objective_lower_bound)


def _solver(limits: SearchLimits, every: bool) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.random_seed = limits.seed % _SEED_RANGE
    parameters.num_workers = 1 if every else limits.workers
    parameters.enumerate_all_solutions = every
    parameters.catch_sigint_signal = False  # else C++ swallows the signal that Python waits for
    # Gaps are compared as floats: above 2^53 the default would take a near miss for a proof.
    parameters.absolute_gap_limit = 0.0
    parameters.relative_gap_limit = 0.0
    if limits.time_limit_s is not None:
        parameters.max_time_in_seconds = limits.time_limit_s
    return solver
