"""Running z3: time limits shared by several checks, and interrupts."""

from __future__ import annotations

import math

import z3

from p2smt.encodings.interruptible import run_interruptibly
from p2smt.errors import OutOfTimeError
from p2smt.result import StopWatch

_SEED_RANGE = 2**31


def new_solver(seed: int, logic: str | None = None) -> z3.Solver:
    """A solver with this seed, specialised to an SMT-LIB logic or general."""
    solver = z3.Solver() if logic is None else z3.SolverFor(logic)
    solver.set("random_seed", seed % _SEED_RANGE)
    solver.set("ctrl_c", False)  # else C++ swallows the signal that Python waits for
    return solver


def solution(solver: z3.Solver, watch: StopWatch) -> z3.ModelRef | None:
    """A solution of what the solver holds, or None if it is proved that there is none.

    Raises:
        OutOfTimeError: no time was left, or it ran out.
        KeyboardInterrupt: after the search has been stopped.
    """
    remaining_s = watch.remaining_s()
    if remaining_s == 0.0:
        raise OutOfTimeError
    if remaining_s is not None:
        solver.set("timeout", math.ceil(remaining_s * 1000))
    verdict = run_interruptibly(solver.check, solver.interrupt)
    if verdict == z3.sat:
        return solver.model()
    if verdict == z3.unsat:
        return None
    raise OutOfTimeError
