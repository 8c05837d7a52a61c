"""Programs on thousands of devices, one by one: what a device holds as runs of rows.

The same rules as :mod:`p2smt.programs.semantics`, which fills whole matrices.  Here neighbouring
rows with the same contributions are one run (first row, row after the last, contributors as the
bits of a number), so a device's matrix is a few numbers whatever its size.  Nothing is shared with
the encodings, and no property of small sizes is used: the factors are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import assert_never

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective
from p2smt.programs.preconditions import Violation, ViolationKind
from p2smt.programs.quotient import after_goal, goal_missed, largest, uneven
from p2smt.programs.semantics import Step, Trace

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
