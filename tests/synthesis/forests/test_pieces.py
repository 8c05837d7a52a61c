"""Forests lowered to schedules: right in every interleaving, and how long their steps take."""

from __future__ import annotations

from fractions import Fraction

import pytest

from p2smt.result import SearchLimits
from p2smt.schedules.verify.report import Verdict
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.forests.pieces import PieceSchedule, in_pieces
from p2smt.synthesis.forests.throughput import Throughput
from tests.refusals import refusal
from tests.synthesis.forests.test_rate import ground, grown

OWN = BoundedCollective


def made(
    fabric: str, collective: BoundedCollective, pieces: int, without: str = ""
) -> tuple[Throughput, PieceSchedule]:
    """A forest and its schedule."""
    where = ground(fabric, collective, without)
    found = grown(where, collective)
    schedule = in_pieces(where, found, pieces, SearchLimits())
    assert schedule is not None
    return found, schedule


@pytest.mark.parametrize(
    "collective", [OWN.ALL_GATHER, OWN.REDUCE_SCATTER, OWN.BROADCAST, OWN.REDUCE, OWN.ALL_REDUCE]
)
@pytest.mark.parametrize(
    ("fabric", "pieces", "without"),
    [
        ("ring:4", 1, ""),
        ("ring:5", 3, "link 0-1"),
        pytest.param("dgx1", 3, "", marks=pytest.mark.exhaustive),
        pytest.param("dgx-a100:2", 2, "card 3", marks=pytest.mark.exhaustive),
    ],
)
def test_schedules_are_right(
    fabric: str, pieces: int, without: str, collective: BoundedCollective
) -> None:
    found, schedule = made(fabric, collective, pieces, without)
    assert schedule.report.verdict is Verdict.VALID
    assert schedule.time >= found.claim.time


@pytest.mark.parametrize(
    ("fabric", "collective", "pieces", "over"),
    [
        ("ring:8", OWN.ALL_GATHER, 40, "11/10"),
        ("dgx1", OWN.ALL_GATHER, 24, "6/5"),
        ("torus:3x3", OWN.ALL_REDUCE, 8, "7/5"),
        pytest.param("dgx-a100:2", OWN.ALL_GATHER, 26, "23/20", marks=pytest.mark.exhaustive),
    ],
)
def test_many_pieces_come_near_the_forest(
    fabric: str, collective: BoundedCollective, pieces: int, over: str
) -> None:
    found, schedule = made(fabric, collective, pieces)
    assert schedule.time <= found.claim.time * Fraction(over)


def test_the_same_question_has_the_same_schedule() -> None:
    first, second = (made("dgx1", OWN.ALL_REDUCE, 4)[1] for _ in range(2))
    assert first.schedule == second.schedule


def test_too_many_messages_are_refused() -> None:
    where = ground("torus:8x8")
    found = grown(where, OWN.ALL_GATHER)
    text = refusal(in_pieces, where, found, 1000, SearchLimits())
    assert "messages" in text
    assert "fewer pieces" in text


def test_time_that_is_over_makes_no_schedule() -> None:
    where = ground("dgx1")
    found = grown(where, OWN.ALL_GATHER)
    assert in_pieces(where, found, 4, SearchLimits(time_limit_s=0.0)) is None
