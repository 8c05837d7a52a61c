"""The search for any schedule with CP-SAT, one for all models: constraints, solver, answer.

Constraints are stated one kind after the other, as long as there is time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import run
from p2smt.result import OUT_OF_TIME, Result, SolveStats, Status, StopWatch

SolverVerdict = tuple[cp_model.CpSolver, cp_model.CpSolverStatus]
P = TypeVar("P")
V = TypeVar("V")
S = TypeVar("S")
_SOLVER = "cpsat"


def searched(
    watch: StopWatch,
    model: cp_model.CpModel,
    problem: P,
    found: V,
    every: Iterable[Callable[[cp_model.CpModel, P, V], None]],
    decode: Callable[[P, V, cp_model.CpSolver], S],
    first: Callable[[], SolverVerdict | None] = lambda: None,
) -> Result[S]:
    """What a solver finds: FEASIBLE; INFEASIBLE: proved that there is nothing; UNKNOWN.

    ``every``: the kinds of constraints.  ``first``: a short search, before that of the model, that
    proves nothing if it finds nothing; None: there is none.
    """
    if not _stated(watch, model, problem, found, every):
        late = SolveStats(_SOLVER, watch.elapsed_s(), 0, reason=OUT_OF_TIME)
        return Result(Status.UNKNOWN, stats=late)
    solver, verdict = first() or (None, cp_model.UNKNOWN)
    if solver is None or not _solved(verdict):
        solver, verdict = run(model, watch.left(), linear=False)
    counters = (("variables", len(model.proto.variables)),)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, counters)
    if _solved(verdict):
        return Result(Status.FEASIBLE, decode(problem, found, solver), stats=stats)
    proved = verdict == cp_model.INFEASIBLE
    return Result(Status.INFEASIBLE if proved else Status.UNKNOWN, stats=stats)


def _solved(verdict: cp_model.CpSolverStatus) -> bool:
    return verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def _stated(
    watch: StopWatch,
    model: cp_model.CpModel,
    problem: P,
    found: V,
    every: Iterable[Callable[[cp_model.CpModel, P, V], None]],
) -> bool:
    """State each kind; False: the time was over first, and the model is not complete."""
    for state in every:
        if watch.expired():
            return False
        state(model, problem, found)
    return not watch.expired()
