"""Descending on a bit-vector term with one incremental z3 solver."""

from __future__ import annotations

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.result import SearchLimits, SolveStats, StopWatch


class Z3Search:
    """A finite-domain solver with one time limit over all its checks, which it counts.

    z3 works on one thread here, whatever ``limits.workers`` says.
    """

    def __init__(self, limits: SearchLimits) -> None:
        self.watch = StopWatch.start(limits)
        self.solver = new_solver(limits.seed, "QF_FD")
        self.calls = 0

    def solution(self) -> z3.ModelRef | None:
        """A model of what the solver holds, or None if it is proved that there is none.

        Raises:
            OutOfTimeError: no verdict within the time limit.
        """
        self.calls += 1
        return solution(self.solver, self.watch, resumes=False)

    def least(self, term: z3.BitVecRef, *side: z3.BoolRef) -> tuple[bool, z3.ModelRef | None]:
        """(proved, a model in which ``term`` is least) under ``side`` conditions.

        Not proved: the time ran out, and the model, if any, is the best found.  The solver
        holds the same afterwards as before.
        """
        best = None
        self.solver.push()
        self.solver.add(*side)
        try:
            while (model := self.solution()) is not None:
                best = model
                self.solver.add(z3.ULT(term, value(model, term)))
        except OutOfTimeError:
            return False, best
        finally:
            self.solver.pop()
        return True, best

    def stats(self, *counters: tuple[str, int]) -> SolveStats:
        """Statistics so far."""
        return SolveStats("z3", self.watch.elapsed_s(), self.calls, counters)


def value(model: z3.ModelRef, term: z3.BitVecRef) -> int:
    """The unsigned value of a term; one that the model leaves open counts as 0."""
    return int(model.eval(term, model_completion=True).as_long())


def at_most(term: z3.BitVecRef, bound: int) -> z3.BoolRef:
    """Unsigned ``term <= bound``, also for a bound outside the range of the bit-vector."""
    if bound >= 2 ** term.size() - 1:
        return z3.BoolVal(True)
    return z3.ULE(term, bound) if bound >= 0 else z3.BoolVal(False)
