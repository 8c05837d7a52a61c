"""The replay of schedules of sums: every collective's demands, and every rule broken once."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.errors import InputError
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.synthesis.schedule_replay import SumDemand, broken_sum_rule, spreads, sum_demands


@pytest.mark.parametrize(
    ("collective", "wanted"),
    [
        ("allreduce", [((0, 1, 2), (0, 1, 2))]),
        ("reduce", [((0, 1, 2), (1,))]),
        ("reduce_scatter", [((0, 1, 2), (0,)), ((0, 1, 2), (1,)), ((0, 1, 2), (2,))]),
        ("allgather", [((0,), (1, 2)), ((1,), (0, 2)), ((2,), (0, 1))]),
        ("broadcast", [((1,), (0, 2))]),
        ("scatter", [((1,), (0,)), ((1,), (2,))]),
        ("gather", [((0,), (1,)), ((2,), (1,))]),
        (
            "alltoall",
            [((0,), (1,)), ((0,), (2,)), ((1,), (0,)), ((1,), (2,)), ((2,), (0,)), ((2,), (1,))],
        ),
    ],
)
def test_what_collectives_ask_for(
    collective: str, wanted: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    demands = sum_demands(collective, 3, 2, root=1)
    assert [(one.inputs, one.goals) for one in demands[::2]] == wanted
    assert demands[::2] == demands[1::2]


@pytest.mark.parametrize("collective", ["allgather", "broadcast", "scatter", "gather", "alltoall"])
def test_what_copies_asks_for_the_same_as_it_spreads(collective: str) -> None:
    demands = sum_demands(collective, 4, 3, root=2)
    routes = spreads(collective, 4, 3, root=2)
    assert [(one.inputs, one.goals) for one in demands] == [((r.root,), r.goals) for r in routes]


@pytest.mark.parametrize("collective", ["sendrecv", "nothing"])
def test_other_collectives_are_refused(collective: str) -> None:
    with pytest.raises(InputError, match="is none of allreduce, allgather"):
        sum_demands(collective, 3, 1)


EDGES = ((0, 1, (0,)), (1, 0, (1,)), (1, 2, (0, 2)), (2, 1, (3,)))
"""A line of three ranks; what leaves rank 0 and what leaves 1 for 2 share a capacity."""
RATES = (Fraction(1, 2), Fraction(1), Fraction(1), Fraction(1))
DEMANDS = (SumDemand((0, 1, 2), (0, 1, 2)),)
LEFT, RIGHT = Arrival(0, 0), Arrival(0, 3)
LINE = SumSchedule(
    (
        SumStep(2, (SumSend(0, 0, (None,)), SumSend(0, 3, (None,)))),
        SumStep(2, (SumSend(0, 1, (None, RIGHT)), SumSend(0, 2, (LEFT, None)))),
    ),
    (
        FinalSum(0, 0, (None, Arrival(1, 1))),
        FinalSum(0, 1, (None, LEFT, RIGHT)),
        FinalSum(0, 2, (Arrival(1, 2), None)),
    ),
)
"""The ends send their inputs to the middle, which passes on to each the other's and its own."""


def broken(schedule: SumSchedule, demands: tuple[SumDemand, ...] = DEMANDS) -> str:
    return broken_sum_rule(schedule, EDGES, RATES, demands) or ""


def test_a_right_schedule_breaks_no_rule() -> None:
    assert broken(LINE) == ""


def first(*sends: SumSend, rounds: int = 2) -> SumSchedule:
    return replace(LINE, steps=(SumStep(rounds, sends), LINE.steps[1]))


def second(*sends: SumSend, rounds: int = 2) -> SumSchedule:
    return replace(LINE, steps=(LINE.steps[0], SumStep(rounds, sends)))


def ending(*parts: Arrival | None) -> SumSchedule:
    """Rank 1 makes its result of these."""
    return replace(LINE, results=(LINE.results[0], FinalSum(0, 1, parts), LINE.results[2]))


ONE, OTHER = LINE.steps[0].sends
BACK, ON = LINE.steps[1].sends


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        (first(ONE, OTHER, rounds=1), "step 1: capacity 0 carries 1 chunks in 1 rounds"),
        (first(ONE, OTHER, rounds=0), "step 1: it has 0 rounds"),
        (first(ONE), r"step 2: chunk 0 over edge 1 adds Arrival\(step=0, edge=3"),
        (first(OTHER, ONE), "step 1: its messages are not in order"),
        (first(ONE, ONE, OTHER, rounds=4), "not in order, each once"),
        (first(ONE, replace(OTHER, slot=1)), "there is no message 1 of chunk 0 over edge 3"),
        (first(ONE, replace(OTHER, edge=4)), "there is no message 0 of chunk 0 over edge 4"),
        (first(ONE, replace(OTHER, edge=-1)), "there is no message 0 of chunk 0 over edge -1"),
        (first(ONE, replace(OTHER, chunk=1)), "there is no message 0 of chunk 1"),
        (first(ONE, replace(OTHER, parts=())), "chunk 0 over edge 3 has no parts"),
        (first(ONE, replace(OTHER, parts=(RIGHT,))), "step 1: .* which is not there"),
        (second(BACK, replace(ON, parts=(LEFT, LEFT))), "has the input of rank 0 twice"),
        (second(BACK, replace(ON, parts=(Arrival(1, 0),))), "which is not there"),
        (second(BACK, replace(ON, parts=(None,))), "chunk 0 at rank 2 lacks the input of rank 0"),
        (second(BACK, replace(ON, parts=(LEFT, None, RIGHT))), "has the input of rank 2 twice"),
        (ending(None, LEFT), "the result of chunk 0 at rank 1 lacks the input of rank 2"),
        (ending(None, LEFT, RIGHT, None), "at rank 1 has the input of rank 1 twice"),
        (ending(), "at rank 1 has no parts"),
        (replace(LINE, results=LINE.results[1:]), r"not those asked for, in order: \[\(0, 0\)\]"),
        (replace(LINE, results=LINE.results[::-1]), "not those asked for, in order"),
        (replace(LINE, results=(*LINE.results, LINE.results[2])), "not those asked for, in order"),
    ],
)
def test_a_broken_rule_is_named(schedule: SumSchedule, rule: str) -> None:
    assert re.search(rule, broken(schedule)), broken(schedule)


def test_a_rank_without_an_input_has_none_to_add() -> None:
    reduce = (SumDemand((0, 1), (1,)),)
    schedule = SumSchedule((SumStep(2, (ONE, OTHER)),), (FinalSum(0, 1, (None, LEFT)),))
    assert "edge 3 adds an own input, which is not there" in broken(schedule, reduce)
    less = replace(schedule, steps=(SumStep(2, (ONE,)),))
    assert broken(less, reduce) == ""


def test_several_messages_are_told_apart_by_their_slots() -> None:
    """Rank 1 sends 2 its own input and the one from 0, and 2 adds them."""
    twice = (replace(ON, parts=(LEFT,)), replace(ON, parts=(None,), slot=1))
    schedule = second(BACK, *twice, rounds=4)
    ends = (*LINE.results[:2], FinalSum(0, 2, (None, Arrival(1, 2), Arrival(1, 2, 1))))
    schedule = replace(schedule, results=ends)
    assert broken_sum_rule(schedule, EDGES, RATES, DEMANDS, messages=2) is None
    assert "no message 1" in broken(schedule)
