"""Programs run on small prime factors in the place of large ones, row counts carried over.

That a valid program is valid on every factor is the small-model theorem (docs/small-model.md);
the default encoding rests on it, too, so on the quotient the checker is not independent of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.demand import Demand
from p2smt.collectives.names import Collective
from p2smt.parallelism.placement import IntArray
from p2smt.programs import semantics
from p2smt.programs.program import Hierarchy, Program, local_groups
from p2smt.programs.semantics import State, Step, Trace, Violation, ViolationKind

PRIMES = (2, 3, 5, 7)
"""Of a quotient whose devices hold matrices."""
RUN_PRIMES = (*PRIMES, 11)
"""Of one whose devices hold runs of rows (:mod:`p2smt.programs.runs`): 2,310 of them."""


def steps_of(hierarchy: Hierarchy, program: Program, factors: Sequence[int]) -> list[Step]:
    """The program's steps on positions of a reduction group with these factors."""
    return [
        Step(i.collective, local_groups(factors, hierarchy.grouping(i)))
        for i in program.instructions
    ]


@dataclass(frozen=True, slots=True)
class Quotient:
    """Distinct primes in the place of the real factors: row counts tell how often each was
    divided out, and so what they are on the real factors."""

    primes: tuple[int, ...]
    factors: tuple[int, ...]

    def real_rows(self, count: int) -> int | None:
        """The real number of rows where the quotient has ``count``; None if it is not whole."""
        if count == 0:
            return 0
        left, uneven = divmod(math.prod(self.primes), count)
        if uneven:
            return None
        divisor = 1
        for prime, factor in zip(self.primes, self.factors, strict=True):
            while left % prime == 0:
                left //= prime
                divisor *= factor
        rows, rest = divmod(math.prod(self.factors), divisor)
        return rows if rest == 0 else None

    def run(self, demand: Demand, hierarchy: Hierarchy, program: Program) -> Trace:
        """The trace of a program, with the payloads and the peak of the real factors."""
        state = semantics.initial_state(demand, math.prod(self.primes))
        payloads: list[int] = []
        peak = self._most(_row_counts(state)) or 0
        steps = steps_of(hierarchy, program, self.primes)
        for number, step in enumerate(steps, start=1):
            before = _row_counts(state)[step.groups[:, 0]]
            gathers = step.collective is Collective.ALL_GATHER
            if semantics.is_goal(demand, state):
                return Trace(after_goal(number), tuple(payloads), peak)
            outcome = semantics.apply(state, step, number)
            if isinstance(outcome, Violation):
                return Trace(outcome, tuple(payloads), peak)
            payload = self._most(before * (step.groups.shape[1] if gathers else 1))
            held = self._most(_row_counts(state))
            if payload is None or held is None:
                return Trace(uneven(number), tuple(payloads), peak)
            payloads.append(payload)
            peak = max(peak, held)
        missed = None if semantics.is_goal(demand, state) else goal_missed(len(steps))
        return Trace(missed, tuple(payloads), peak)

    def _most(self, counts: IntArray) -> int | None:
        """The largest of these row counts on the real factors."""
        return largest(self.real_rows(int(count)) for count in np.unique(counts))


def _row_counts(state: State) -> IntArray:
    """Number of non-empty rows of each device."""
    return np.asarray((state != 0).any(axis=2).sum(axis=1), dtype=np.int64)


def after_goal(number: int) -> Violation:
    text = f"step {number}: the goal is reached before it"
    return Violation(ViolationKind.AFTER_GOAL, number, (), None, None, text)


def goal_missed(steps: int) -> Violation:
    text = f"after step {steps} the goal is not reached"
    return Violation(ViolationKind.GOAL_MISSED, steps, (), None, None, text)


def largest(counts: Iterable[int | None]) -> int | None:
    """The largest of these numbers; None if one of them is none."""
    found = list(counts)
    whole = [count for count in found if count is not None]
    return max(whole) if len(whole) == len(found) else None


def uneven(number: int) -> Violation:
    text = f"step {number}: the chunks do not split evenly on the real factors"
    return Violation(ViolationKind.NOT_DIVISIBLE, number, (), None, None, text)
