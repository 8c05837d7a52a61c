"""Programs on runs of rows against the semantics on whole matrices."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.problems.placement import reduction_items
from p2smt.programs import check, semantics
from p2smt.programs import check as runs
from p2smt.programs.check import Checked, Quotient, check_program, run_on_runs, steps_of
from p2smt.programs.preconditions import Violation, ViolationKind
from p2smt.programs.program import Hierarchy, local_groups, parse_program
from p2smt.programs.semantics import Step, Trace
from p2smt.result import SearchLimits
from p2smt.search.program_synthesis import Task, list_programs
from tests.strategies.draws import Draws, draws
from tests.tiers import but_the_first

KINDS = [kind for kind in RequestKind if kind.has_programs]
FACTORS = [(4,), (3, 2), (2, 3), (2, 2, 2), (2, 3, 2), (4, 3, 2)]


def shown(broken: Violation | None) -> tuple[int, bool] | None:
    """At which step a program breaks a rule, and whether that is about the goal."""
    if broken is None:
        return None
    goal = broken.kind in (ViolationKind.AFTER_GOAL, ViolationKind.GOAL_MISSED)
    return broken.step, goal


@given(st.sampled_from(KINDS), st.sampled_from(FACTORS), draws())
def test_any_program_as_by_the_semantics(
    kind: RequestKind, factors: tuple[int, ...], data: Draws
) -> None:
    """Steps are drawn among those that are allowed, and now and then among all."""
    demand, devices = demand_of(kind), math.prod(factors)
    items = reduction_items(len(factors))
    steps: list[Step] = []
    for _ in range(data.draw(st.integers(1, 7))):
        every = [Step(c, local_groups(factors, g)) for c, g in items]
        allowed = [s for s in every if not _breaks(semantics.run(demand, devices, [*steps, s]))]
        any_step = data.draw(st.integers(0, 9)) == 0
        steps.append(data.draw(st.sampled_from(every if any_step or not allowed else allowed)))
    ours, theirs = run_on_runs(demand, devices, steps), semantics.run(demand, devices, steps)
    assert shown(ours.violation) == shown(theirs.violation)
    assert ours.payload_rows == theirs.payload_rows
    assert ours.peak_rows == theirs.peak_rows


def _breaks(trace: semantics.Trace) -> bool:
    return trace.violation is not None and trace.violation.kind is not ViolationKind.GOAL_MISSED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", but_the_first((2, 3), (3, 2, 2), (2, 2, 3), (2, 4, 3)))
def test_every_step_from_every_state(kind: RequestKind, factors: tuple[int, ...]) -> None:
    """All states of up to three steps, and each instruction on each group of them."""
    demand, devices = demand_of(kind), math.prod(factors)
    steps = [Step(c, local_groups(factors, g)) for c, g in reduction_items(len(factors))]
    start = semantics.initial_state(demand, devices)
    layer = {start.tobytes(): (start, runs.initial_runs(demand, devices))}
    for _ in range(3):
        after = {}
        for matrices, held in layer.values():
            assert semantics.is_goal(demand, matrices) is runs.runs_are_goal(demand, held)
            for step in steps:
                one = matrices.copy()
                broken = semantics.apply(one, step, 1)
                other = _applied(held, step)
                assert (other is None) is isinstance(broken, Violation)
                if other is not None:
                    assert _matrices(other) == one.tolist()
                    after[one.tobytes()] = one, other
        layer = after


def _applied(held: list[runs.HeldRuns], step: Step) -> list[runs.HeldRuns] | None:
    after = list(held)
    for group in step.groups.tolist():
        found = runs.outcome(step.collective, [held[device] for device in group])
        if isinstance(found, ViolationKind):
            return None
        for device, content in zip(group, found, strict=True):
            after[device] = content
    return after


def _matrices(held: list[runs.HeldRuns]) -> list[list[list[int]]]:
    """Words of each row of each device, as the semantics has them."""
    rows = [[[0] for _ in held] for _ in held]
    for device, content in enumerate(held):
        for start, stop, givers in content:
            assert start < stop
            for row in range(start, stop):
                assert rows[device][row] == [0]
                rows[device][row] = [givers]
    return rows


DEEP = Hierarchy.plain((2, 4, 4, 8, 8))
FIVE_LEVELS = (
    "reduce-scatter inside l4; reduce-scatter parallel l4 in l3; all-reduce parallel l3 in root; "
    "all-gather parallel l4 in l3; all-gather inside l4"
)
APART = (
    "all-reduce parallel l2 in l1; all-reduce inside l4; all-reduce parallel l3 in l2; "
    "all-reduce parallel l1 in root; all-reduce parallel l4 in l3"
)


def test_2048_devices_are_simulated() -> None:
    demand = demand_of(RequestKind.ALL_REDUCE)
    trace = run_on_runs(demand, 2048, steps_of(DEEP, parse_program(FIVE_LEVELS), DEEP.factors))
    assert trace.violation is None
    assert trace.payload_rows == (2048, 256, 32, 256, 2048)
    assert trace.peak_rows == 2048
    quotient = check_program(demand, DEEP, parse_program(FIVE_LEVELS))
    assert (quotient.exact, quotient.trace) == (False, trace)


def test_steps_that_tell_five_levels_apart_are_checked_device_by_device() -> None:
    demand, program = demand_of(RequestKind.ALL_REDUCE), parse_program(APART)
    checked = check_program(demand, DEEP, program)
    assert (checked.how, checked.factors) == ("devices", DEEP.factors)
    assert checked.trace == Trace(None, (2048,) * 5, 2048)
    twice = parse_program(APART.replace("l4 in l3", "l2 in l1"))
    broken = check_program(demand, DEEP, twice).trace.violation
    assert broken is not None
    assert (broken.kind, broken.step) == (ViolationKind.DOUBLED, 5)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (RequestKind.ALL_REDUCE, "all-reduce inside l1; all-reduce parallel l1 in root"),
        (
            RequestKind.REDUCE_SCATTER,
            "reduce-scatter inside l1; reduce-scatter parallel l1 in root",
        ),
        (RequestKind.ALL_GATHER, "all-gather parallel l1 in root; all-gather inside l1"),
        (RequestKind.ALL_REDUCE, "all-reduce inside l1"),
        (RequestKind.ALL_REDUCE, "all-reduce inside root; all-reduce inside l1"),
    ],
)
def test_large_groups_are_checked_as_by_the_semantics(
    kind: RequestKind, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On runs where the program is valid, and with the same words where it is not."""
    factors = (3, 4)
    hierarchy = Hierarchy.plain(factors)
    program = hierarchy.canonical(parse_program(text))
    monkeypatch.setattr(check, "MAX_MATRICES", 11)
    found = check_program(demand_of(kind), hierarchy, program)
    steps = steps_of(hierarchy, program, factors)
    assert found == Checked(semantics.run(demand_of(kind), 12, steps), factors, True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", but_the_first((8, 4), (2, 8), (4, 2, 8), (6, 10, 4)))
def test_runs_on_primes_are_the_quotient(kind: RequestKind, factors: tuple[int, ...]) -> None:
    """Every program on runs that stand for larger groups, as on the quotient's matrices."""
    demand, hierarchy = demand_of(kind), Hierarchy.plain(factors)
    primes = (2, 3, 5)[: len(factors)]
    quotient = Quotient(primes, factors)
    programs, _ = list_programs(Task(kind, hierarchy, 4), SearchLimits())
    assert programs.value
    for program in programs.value:
        steps = steps_of(hierarchy, program, primes)
        ours = run_on_runs(demand, math.prod(primes), steps, real_rows=quotient.real_rows)
        assert ours == replace(quotient.run(demand, hierarchy, program), shards=None)


def test_rows_that_are_no_whole_number_of_real_ones() -> None:
    """A step after which a device has 3 rows of 6, where these stand for half a row."""
    demand, primes = demand_of(RequestKind.REDUCE_SCATTER), (2, 3)
    program = parse_program("reduce-scatter parallel l1 in root; reduce-scatter inside l1")
    steps = steps_of(Hierarchy.plain(primes), program, primes)
    found = run_on_runs(demand, 6, steps, real_rows=lambda count: 1 if count == 6 else None)
    assert found.violation is not None
    assert (found.violation.kind, found.violation.step) == (ViolationKind.NOT_DIVISIBLE, 1)
    assert (found.payload_rows, found.peak_rows) == ((), 1)


def test_beyond_16384_devices_five_levels_are_checked_on_primes() -> None:
    demand, program = demand_of(RequestKind.ALL_REDUCE), parse_program(APART)
    large = Hierarchy.plain((8,) * 5)
    checked = check_program(demand, large, program)
    assert checked.how == "quotient 2x3x5x7x11"
    assert checked.trace == Trace(None, (8**5,) * 5, 8**5)
    twice = parse_program(APART.replace("l4 in l3", "l2 in l1"))
    broken = check_program(demand, large, twice).trace.violation
    assert broken is not None
    assert broken.step == 5
