"""Forests lowered to schedules: right in every interleaving, and how long their steps take."""

from __future__ import annotations

from fractions import Fraction

import pytest

from p2smt import result
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.packing import PackingProblem, PackingShares
from p2smt.result import Result, SearchLimits, StopWatch
from p2smt.schedules.verify.report import Verdict
from p2smt.solvers.ask import ask_packing
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.forests import packing
from p2smt.synthesis.forests.pieces import PieceSchedule, forest_seeds, in_pieces
from p2smt.synthesis.forests.throughput import Throughput, throughput
from p2smt.synthesis.setting import SynthesisSetting, least_rate, lower
from tests.refusals import refusal
from tests.synthesis.forests.test_rate import ground, grown
from tests.synthesis.late import Clock

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


def test_time_that_ends_as_trees_are_added_leaves_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a forest that is not the best, and of its images: the last trees have no weights then."""
    where, clock = ground("mi250", OWN.ALL_REDUCE), Clock()

    def ask(problem: PackingProblem, limits: SearchLimits) -> Result[PackingShares]:
        clock.now += limits.time_limit_s or 0.0
        return ask_packing(problem, SearchLimits())

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(packing, "ask_packing", ask)
    found = throughput(where, OWN.ALL_REDUCE, SearchLimits(3600.0))
    assert found is not None
    assert found.gap > 0
    schedule = in_pieces(where, found, 1, SearchLimits(3600.0))
    assert schedule is not None
    assert schedule.report.verdict is Verdict.VALID


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


@pytest.mark.parametrize("collective", ["allgather", "reduce", "allreduce"])
@pytest.mark.parametrize("fabric", ["ring:4", "dgx1"])
def test_seeds_go_over_the_edges_of_the_fabric(fabric: str, collective: str) -> None:
    """Replayed and verified by lower, and never below the bound."""
    setting = SynthesisSetting(load_fabric(fabric), collective)
    seeds = [one for one, _ in zip(forest_seeds(setting, SearchLimits()), range(18), strict=False)]
    for one in seeds[:2]:
        _, report = lower(setting, one.size, one.seed.sums)
        assert report.verdict is Verdict.VALID
    least = least_rate(setting, None, *[StopWatch.start(SearchLimits())] * 2)
    assert least is not None
    rates = [one.size.rate for one in seeds]
    assert least.value <= min(rates) <= rates[0]


def test_no_trees_carry_what_each_pair_has_for_itself() -> None:
    setting = SynthesisSetting(load_fabric("ring:4"), "alltoall")
    assert list(forest_seeds(setting, SearchLimits())) == []


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
