"""Running z3: limits of time, shared by several checks, and of effort; and interrupts."""

from __future__ import annotations

import math

import z3

from p2smt.encodings.interruptible import is_useless, run_interruptibly
from p2smt.errors import GaveUpError, OutOfTimeError
from p2smt.result import OUT_OF_EFFORT, OUT_OF_TIME, STOPPED, StopWatch

_SEED_RANGE = 2**31
_QUICK = 1_000_000
"""Effort that a check may take in the caller's thread, where no signal reaches Python meanwhile:
less than about a second.  Most checks take far less, and would take longer in a thread."""
_MOST = 2**32 - 1
"""The greatest limit of effort that z3 takes; of a greater one it would keep the last 32 bits."""


# Python drops terms in whatever thread its garbage collector happens to run, also while a check
# runs in another one; by itself z3 then ends the process.
z3.Z3_enable_concurrent_dec_ref(z3.main_ctx().ref())


def new_solver(seed: int, logic: str | None = None) -> z3.Solver:
    """A solver with this seed, specialised to an SMT-LIB logic or general."""
    solver = z3.Solver() if logic is None else z3.SolverFor(logic)
    solver.set("random_seed", seed % _SEED_RANGE)
    solver.set("ctrl_c", False)  # else C++ swallows the signal that Python waits for
    return solver


def solution(solver: z3.Solver, watch: StopWatch, *, resumes: bool = True) -> z3.ModelRef | None:
    """A solution of what the solver holds, or None if it is proved that there is none.

    ``resumes``: the solver answers after a check that was cut, which that of finite domains
    (QF_FD) does not.

    Raises:
        OutOfTimeError: no time was left, or it ran out, or the check was stopped as useless
            (:func:`~p2smt.encodings.interruptible.stopping_when`).
        GaveUpError: another limit, or the solver itself, ended the search.
        KeyboardInterrupt: after the search has been stopped.
    """
    remaining_s = watch.remaining_s()
    if remaining_s == 0.0:
        raise OutOfTimeError(OUT_OF_TIME)
    if is_useless():
        raise OutOfTimeError(STOPPED)
    if remaining_s is not None:
        solver.set("timeout", math.ceil(remaining_s * 1000))
    effort = watch.limits.effort
    before = 0 if effort is None else spent(solver)
    verdict = _checked(solver, effort, resumes)
    if verdict == z3.sat:
        return solver.model()
    if verdict == z3.unsat:
        return None
    reason = solver.reason_unknown()
    if "timeout" in reason or watch.expired():
        raise OutOfTimeError(OUT_OF_TIME)
    if is_useless():
        raise OutOfTimeError(STOPPED)
    if effort is not None and spent(solver) - before >= effort:
        raise GaveUpError(OUT_OF_EFFORT)
    raise GaveUpError(f"z3 gave up ({reason})")


def _checked(solver: z3.Solver, effort: int | None, resumes: bool) -> z3.CheckSatResult:
    """The verdict of a check of so much effort (None: of any), begun in the caller's thread."""
    # to z3, 0 means that there is no limit
    limit = 0 if effort is None else min(max(1, effort), _MOST)
    if resumes:
        quick = min(limit, _QUICK) if limit else _QUICK
        solver.set("rlimit", quick)
        verdict = solver.check()
        if verdict != z3.unknown or quick == limit or "timeout" in solver.reason_unknown():
            return verdict
    solver.set("rlimit", limit)
    return run_interruptibly(solver.check, solver.interrupt)


def spent(solver: z3.Solver) -> int:
    """Units of effort (z3's "rlimit count") that z3 has spent so far, for all solvers together."""
    statistics = solver.statistics()
    known = statistics.keys()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in known else 0
