"""Checks programs by the semantics: one exactly, or many that share prefixes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import assert_never

import numpy as np

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import IntArray
from p2smt.programs import semantics
from p2smt.programs.exchanges import exchange_factors, exchange_trace
from p2smt.programs.preconditions import Violation, ViolationKind
from p2smt.programs.program import (
    MODEL_DEPTH,
    SMALL_MODEL_LENGTH,
    Hierarchy,
    Instruction,
    Program,
    local_groups,
    small_model_length,
)
from p2smt.programs.semantics import State, Step, Trace

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

    A program of an all-to-all is followed block by block, on twos where there are too many ranks.

    Raises:
        TooLarge: too many devices to simulate, and outside the range of the quotient.
    """
    factors, size = hierarchy.factors, hierarchy.size
    if demand.has_exchanges:
        taken = exchange_factors(factors)
        return Checked(exchange_trace(hierarchy, program, taken), taken, taken == factors)
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


@dataclass(frozen=True, slots=True)
class ExchangeChecker:
    """The same for the programs of an all-to-all: each is followed block by block."""

    hierarchy: Hierarchy

    @property
    def factors(self) -> tuple[int, ...]:
        """The factors of the ranks that blocks are followed on."""
        return exchange_factors(self.hierarchy.factors, MAX_LISTED)

    @property
    def exact(self) -> bool:
        """Whether these are the real ones."""
        return self.factors == self.hierarchy.factors

    def violation(self, program: Program) -> Violation | None:
        """The first rule that a program breaks, or None."""
        return exchange_trace(self.hierarchy, program, self.factors).violation


def list_checker(
    demand: Demand, hierarchy: Hierarchy, length: int
) -> ListChecker | ApartChecker | ExchangeChecker:
    """A checker of many programs of at most so many instructions.

    Raises:
        TooLarge: there are too many devices for that, and others cannot stand for them.
    """
    if demand.has_exchanges:
        return ExchangeChecker(hierarchy)
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


# Programs on thousands of devices, one by one: what a device holds as runs of rows.
# The same rules as :mod:`p2smt.programs.semantics`, which fills whole matrices.  Here neighbouring
# rows with the same contributions are one run (first row, row after the last, contributors as the
# bits of a number), so a device's matrix is a few numbers whatever its size.  Nothing is shared
# with
# the encodings, and no property of small sizes is used: the factors are the real ones.


MAX_RUN_DEVICES = 16_384
"""Largest reduction group that is simulated by runs (64 MiB of contributors)."""

Run = tuple[int, int, int]
HeldRuns = tuple[Run, ...]
"""Runs of a device in row order: disjoint, none empty, none mergeable with the next."""


def as_it_is(count: int) -> int | None:
    """A number of rows that are real ones."""
    return count


def run_on_runs(
    demand: Demand,
    devices: int,
    steps: Sequence[Step],
    *,
    shards: bool = False,
    real_rows: Callable[[int], int | None] = as_it_is,
) -> Trace:
    """The trace of a program on ``devices`` devices; its shards only if they are asked for.

    ``real_rows``: what a number of rows here is where the devices stand for others; None: no whole
    number of them.
    """
    state = initial_runs(demand, devices)
    payloads: list[int] = []
    peak = _most(state, real_rows) or 0
    for number, step in enumerate(steps, start=1):
        if runs_are_goal(demand, state):
            return Trace(after_goal(number), tuple(payloads), peak)
        counts = set[int]()
        for group in step.groups.tolist():
            before = [state[device] for device in group]
            after = outcome(step.collective, before)
            if isinstance(after, ViolationKind):
                text = f"step {number} ({step.collective.value}): {after.value}"
                broken = Violation(after, number, tuple(group), None, None, text)
                return Trace(broken, tuple(payloads), peak)
            times = len(group) if step.collective is Collective.ALL_GATHER else 1
            counts.add(row_count(before[0]) * times)
            for device, held in zip(group, after, strict=True):
                state[device] = held
        payload, held_rows = largest(map(real_rows, counts)), _most(state, real_rows)
        if payload is None or held_rows is None:
            return Trace(uneven(number), tuple(payloads), peak)
        payloads.append(payload)
        peak = max(peak, held_rows)
    missed = None if runs_are_goal(demand, state) else goal_missed(len(steps))
    kept = shards and missed is None and demand.goal.chunks is Chunks.ONE_EACH
    return Trace(missed, tuple(payloads), peak, _shards(state) if kept else None)


def _most(
    state: Sequence[HeldRuns], real_rows: Callable[[int], int | None] = as_it_is
) -> int | None:
    """The most real rows that a device holds; None: some hold no whole number of them.

    Members of a group often share one value, which is looked at once.
    """
    distinct = {id(held): held for held in state}.values()
    return largest(map(real_rows, set(map(row_count, distinct))))


def _shards(state: Sequence[HeldRuns]) -> tuple[int, ...]:
    """The row of each device, of which it has one."""
    return tuple(held[0][0] for held in state)


def initial_runs(demand: Demand, devices: int) -> list[HeldRuns]:
    """Every device's runs at first."""
    every, start = (1 << devices) - 1, demand.start
    return [
        (
            (
                *((d, d + 1) if start.chunks is Chunks.OWN else (0, devices)),
                every if start.givers is Givers.EVERY else 1 << d,
            ),
        )
        for d in range(devices)
    ]


def runs_are_goal(demand: Demand, state: Sequence[HeldRuns]) -> bool:
    """All ones, or one distinct full row on each device and nothing else."""
    devices = len(state)
    every = (1 << devices) - 1
    if demand.goal.chunks is not Chunks.ONE_EACH:
        return all(held == ((0, devices, every),) for held in state)
    rows = {held[0][0] for held in state if row_count(held) == 1 and held[0][2] == every}
    return len(rows) == devices


def row_count(held: HeldRuns) -> int:
    """The number of rows that are not empty."""
    return sum(stop - start for start, stop, _ in held)


def outcome(collective: Collective, members: Sequence[HeldRuns]) -> list[HeldRuns] | ViolationKind:
    """What the members hold after a collective, or the kind of rule that it breaks."""
    match collective:
        case Collective.ALL_GATHER:
            return _gathered(members)
        case Collective.BROADCAST:
            return _shown(members)
        case Collective.ALL_REDUCE | Collective.REDUCE_SCATTER | Collective.REDUCE:
            total = _sum(members)
            if isinstance(total, ViolationKind):
                return total
            return _shared(collective, total, len(members))
        case _:
            assert_never(collective)


def _shared(
    collective: Collective, total: HeldRuns, members: int
) -> list[HeldRuns] | ViolationKind:
    """Who gets what of a sum."""
    if collective is Collective.ALL_REDUCE:
        return [total] * members
    if collective is Collective.REDUCE:
        return [total, *[()] * (members - 1)]
    each, left = divmod(row_count(total), members)
    return _cut(total, each) if left == 0 else ViolationKind.NOT_DIVISIBLE


def _sum(members: Sequence[HeldRuns]) -> HeldRuns | ViolationKind:
    """The rows of all, each with everyone's contributions: C1 of the reducing collectives."""
    rows = _covered(members[0])
    if any(_covered(held) != rows for held in members):
        return ViolationKind.ROWS_DIFFER
    if not rows:
        return ViolationKind.NO_ROWS
    cuts = sorted({row for held in members for run in held for row in run[:2]})
    at = {row: n for n, row in enumerate(cuts)}
    totals = [0] * len(cuts)
    for held in members:
        for start, stop, givers in held:
            for n in range(at[start], at[stop]):
                if totals[n] & givers:
                    return ViolationKind.DOUBLED
                totals[n] |= givers
    parts = zip(pairwise(cuts), totals[:-1], strict=True)
    return _joined([(*span, givers) for span, givers in parts if givers])


def _covered(held: HeldRuns) -> tuple[tuple[int, int], ...]:
    """The rows that are not empty, as maximal intervals."""
    return tuple((start, stop) for start, stop, _ in _joined([(a, b, 1) for a, b, _ in held]))


def _joined(runs: Sequence[Run]) -> HeldRuns:
    """Runs in order, those merged that touch and have the same contributors."""
    found: list[Run] = []
    for start, stop, givers in runs:
        if found and found[-1][1] == start and found[-1][2] == givers:
            found[-1] = (found[-1][0], stop, givers)
        else:
            found.append((start, stop, givers))
    return tuple(found)


def _cut(total: HeldRuns, each: int) -> list[HeldRuns]:
    """The rows in order, so many for each member."""
    parts: list[HeldRuns] = []
    part: list[Run] = []
    wanted = each
    for start, stop, givers in total:
        while start < stop:
            end = min(stop, start + wanted)
            part.append((start, end, givers))
            wanted -= end - start
            start = end
            if wanted == 0:
                parts.append(tuple(part))
                part, wanted = [], each
    return parts


def _gathered(members: Sequence[HeldRuns]) -> list[HeldRuns] | ViolationKind:
    """All rows of all: as many each, at least one, none in common."""
    if not all(members):
        return ViolationKind.NO_ROWS
    if len(set(map(row_count, members))) > 1:
        return ViolationKind.COUNTS_DIFFER
    runs = sorted(run for held in members for run in held)
    if any(one[1] > other[0] for one, other in pairwise(runs)):
        return ViolationKind.ROWS_OVERLAP
    return [_joined(runs)] * len(members)


def _shown(members: Sequence[HeldRuns]) -> list[HeldRuns] | ViolationKind:
    """What the first has, if it strictly contains what every other has."""
    first, *others = members
    if all(other != first and _within(other, first) for other in others):
        return [first] * len(members)
    return ViolationKind.NOT_CONTAINED


def _within(held: HeldRuns, whole: HeldRuns) -> bool:
    """Whether one device's contributions are all another's too."""
    for start, stop, givers in held:
        for begin, end, known in whole:
            if begin <= start < end and givers & ~known == 0:
                start = min(stop, end)
        if start < stop:
            return False
    return True


# Programs run on small prime factors in the place of large ones, row counts carried over.
# That a valid program is valid on every factor is the small-model theorem (docs/small-model.md);
# the default encoding rests on it, too, so on the quotient the checker is not independent of it.


PRIMES = (2, 3, 5, 7)
"""Of a quotient whose devices hold matrices."""
RUN_PRIMES = (*PRIMES, 11)
"""Of one whose devices hold runs of rows: 2,310 of them."""


def steps_of(hierarchy: Hierarchy, program: Program, factors: Sequence[int]) -> list[Step]:
    """The program's steps on positions of a reduction group with these factors."""
    return [
        Step(i.reduction, local_groups(factors, hierarchy.grouping(i)))
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
