"""Checks programs by the semantics: one exactly, or many that share prefixes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from p2smt.collectives.demand import Demand
from p2smt.errors import TooLarge
from p2smt.programs import semantics
from p2smt.programs.program import (
    MODEL_DEPTH,
    SMALL_MODEL_LENGTH,
    Hierarchy,
    Instruction,
    Program,
    small_model_length,
)
from p2smt.programs.runs import (
    MAX_RUN_DEVICES,
    PRIMES,
    RUN_PRIMES,
    Quotient,
    after_goal,
    goal_missed,
    run_on_runs,
    steps_of,
)
from p2smt.programs.semantics import State, Step, Trace, Violation

MAX_MATRICES = 256
"""Largest reduction group whose programs run on whole matrices first: above, runs of rows take a
hundredth of the time."""
MAX_LISTED = 64
"""Largest reduction group on which every program of a long list is checked exactly."""


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


def check_program(demand: Demand, hierarchy: Hierarchy, program: Program) -> Checked:
    """Run a program device by device, or on the quotient where that takes less.

    Device by device means whole matrices, and from 257 devices on runs of rows first, which say the
    same of a valid program.

    The quotient replaces the factors by distinct primes; that it decides validity is the
    small-model theorem, so it is used in its range only.  Of more than 4 levels, or out of the
    range, those are merged that no step of the program tells apart, which changes no group.  Where
    5 are left, rows are runs: on each device as long as they are not too many, then on the
    quotient.

    Raises:
        TooLarge: too many devices to simulate, and outside the range of the quotient.
    """
    factors, size = hierarchy.factors, hierarchy.size
    if size <= semantics.MAX_DEVICES:
        return Checked(_simulated(demand, hierarchy, program), factors, True)
    merged = hierarchy
    if len(factors) > len(PRIMES) or len(program) > small_model_length(len(factors)):
        merged = hierarchy.merged(_cuts(hierarchy, program))
    known = len(program) <= small_model_length(merged.depth)
    if known and merged.depth <= len(PRIMES):
        quotient = Quotient(PRIMES[: merged.depth], merged.factors)
        return Checked(quotient.run(demand, merged, program), quotient.primes, False)
    if size <= MAX_RUN_DEVICES:
        trace = run_on_runs(demand, size, steps_of(hierarchy, program, factors))
        return Checked(trace, factors, True)
    if known and merged.depth <= len(RUN_PRIMES):
        quotient = Quotient(RUN_PRIMES[: merged.depth], merged.factors)
        return Checked(_on_quotient_runs(demand, merged, program, quotient), quotient.primes, False)
    raise TooLarge(
        f"a program of length {len(program)} over factors {list(merged.factors)}",
        f"can be checked up to {MAX_RUN_DEVICES} devices per group, or up to length "
        f"{SMALL_MODEL_LENGTH} and {len(RUN_PRIMES)} levels that its steps tell apart",
    )


def _on_quotient_runs(
    demand: Demand, hierarchy: Hierarchy, program: Program, quotient: Quotient
) -> Trace:
    """The trace on the devices of a quotient, with the payloads and the peak of the real ones."""
    steps = steps_of(hierarchy, program, quotient.primes)
    size = math.prod(quotient.primes)
    return run_on_runs(demand, size, steps, real_rows=quotient.real_rows)


@lru_cache(maxsize=1024)
def checked_once(demand: Demand, hierarchy: Hierarchy, program: Program) -> Checked:
    """:func:`check_program`, kept: it knows nothing of links and bytes, which differ more often.

    Raises:
        TooLarge: as there.
    """
    return check_program(demand, hierarchy, program)


def _simulated(demand: Demand, hierarchy: Hierarchy, program: Program) -> Trace:
    """The trace on every device, on runs of rows where that is less work and says as much.

    Runs leave out the words for what is wrong with a program.
    """
    size, steps = hierarchy.size, steps_of(hierarchy, program, hierarchy.factors)
    if size > MAX_MATRICES:
        trace = run_on_runs(demand, size, steps, shards=True)
        if trace.violation is None:
            return trace
    return semantics.run(demand, size, steps)


def _cuts(hierarchy: Hierarchy, program: Program) -> list[int]:
    """The inner depths at which groups of a program's steps begin or end, ascending."""
    found = [hierarchy.grouping(instruction) for instruction in program.instructions]
    ends = {depth for grouping in found for depth in (grouping.outer, grouping.inner)}
    return sorted(ends - {0, hierarchy.depth})


class ListChecker:
    """Checks many programs over one hierarchy; states and steps are computed once each."""

    def __init__(self, demand: Demand, hierarchy: Hierarchy) -> None:
        self.demand, self.hierarchy = demand, hierarchy
        self.factors = _list_factors(hierarchy.factors)
        start = semantics.initial_state(demand, math.prod(self.factors))
        self._states = [start]
        self._ids = {start.tobytes(): 0}
        self._goal = [semantics.is_goal(demand, start)]
        self._next: dict[tuple[int, Instruction], int | Violation] = {}
        self._steps: dict[Instruction, Step] = {}

    @property
    def exact(self) -> bool:
        """Whether the programs run on the real factors, device by device."""
        return self.factors == self.hierarchy.factors

    def violation(self, program: Program) -> Violation | None:
        """The first rule that a program breaks, or None."""
        at = 0
        for number, instruction in enumerate(program.instructions, start=1):
            if self._goal[at]:
                return after_goal(number)
            found = self._after(at, instruction, number)
            if isinstance(found, Violation):
                return found
            at = found
        return None if self._goal[at] else goal_missed(len(program))

    def _after(self, at: int, instruction: Instruction, number: int) -> int | Violation:
        key = at, instruction
        if key not in self._next:
            state = self._states[at].copy()
            found = semantics.apply(state, self._step(instruction), number)
            bad = isinstance(found, Violation)
            self._next[key] = found if bad else self._register(state)
        return self._next[key]

    def _step(self, instruction: Instruction) -> Step:
        if instruction not in self._steps:
            one = Program((instruction,))
            (self._steps[instruction],) = steps_of(self.hierarchy, one, self.factors)
        return self._steps[instruction]

    def _register(self, state: State) -> int:
        key = state.tobytes()
        if key not in self._ids:
            self._ids[key] = len(self._states)
            self._states.append(state)
            self._goal.append(semantics.is_goal(self.demand, state))
        return self._ids[key]


class ApartChecker:
    """The same over many levels: each program on those alone that it tells apart."""

    exact = False

    def __init__(self, demand: Demand, hierarchy: Hierarchy) -> None:
        self.demand, self.hierarchy = demand, hierarchy
        self.factors = _list_factors(hierarchy.factors[:MODEL_DEPTH])
        self._checkers: dict[tuple[int, ...], ListChecker] = {}

    def violation(self, program: Program) -> Violation | None:
        """The first rule that a program breaks, or None."""
        cuts = tuple(_cuts(self.hierarchy, program))
        if cuts not in self._checkers:
            self._checkers[cuts] = ListChecker(self.demand, self.hierarchy.merged(cuts))
        return self._checkers[cuts].violation(program)


def list_checker(demand: Demand, hierarchy: Hierarchy, length: int) -> ListChecker | ApartChecker:
    """A checker of many programs of at most so many instructions.

    Raises:
        TooLarge: there are too many devices for that, and others cannot stand for them.
    """
    known, many = small_model_length(hierarchy.depth), hierarchy.size > MAX_LISTED
    if many and length > known:
        raise TooLarge(
            f"every program of length {length} over factors {list(hierarchy.factors)}",
            f"is checked on up to {MAX_LISTED} devices, not {hierarchy.size}",
            f"ask for the best, or for length {known}",
        )
    if many and hierarchy.depth > MODEL_DEPTH:
        return ApartChecker(demand, hierarchy)
    return ListChecker(demand, hierarchy)


def _list_factors(factors: tuple[int, ...]) -> tuple[int, ...]:
    """The real factors if they are few; else distinct primes or, for 4 levels, small ones."""
    if math.prod(factors) <= MAX_LISTED:
        return factors
    primes = PRIMES[: len(factors)]
    if len(primes) == len(factors) and math.prod(primes) <= MAX_LISTED:
        return primes
    return (3,) + (2,) * (len(factors) - 1)
