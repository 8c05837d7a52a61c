"""Running CP-SAT: seed, workers, time limits shared by several solves, and interrupts."""

from __future__ import annotations

import math

from ortools.sat.python import cp_model

from p2smt.encodings.interruptible import is_useless, is_watched, run_interruptibly
from p2smt.errors import EncodingBug
from p2smt.result import SearchLimits

_SEED_RANGE = 2**31
EFFORT_OF_ONE = 1000
"""Effort (:class:`~p2smt.result.SearchLimits`) of one unit of CP-SAT's deterministic time."""


def run(
    model: cp_model.CpModel,
    limits: SearchLimits,
    callback: cp_model.CpSolverSolutionCallback | None = None,
    every: bool = False,
    linear: bool = True,
    in_ticks: bool = False,
    plainly: bool = False,
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """Solve a model under ``limits``; with ``every``, show each solution to ``callback``.

    A time limit of 0 or less gives UNKNOWN without solving; the solver then holds no answer.
    ``in_ticks``: the objective is that of the problem, so its bound may show that the search is
    useless (:func:`~p2smt.encodings.interruptible.stopping_when`); one that is stopped for any
    reason gives FEASIBLE or UNKNOWN.
    ``plainly``: branch as the model's strategies say, on the model as it is; that is the faster way
    to many answers that propagation alone tells apart.
    An enumeration (``every``) always uses one worker, as CP-SAT requires, and repeats a
    solution for each value of a variable that the others do not determine.  Without ``linear`` the
    linear relaxation is left out, for models of which it says little.

    Raises:
        EncodingBug: CP-SAT rejects the model (for example because sums overflow).
        KeyboardInterrupt: after the search has been stopped.
    """
    solver = _solver(limits, every)
    if plainly:
        solver.parameters.search_branching = cp_model.FIXED_SEARCH
        solver.parameters.cp_model_presolve = False
    if plainly or not linear:
        solver.parameters.linearization_level = 0
    if (limits.time_limit_s is not None and limits.time_limit_s <= 0) or is_useless():
        return solver, cp_model.UNKNOWN
    bounds = _Bounds()
    if in_ticks and is_watched():
        solver.best_bound_callback = bounds.note
    status = run_interruptibly(
        lambda: solver.solve(model, callback), solver.stop_search, bounds.last
    )
    if status == cp_model.MODEL_INVALID:
        raise EncodingBug(f"invalid CP-SAT model: {model.validate()}", None, None)
    return solver, status


def proved_bound(solver: cp_model.CpSolver) -> int:
    """The proved lower bound on an integer objective, exact where a float would round.

    Only after a solve with an objective without constant term that found an answer.
    """
    return int(solver.response_proto.inner_objective_lower_bound)


def bound_without_answer(solver: cp_model.CpSolver) -> int | None:
    """The proved lower bound of a solve that found no answer, None if there is none above 0.

    CP-SAT says 0 where it has proved nothing, also if the objective may be negative.
    """
    try:
        bound = proved_bound(solver)
    except RuntimeError:  # nothing was solved
        return None
    return bound if bound > 0 else None


class _Bounds:
    """The bounds that CP-SAT reports while it works, as floats."""

    def __init__(self) -> None:
        self._last: int | None = None

    def note(self, bound: float) -> None:
        """Called by CP-SAT, in its own thread."""
        if math.isfinite(bound):
            exact = abs(bound) < 2**53
            self._last = math.floor(bound if exact else math.nextafter(bound, -math.inf))

    def last(self) -> int | None:
        """The last one, rounded down."""
        return self._last


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
    if limits.effort is not None:
        parameters.max_deterministic_time = limits.effort / EFFORT_OF_ONE
    return solver
