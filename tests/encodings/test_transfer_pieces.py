"""Whole trees: each constraint alone, both solvers against brute force, and limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.errors import InputError, TooLarge
from p2smt.problems.transfer import (
    ClassMember,
    ClassPart,
    ClassRow,
    PieceFlows,
    PieceProblem,
    tick_of,
)
from p2smt.result import Result, SearchLimits, Status
from p2smt.solvers.ask import Optimum, Solver, ask
from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.plan import replay
from p2smt.transfer.ports import PortMap
from p2smt.transfer.whole import cut_evenly, solved_pieces
from tests.transfer.oracle import best_whole_s, choices
from tests.transfer.test_bound import tiny_cases

BOTH = pytest.mark.parametrize("solver", list(Solver))
HAS, LACKS = False, True
LIMITS = SearchLimits()


def asked(*pieces: list[list[bool]], slow: tuple[int, ...] = (), payload: int = 12) -> PieceProblem:
    """Pieces on the same nodes; each lists by node whether its devices need it.

    Device d has the ports 4 d to 4 d + 3 (out, into, give, take) of rate 1, slow ones a hundredth.
    """
    rows = []
    for nodes in pieces:
        number, parts = 0, []
        for node in nodes:
            members = [
                ClassMember(1, needs, *((4 * (number + i) + k,) for k in range(4)))
                for i, needs in enumerate(node)
            ]
            parts.append(ClassPart(1, tuple(members)))
            number += len(node)
        rows.append(ClassRow(1, payload, tuple(parts)))
    rates = tuple(Fraction(1, 100) if port in slow else Fraction(1) for port in range(4 * number))
    return PieceProblem(rates, tuple(rows), tick_of(rates, rows))


def solved(problem: PieceProblem, solver: Solver) -> Result[PieceFlows]:
    """The answer, which is proved."""
    found = ask(problem, Optimum(), solver, LIMITS)
    assert found.status is Status.OPTIMAL
    return found


def seconds(problem: PieceProblem, solver: Solver) -> Fraction:
    found = solved(problem, solver)
    assert found.bound is not None
    assert dict(found.stats.counters)["objective"] == found.bound
    return found.bound * problem.tick_s


@BOTH
def test_c1_only_needers_are_entered_and_nothing_leaves_a_node_for_itself(solver: Solver) -> None:
    assert seconds(asked([[HAS, LACKS]], slow=(2,)), solver) == 1200


@BOTH
def test_c2_the_first_copy_comes_over_the_network(solver: Solver) -> None:
    assert seconds(asked([[HAS, HAS], [LACKS, LACKS]]), solver) == 12
    halves = asked(*[[[HAS, HAS], [LACKS, LACKS]]] * 2, payload=6)
    assert seconds(halves, solver) == 6, "two pieces share the entry"


@BOTH
def test_c3_what_enters_is_sent(solver: Solver) -> None:
    assert seconds(asked([[HAS], [LACKS], [LACKS]]), solver) == 12, "the first sends it on"


@BOTH
def test_c4_what_enters_anywhere_is_sent_first_by_who_has_it_without(solver: Solver) -> None:
    assert seconds(asked([[HAS], [LACKS], [LACKS]], slow=(0,)), solver) == 1200
    enters_and_leaves = asked([[HAS, LACKS], [LACKS]], slow=(0, 2, 7))
    assert seconds(enters_and_leaves, solver) == 1200, "the needer beside the holder cannot begin"


@BOTH
def test_c5_what_does_not_enter_is_sent_inside(solver: Solver) -> None:
    assert seconds(asked([[HAS, HAS, LACKS]], slow=(2, 6)), solver) == 1200


@BOTH
def test_c6_needers_inside_do_not_begin(solver: Solver) -> None:
    """The two needers beside the slow holder might else feed each other."""
    assert seconds(asked([[HAS, LACKS, LACKS]], slow=(2,)), solver) == 1200


@BOTH
def test_c7_what_enters_comes_from_other_nodes(solver: Solver) -> None:
    assert seconds(asked([[HAS, LACKS], [HAS]], slow=(2, 8)), solver) == 1200


@BOTH
def test_c8_a_port_takes_no_more_than_is_allowed(solver: Solver) -> None:
    problem = asked([[HAS], [LACKS]], payload=24)
    assert seconds(problem, solver) == 24
    ticks = int(24 / problem.tick_s)
    least, below = (replace(problem, at_most=ticks - lack) for lack in (0, 1))
    assert seconds(least, solver) == 24
    assert ask(below, Optimum(), solver, LIMITS).status is Status.INFEASIBLE


def test_c9_of_pieces_that_are_alike_the_first_are_the_greatest() -> None:
    """Of two that share the entry of two devices the first is entered by the first."""
    found = solved(asked(*[[[HAS, HAS], [LACKS, LACKS]]] * 2, payload=6), Solver.CPSAT).value
    assert found is not None
    assert [[one.enters for one in piece[1]] for piece in found] == [[True, False], [False, True]]


@BOTH
def test_c10_the_busiest_device_sends_no_more_messages_than_it_must(solver: Solver) -> None:
    """A star from the holder is as fast inside where its port is, but has more messages."""
    fast = asked([[HAS, LACKS, LACKS, LACKS, LACKS]])
    fast = replace(fast, rates=(*fast.rates[:2], Fraction(100), *fast.rates[3:]))
    assert dict(solved(fast, solver).stats.counters)["messages"] == 1


def tiny() -> list[tuple[PortMap, TransferMoves]]:
    return [case for case in tiny_cases() if choices(case[1]) <= 1000]


def checked(
    solver: Solver, ports: PortMap, moves: TransferMoves, ways: int = 1
) -> tuple[Fraction, tuple[tuple[str, int], ...]]:
    """The proved time, which the trees that grow from the numbers take."""
    cut = cut_evenly(moves, ways)
    answer, pieces = solved_pieces(moves, ports, 2, cut, LIMITS, solver)
    assert answer.status is Status.OPTIMAL
    return replay(moves, pieces, ports, 2).bandwidth_s, answer.stats.counters


def test_the_solver_finds_the_best_of_all_trees() -> None:
    cases = tiny()
    assert len(cases) > 50
    for ports, moves in cases:
        assert checked(Solver.CPSAT, ports, moves)[0] == best_whole_s(moves, ports, 2)


def test_both_solvers_agree() -> None:
    cases = [case for case in tiny() if len(case[1].classes) <= 3][::3]
    assert len(cases) > 10
    for ports, moves in cases:
        assert checked(Solver.Z3, ports, moves) == checked(Solver.CPSAT, ports, moves)


def test_order_of_alike_pieces_loses_nothing() -> None:
    """Classes cut in two, against brute force over both halves."""
    cases = [case for case in tiny() if choices(case[1]) <= 60][:12]
    assert len(cases) > 5
    for ports, moves in cases:
        cut = cut_evenly(moves, 2)
        assert checked(Solver.CPSAT, ports, moves, 2)[0] == best_whole_s(moves, ports, 2, cut)


@BOTH
def test_no_time_gives_no_answer(solver: Solver) -> None:
    found = ask(asked([[HAS], [LACKS]]), Optimum(), solver, SearchLimits(time_limit_s=0.0))
    assert (found.status, found.value) == (Status.UNKNOWN, None)


@BOTH
def test_too_many_devices_are_refused(solver: Solver) -> None:
    many = asked(*[[[HAS], [LACKS] * 100]] * 200)
    with pytest.raises(TooLarge, match="devices in all"):
        ask(many, Optimum(), solver, LIMITS)


def test_pieces_stand_for_one_alone() -> None:
    problem = asked([[HAS], [LACKS]])
    with pytest.raises(InputError, match="stand for one alone"):
        replace(problem, pieces=(replace(problem.pieces[0], count=2),))
    with pytest.raises(InputError, match="a holder"):
        asked([[LACKS], [LACKS]])
    with pytest.raises(InputError, match="a rate"):
        replace(problem, rates=(Fraction(0),))


def test_ticks_are_exact_where_they_may_be() -> None:
    problem = asked([[HAS], [LACKS]], slow=(0,))
    assert problem.ticks(0, 0) * problem.tick_s == 1200
    rates = (Fraction(10**9 + 7), Fraction(10**9 + 9))
    rows = (replace(problem.pieces[0], payload_bytes=10**12),)
    assert tick_of(rates, rows) > Fraction(1, (10**9 + 7) * (10**9 + 9))
