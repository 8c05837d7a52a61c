"""How sizes of a point share its time, by a clock that goes on as searches say it does."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from p2smt import result
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, Status, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis import best_rate as best_rates
from p2smt.synthesis.best_rate import PointEffort, RateQuestion, _Improving
from p2smt.synthesis.setting import GroupChoice, ScheduleSize, SynthesisSetting, tell_nobody
from p2smt.synthesis.symmetry_search import FIRST_SLICE, GROWTH, ScheduleSearch, Trial
from tests.synthesis.late import Clock

FIRST = FIRST_SLICE[Solver.CPSAT]
TRIALS = tuple(
    Trial(GroupChoice(order, (ScheduleSymmetry((n,), (), ()),)), None, n)
    for n, order in enumerate((8, 4, 2))
)
HOURS_S = 10_000.0


def in_vain(
    monkeypatch: pytest.MonkeyPatch,
    collective: str,
    time_s: float | None,
    none_from: float = math.inf,
    chunks: int = 144,
    **effort: bool,
) -> tuple[_Improving, Clock]:
    """A point of ring:6 that is searched and has none: FIRST of effort take a second.

    ``chunks``: the most; ``none_from``: of so much effort at once a search ends, and says that a
    group has none.
    """
    clock = Clock()

    def search(_: Trial, limits: SearchLimits) -> Result[SumSchedule]:
        asked = limits.effort or 0
        clock.now += asked / FIRST
        return Result(Status.UNKNOWN if asked < none_from else Status.INFEASIBLE)

    def climb(*_: object) -> ScheduleSearch:
        return ScheduleSearch(iter(TRIALS), search, FIRST)

    monkeypatch.setattr(best_rates, "symmetry_search_of", climb)
    monkeypatch.setattr(f"{result.__name__}.time", clock)
    setting = SynthesisSetting(load_fabric("ring:6"), collective)
    question = RateQuestion(
        setting, chunks, Solver.CPSAT, tell_nobody, effort=PointEffort(**effort)
    )
    watch = StopWatch.start(SearchLimits(time_s))
    point = _Improving(question, 4, Fraction(1), Fraction(2), watch)
    point.run()
    return point, clock


def effort_of(point: _Improving) -> list[dict[ScheduleSize, int]]:
    """What each kind of sizes spent."""
    return [{size: one.spent for size, one in kind.of.items()} for kind in point.known]


@pytest.mark.parametrize("collective", ["allreduce", "allgather"])
def test_what_is_open_has_all_the_time(collective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By effort alone it ends; so it does where time is long, and then goes on with more."""
    free, _ = in_vain(monkeypatch, collective, None)
    assert free.grown == 1
    assert effort_of(free)[0] == {}
    late, clock = in_vain(monkeypatch, collective, HOURS_S)
    assert clock.now >= HOURS_S
    assert (late.grown > 1, late.through) == (True, False)
    for kind, before in zip(effort_of(late), effort_of(free), strict=True):
        assert all(kind.get(size, 0) >= spent for size, spent in before.items())
    brief, clock = in_vain(monkeypatch, collective, HOURS_S, timeless=True)
    assert (brief.grown, effort_of(brief)[0]) == (1, {})
    assert clock.now < HOURS_S


def test_no_size_starves_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that could meet the bound have as much, however much there is."""
    point, _ = in_vain(monkeypatch, "allreduce", HOURS_S)
    _, exact, *_ = effort_of(point)
    assert [*exact] == [ScheduleSize(4, 4, 4), ScheduleSize(4, 5, 5)]
    assert len({*exact.values()}) == 1
    most = 2 * best_rates.SIZE_SLICES * FIRST * point.grown
    assert all(spent <= most for kind in effort_of(point) for spent in kind.values())


def test_chunks_of_a_rank_are_many_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a rate below 2 in 4 steps; where little is to be spent, few."""
    for timeless, chunks in ((False, {3, 4, 6, 8, 12, 16, 24}), (True, {3})):
        point, _ = in_vain(monkeypatch, "allgather", HOURS_S, timeless=timeless)
        _, _, _, shares, _ = effort_of(point)
        assert {size.chunks for size in shares} == chunks


def test_what_ended_waits_for_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it was searched before: so the point is through."""
    for most in (FIRST * GROWTH**n for n in range(1, 4)):
        point, clock = in_vain(monkeypatch, "allgather", HOURS_S, most, chunks=5)
        assert point.grown > 1
        assert all(climb.over for kind in point.known for climb in kind.of.values())
        assert point.through
        assert clock.now < HOURS_S


def test_what_is_too_large_to_search_is_through_unless_the_time_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(best_rates, "unsearched", lambda *_: True)
    assert in_vain(monkeypatch, "allreduce", HOURS_S)[0].through
    assert not in_vain(monkeypatch, "allreduce", 0.0)[0].through


def test_groups_are_made_as_long_as_the_whole_question_has_time() -> None:
    """Not as long as the point that makes them has: later ones use them, too."""
    setting, size = SynthesisSetting(load_fabric("ring:6"), "allgather"), ScheduleSize(4, 4, 1)
    for whole, order in ((None, 6), (0.0, 1)):
        groups_watch = StopWatch.start(SearchLimits(whole))
        question = RateQuestion(setting, 24, Solver.CPSAT, tell_nobody, groups_watch=groups_watch)
        late = StopWatch.start(SearchLimits(0.0))
        point = _Improving(question, 4, Fraction(1), Fraction(2), late)
        first = next(iter(point._climb(setting, size).waiting))
        assert first.rung.order == order
