"""The search for any schedule with z3, one for all models: rounds, solver, answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import z3

from p2smt.encodings.run_z3 import solution
from p2smt.errors import OutOfTimeError
from p2smt.result import Result, SolveStats, Status, StopWatch

S = TypeVar("S")
_SOLVER = "z3"


def searched(
    solver: z3.Solver,
    watch: StopWatch,
    state: Callable[[], None],
    decode: Callable[[z3.ModelRef], S],
) -> Result[S]:
    """What the solver finds: FEASIBLE; INFEASIBLE: proved that there is nothing; UNKNOWN.

    ``state`` puts the constraints to it, and may find that the time is up.
    """
    try:
        state()
        model = solution(solver, watch)
    except OutOfTimeError as stopped:
        stats = SolveStats(_SOLVER, watch.elapsed_s(), reason=str(stopped))
        return Result(Status.UNKNOWN, stats=stats)
    stats = SolveStats(_SOLVER, watch.elapsed_s())
    if model is None:
        return Result(Status.INFEASIBLE, stats=stats)
    return Result(Status.FEASIBLE, decode(model), stats=stats)


def state_rounds(solver: z3.Solver, rounds: Sequence[z3.ArithRef], total: int) -> None:
    """The steps take all rounds together, one or more each."""
    solver.add(*(one >= 1 for one in rounds))
    solver.add(z3.Sum(list(rounds)) == total)


def rounds_of(model: z3.ModelRef, rounds: Sequence[z3.ArithRef]) -> list[int]:
    """The rounds of every step."""
    return [model.eval(one, model_completion=True).as_long() for one in rounds]
