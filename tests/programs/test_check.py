"""Checking of programs: exactly, on the quotient, and in long lists."""

from __future__ import annotations

import pytest

from p2smt.collectives.demand import Demand, demand_of
from p2smt.collectives.names import RequestKind
from p2smt.errors import TooLarge
from p2smt.programs import check as checking
from p2smt.programs import semantics
from p2smt.programs.check import ApartChecker, ListChecker, check_program, list_checker
from p2smt.programs.program import Hierarchy, Program, parse_program
from p2smt.programs.semantics import ViolationKind
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import Task, list_programs

KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)
BLUE_CONNECT = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"


def every(kind: RequestKind, hierarchy: Hierarchy, length: int) -> tuple[Program, ...]:
    result, _ = list_programs(Task(kind, hierarchy, length), SearchLimits())
    assert result.status is Status.COMPLETE
    return result.value or ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(4, 2), (3, 4), (2, 3, 4), (4, 2, 2)])
def test_quotient_agrees_with_devices(
    monkeypatch: pytest.MonkeyPatch, kind: RequestKind, factors: tuple[int, ...]
) -> None:
    """Where both fit: the same verdict, payloads and peak for every program."""
    hierarchy = Hierarchy.plain(factors)
    programs = every(kind, hierarchy, 4)
    exact = [check_program(demand_of(kind), hierarchy, program) for program in programs]
    monkeypatch.setattr(semantics, "MAX_DEVICES", hierarchy.size - 1)
    monkeypatch.setattr(checking, "PRIMES", (2, 3, 5)[: len(factors)])
    monkeypatch.setattr(semantics, "initial_state", unlimited(monkeypatch))
    for program, on_devices in zip(programs, exact, strict=True):
        quotient = check_program(demand_of(kind), hierarchy, program)
        assert not quotient.exact
        assert on_devices.exact
        assert quotient.trace.violation is None
        assert quotient.trace.payload_rows == on_devices.trace.payload_rows
        assert quotient.trace.peak_rows == on_devices.trace.peak_rows


def unlimited(monkeypatch: pytest.MonkeyPatch) -> object:
    """The initial state without its limit on the number of devices."""
    original = semantics.initial_state

    def initial(demand: Demand, devices: int) -> semantics.State:
        with monkeypatch.context() as patch:
            patch.setattr(semantics, "MAX_DEVICES", 10**6)
            return original(demand, devices)

    return initial


def test_large_groups_are_checked_on_the_quotient_and_say_so() -> None:
    hierarchy = Hierarchy.plain((256, 256))
    checked = check_program(
        demand_of(RequestKind.ALL_REDUCE), hierarchy, parse_program(BLUE_CONNECT)
    )
    assert checked.how == "quotient 2x3"
    assert checked.trace.violation is None
    assert checked.trace.payload_rows == (65536, 256, 65536)
    assert checked.trace.peak_rows == 65536


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("all-reduce inside l1; all-reduce inside l1", ViolationKind.DOUBLED),
        ("all-reduce inside l1", ViolationKind.GOAL_MISSED),
        ("all-reduce inside root; all-reduce inside l1", ViolationKind.AFTER_GOAL),
        ("all-gather inside root", ViolationKind.ROWS_OVERLAP),
    ],
)
@pytest.mark.parametrize("factors", [(2, 4), (256, 256)])
def test_wrong_programs_are_refused(
    factors: tuple[int, ...], text: str, kind: ViolationKind
) -> None:
    hierarchy, program = Hierarchy.plain(factors), parse_program(text)
    broken = check_program(demand_of(RequestKind.ALL_REDUCE), hierarchy, program).trace.violation
    listed = ListChecker(demand_of(RequestKind.ALL_REDUCE), hierarchy).violation(program)
    assert broken is not None
    assert listed is not None
    assert (broken.kind, listed.kind) == (kind, kind)


def test_no_quotient_outside_the_range_of_the_small_model() -> None:
    deep = Hierarchy.plain((8, 8, 8, 8, 8))
    with pytest.raises(TooLarge, match="up to 16384 devices"):
        check_program(
            demand_of(RequestKind.ALL_REDUCE),
            deep,
            parse_program(
                "reduce-scatter inside l4; reduce-scatter parallel l4 in l3; "
                "reduce-scatter parallel l3 in l2; reduce-scatter parallel l2 in l1; "
                "all-reduce parallel l1 in root; all-gather parallel l2 in l1; all-gather inside l2"
            ),
        )


def test_list_checker_runs_on_the_real_factors_while_they_are_few() -> None:
    assert ListChecker(demand_of(RequestKind.ALL_REDUCE), Hierarchy.plain((8, 8))).exact
    large = ListChecker(demand_of(RequestKind.ALL_REDUCE), Hierarchy.plain((16, 16, 32)))
    assert (large.exact, large.factors) == (False, (2, 3, 5))
    assert ListChecker(
        demand_of(RequestKind.ALL_REDUCE), Hierarchy.plain((16, 16, 32, 8))
    ).factors == (*(3, 2, 2, 2),)


def test_no_list_beyond_the_range_stands_on_other_factors() -> None:
    demand = demand_of(RequestKind.ALL_REDUCE)
    with pytest.raises(TooLarge, match="ask for the best, or for length 6"):
        list_checker(demand, Hierarchy.plain((4, 4, 8)), 7)
    assert list_checker(demand, Hierarchy.plain((4, 4, 4)), 7).exact
    assert not list_checker(demand, Hierarchy.plain((16, 8)), 16).exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_lists_over_many_levels_are_checked_on_those_told_apart(
    kind: RequestKind, length: int
) -> None:
    """Each program, and with a step more or one less, is as on all levels."""
    hierarchy, demand = Hierarchy.plain((3, 2, 2, 2, 2, 2)), demand_of(kind)
    apart, whole = list_checker(demand, hierarchy, length), ListChecker(demand, hierarchy)
    assert isinstance(apart, ApartChecker)
    assert apart.factors == (3, 2, 2, 2, 2)
    for program in every(kind, hierarchy, length):
        first, *rest = program.instructions
        for changed in (program, Program((first, first, *rest)), Program(tuple(rest))):
            ours, theirs = apart.violation(changed), whole.violation(changed)
            assert (ours is None) is (theirs is None)
            if ours is not None and theirs is not None:
                assert ours.kind is theirs.kind


def test_a_long_program_that_tells_two_levels_apart_is_one_over_two() -> None:
    """Of any length; over three levels there would be too many devices to simulate."""
    large = Hierarchy.plain((64, 64, 64))
    twice = "; ".join(["reduce-scatter inside l1", "all-gather inside l1"] * 3)
    program = parse_program(f"all-reduce parallel l1 in root; {twice}")
    broken = check_program(demand_of(RequestKind.ALL_REDUCE), large, program).trace.violation
    assert broken is not None
    assert (broken.kind, broken.step) == (ViolationKind.AFTER_GOAL, 4)
