"""Checks programs by the semantics: one exactly, or many that share prefixes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt import semantics
from p2smt.collective import Collective, RequestKind
from p2smt.errors import TooLarge
from p2smt.placement import IntArray
from p2smt.problem import SMALL_MODEL_LENGTH
from p2smt.program import Hierarchy, Program, local_groups
from p2smt.semantics import State, Step, Trace, Violation, ViolationKind

MAX_LISTED = 64
"""Largest reduction group on which every program of a long list is checked exactly."""
_PRIMES = (2, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class Checked:
    """A program's trace on the real factors, and the factors it was run on.

    ``factors`` are the real ones if every device was simulated (``exact``); else those of
    the quotient, whose row counts were carried over to the real factors.
    """

    trace: Trace
    factors: tuple[int, ...]
    exact: bool

    @property
    def how(self) -> str:
        """``devices``, or ``quotient 2x3x5``."""
        return "devices" if self.exact else "quotient " + "x".join(map(str, self.factors))


def steps_of(hierarchy: Hierarchy, program: Program, factors: Sequence[int]) -> list[Step]:
    """The program's steps on positions of a reduction group with these factors."""
    return [
        Step(i.collective, local_groups(factors, hierarchy.grouping(i)))
        for i in program.instructions
    ]


def check_program(kind: RequestKind, hierarchy: Hierarchy, program: Program) -> Checked:
    """Run a program device by device, or on the quotient where the states would not fit.

    The quotient replaces the factors by distinct primes; that it decides validity rests on
    the small-model property, so it is used up to length 6 and 4 levels only.

    Raises:
        TooLarge: too many devices for exact states, and outside the range of the quotient.
    """
    factors = hierarchy.factors
    if hierarchy.size <= semantics.MAX_DEVICES:
        trace = semantics.run(kind, hierarchy.size, steps_of(hierarchy, program, factors))
        return Checked(trace, factors, True)
    if len(factors) > len(_PRIMES) or len(program) > SMALL_MODEL_LENGTH:
        raise TooLarge(
            f"a program of length {len(program)} over factors {list(factors)}",
            f"can be checked up to {semantics.MAX_DEVICES} devices per group, or up to length "
            f"{SMALL_MODEL_LENGTH} and {len(_PRIMES)} levels",
        )
    primes = _PRIMES[: len(factors)]
    return Checked(_Quotient(primes, factors).run(kind, hierarchy, program), primes, False)


@dataclass(frozen=True, slots=True)
class _Quotient:
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

    def run(self, kind: RequestKind, hierarchy: Hierarchy, program: Program) -> Trace:
        """The trace of a program, with the payloads and the peak of the real factors."""
        state = semantics.initial_state(kind, math.prod(self.primes))
        payloads: list[int] = []
        peak = self._most(_row_counts(state)) or 0
        steps = steps_of(hierarchy, program, self.primes)
        for number, step in enumerate(steps, start=1):
            before = _row_counts(state)[step.groups[:, 0]]
            gathers = step.collective is Collective.ALL_GATHER
            if semantics.is_goal(kind, state):
                return Trace(_after_goal(number), tuple(payloads), peak)
            outcome = semantics.apply(state, step, number)
            if isinstance(outcome, Violation):
                return Trace(outcome, tuple(payloads), peak)
            payload = self._most(before * (step.groups.shape[1] if gathers else 1))
            held = self._most(_row_counts(state))
            if payload is None or held is None:
                return Trace(_uneven(number), tuple(payloads), peak)
            payloads.append(payload)
            peak = max(peak, held)
        missed = None if semantics.is_goal(kind, state) else _goal_missed(len(steps))
        return Trace(missed, tuple(payloads), peak)

    def _most(self, counts: IntArray) -> int | None:
        """The largest of these row counts on the real factors."""
        rows = [self.real_rows(int(count)) for count in np.unique(counts)]
        whole = [row for row in rows if row is not None]
        return max(whole) if len(whole) == len(rows) else None


def _row_counts(state: State) -> IntArray:
    """Number of non-empty rows of each device."""
    return np.asarray((state != 0).any(axis=2).sum(axis=1), dtype=np.int64)


def _after_goal(number: int) -> Violation:
    text = f"step {number}: the goal is reached before it"
    return Violation(ViolationKind.AFTER_GOAL, number, (), None, None, text)


def _goal_missed(steps: int) -> Violation:
    text = f"after step {steps} the goal is not reached"
    return Violation(ViolationKind.GOAL_MISSED, steps, (), None, None, text)


def _uneven(number: int) -> Violation:
    text = f"step {number}: the chunks do not split evenly on the real factors"
    return Violation(ViolationKind.NOT_DIVISIBLE, number, (), None, None, text)


class ListChecker:
    """Checks many programs over one hierarchy; states and steps are computed once each."""

    def __init__(self, kind: RequestKind, hierarchy: Hierarchy) -> None:
        self.kind, self.hierarchy = kind, hierarchy
        self.factors = _list_factors(hierarchy.factors)
        start = semantics.initial_state(kind, math.prod(self.factors))
        self._states = [start]
        self._ids = {start.tobytes(): 0}
        self._goal = [semantics.is_goal(kind, start)]
        self._next: dict[tuple[int, str], int | Violation] = {}

    @property
    def exact(self) -> bool:
        """Whether the programs run on the real factors, device by device."""
        return self.factors == self.hierarchy.factors

    def violation(self, program: Program) -> Violation | None:
        """The first rule that a program breaks, or None."""
        at = 0
        for number, step in enumerate(steps_of(self.hierarchy, program, self.factors), start=1):
            if self._goal[at]:
                return _after_goal(number)
            found = self._step(at, str(program.instructions[number - 1]), step, number)
            if isinstance(found, Violation):
                return found
            at = found
        return None if self._goal[at] else _goal_missed(len(program))

    def _step(self, at: int, name: str, step: Step, number: int) -> int | Violation:
        if (at, name) not in self._next:
            state = self._states[at].copy()
            outcome = semantics.apply(state, step, number)
            bad = isinstance(outcome, Violation)
            self._next[at, name] = outcome if bad else self._register(state)
        return self._next[at, name]

    def _register(self, state: State) -> int:
        key = state.tobytes()
        if key not in self._ids:
            self._ids[key] = len(self._states)
            self._states.append(state)
            self._goal.append(semantics.is_goal(self.kind, state))
        return self._ids[key]


def _list_factors(factors: tuple[int, ...]) -> tuple[int, ...]:
    """The real factors if they are few; else distinct primes or, for 4 levels, small ones."""
    if math.prod(factors) <= MAX_LISTED:
        return factors
    primes = _PRIMES[: len(factors)]
    if len(primes) == len(factors) and math.prod(primes) <= MAX_LISTED:
        return primes
    return (3,) + (2,) * (len(factors) - 1)
