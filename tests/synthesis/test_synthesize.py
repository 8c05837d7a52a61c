"""Synthesis end to end: answers against searches without symmetry, and against published ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt import result
from p2smt.errors import EncodingBug, InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import ScheduleClass
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.schedules.verify.report import Verdict
from p2smt.solvers.ask import Solver
from p2smt.synthesis import best_rate as best_rates
from p2smt.synthesis import frontier, synthesize
from p2smt.synthesis.best_rate import (
    FEW,
    ORBITS,
    RateQuestion,
    _Improving,
    _SymmetrySearches,
    best_rate,
    easy,
    halfway,
    inside,
    meeting,
    orbit_sums,
)
from p2smt.synthesis.certificate.certificate import BoundKind
from p2smt.synthesis.certificate.check import check_certificate
from p2smt.synthesis.frontier import Ending
from p2smt.synthesis.schedule_replay import sum_demands
from p2smt.synthesis.seeds import Seed
from p2smt.synthesis.setting import (
    MAX_PAIRS,
    NAMES,
    NO_SYMMETRY,
    Answer,
    Attempt,
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    chunk_count,
    least_rate,
    lower,
    shown_collective,
    synthesized_collective,
    tell_nobody,
    too_many_pairs,
)
from p2smt.synthesis.symmetry_search import Trial, symmetry_search_of
from tests.synthesis.late import Clock, FoundLater

PARTIAL_SUMS = ScheduleClass.PARTIAL_SUMS


@pytest.mark.parametrize("collective", NAMES)
def test_every_collective_has_a_schedule_that_is_right(collective: str) -> None:
    found = p2smt.synthesize("ring:4", collective, steps=3, rounds=6, chunks=2)
    assert found.status is Answer.SCHEDULE
    assert found.report is not None
    assert found.report.verdict is Verdict.VALID
    assert found.schedule is not None
    assert found.schedule.contract.collective == NAMES[collective]
    assert found.bound is not None
    assert found.bound.value <= found.rate


@pytest.mark.parametrize(
    ("fabric", "size", "family"),
    [
        ("mesh:4", (2, 2, 4), ScheduleClass.TREES),
        ("dgx1", (4, 4, 8), ScheduleClass.TREES),
        ("ring:5", (2, 2, 1), ScheduleClass.PARTIAL_SUMS),
    ],
)
def test_all_reduces_that_msccl_tools_calls_unsatisfiable(
    fabric: str, size: tuple[int, int, int], family: ScheduleClass
) -> None:
    steps, rounds, chunks = size
    found = p2smt.synthesize(fabric, "all-reduce", steps=steps, rounds=rounds, chunks=chunks)
    assert (found.status, found.family) == (Answer.SCHEDULE, family)


def test_what_a_bound_refutes_is_not_searched() -> None:
    found = p2smt.synthesize("dgx1", "all-gather", steps=2, rounds=4, chunks=3)
    assert (found.status, found.reason) == (Answer.NO_SCHEDULE, "no schedule (bound)")
    assert found.attempts == ()
    assert found.bound is not None
    assert found.bound.value == Fraction(3, 2)
    assert check_certificate(found.bound.certificate).valid


def test_too_few_steps_are_refuted_by_distance() -> None:
    found = p2smt.synthesize("ring:6", "all-gather", steps=2, rounds=9, chunks=1)
    assert (found.status, found.reason) == (Answer.NO_SCHEDULE, "no schedule (bound)")
    assert found.bound is not None
    assert (found.bound.kind, found.bound.value) == (BoundKind.DISTANCE, Fraction(3))
    assert not found.optimal


@pytest.mark.parametrize("collective", ["all-gather", "all-to-all"])
def test_the_frontier_of_a_dgx1_is_proved(collective: str) -> None:
    found = p2smt.synthesize_frontier("dgx1", collective)
    points = [(p.steps, p.best) for p in found.points]
    published = {
        "all-gather": [(2, Fraction(3, 2)), (3, Fraction(7, 6))],
        "all-to-all": [(2, Fraction(8, 3))],
    }
    assert points == published[collective]
    assert found.proved
    assert found.ending is Ending.LIMIT


def test_chunks_are_sums_of_orbits() -> None:
    setting = SynthesisSetting(load_fabric("ring:6"), "allreduce")
    question = RateQuestion(setting, 14, Solver.CPSAT, tell_nobody)
    assert list(orbit_sums(question, ORBITS)) == [6, 9, 12]
    assert list(orbit_sums(question, FEW)) == [3]
    odd = RateQuestion(
        SynthesisSetting(load_fabric("ring:5"), "allreduce"), 14, Solver.CPSAT, tell_nobody
    )
    assert list(orbit_sums(odd, ORBITS)) == [5, 10]
    copied = RateQuestion(
        SynthesisSetting(load_fabric("ring:6"), "allgather"), 2, Solver.CPSAT, tell_nobody
    )
    assert list(orbit_sums(copied, ORBITS)) == [1, 2]


@pytest.mark.exhaustive
def test_a_frontier_finds_what_large_groups_have() -> None:
    """A question with these sizes finds it in seconds; on two nodes no other chunks do."""
    found = p2smt.synthesize_frontier("dgx-a100:2", "all-reduce", max_steps=2)
    assert [point.best for point in found.points] == [8, 1]
    assert found.proved


def test_a_frontier_ends_where_it_is_told_to() -> None:
    found = p2smt.synthesize_frontier("ring:4", "broadcast", max_steps=3)
    assert [point.steps for point in found.points] == [2, 3]
    assert found.ending is Ending.STEPS
    late = p2smt.synthesize_frontier("ring:4", "scatter", limits=SearchLimits(0.0))
    assert (late.points, late.ending, late.proved) == ((), Ending.TIME, False)


@pytest.mark.parametrize(
    ("time_s", "known"),
    [
        (None, {3: Fraction(3), 4: Fraction(2), 5: Fraction(5, 3), 6: Fraction(7, 12)}),
        (3600.0, {3: None, 6: Fraction(7, 12)}),
    ],
)
def test_what_is_known_of_more_steps_needs_no_search(
    time_s: float | None, known: dict[int, Fraction | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop in the bound of four steps keeps each that gains; the time limit the best one.

    Three steps were searched in vain, and what was known of them is shown.
    """
    clock = Clock()

    def ended(
        setting: SynthesisSetting, steps: int | None, short: StopWatch, whole: StopWatch
    ) -> Any:
        if steps != 4:
            return least_rate(setting, steps, short, whole)
        if time_s is None:
            raise KeyboardInterrupt
        return clock.all_of(whole)

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{frontier.__name__}.least_rate", ended)
    monkeypatch.setattr(f"{frontier.__name__}.best_rate", FoundLater())
    limits = SearchLimits(time_s)
    found = p2smt.synthesize_frontier("cube:3", "all-reduce", max_steps=6, limits=limits)
    assert found.ending is (Ending.STOPPED if time_s is None else Ending.TIME)
    assert {one.steps: one.best for one in found.points} == known
    for one in found.points[1:]:
        assert one.found is not None
        assert one.found.report is not None
        assert (one.bound, one.found.report.verdict) == (found.limit, Verdict.VALID)
    assert found.points[-1].proved
    assert not found.proved


@pytest.mark.parametrize("checked", [3, 6])
def test_a_stop_while_a_known_schedule_is_checked_loses_no_other(
    checked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last point it is checked again; after the last one nothing is asked."""
    told, real = list[int](), synthesize.seeded

    def stopped(setting: SynthesisSetting, seed: Seed, *more: Any) -> Synthesis:
        told.append(seed.size.steps)
        if told.count(checked) == len(told):
            raise KeyboardInterrupt
        return real(setting, seed, *more)

    monkeypatch.setattr(f"{best_rates.__name__}.seeded", stopped)
    monkeypatch.setattr(f"{frontier.__name__}.seeded", stopped)
    monkeypatch.setattr(best_rates, "too_many_messages", lambda _: True)
    limits = SearchLimits(None if checked == 3 else 0.0)
    found = p2smt.synthesize_frontier("cube:3", "all-reduce", max_steps=6, limits=limits)
    assert found.ending is Ending.STOPPED
    assert told == ([3, 6, 5, 4, 3] if checked == 3 else [6])
    bounds = {3: Fraction(5, 6), **dict.fromkeys((4, 5, 6), Fraction(7, 12))}
    assert {one.steps: one.bound.value for one in found.points} == (bounds if checked == 3 else {})
    assert all(one.found for one in found.points)


def test_a_stop_before_any_search_shows_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an all-reduce classics come first; then the all-gathers that it is made of are sought."""

    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Improving, "run", stopped)
    found = p2smt.synthesize_frontier("cube:3", "all-reduce", max_steps=6)
    assert found.ending is Ending.STOPPED
    assert found.points
    assert all(one.found is not None and one.found.origin for one in found.points)


def test_a_search_that_time_ended_goes_on() -> None:
    """The same: without time it is not through, with enough it is."""
    setting, free = SynthesisSetting(load_fabric("ring:4"), "allgather"), SearchLimits()
    question = RateQuestion(
        setting, 24, Solver.CPSAT, tell_nobody, groups_watch=StopWatch.start(free)
    )
    bound = least_rate(setting, 2, StopWatch.start(free), StopWatch.start(free))
    assert bound is not None
    assert best_rate(question, 2, bound, None, StopWatch.start(SearchLimits(0.0))) is None
    search = question.searches[2]
    assert not search.through
    found = best_rate(question, 2, bound, None, StopWatch.start(free))
    assert question.searches[2] is search
    assert found is not None
    assert found.rate == bound.value


def test_a_stop_is_told_where_nothing_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two searches, in the first round and as searches go on."""

    def stopped(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(best_rates, "meeting", stopped)
    monkeypatch.setattr(best_rates, "easy", lambda *_: ())
    for limits in (SearchLimits(), SearchLimits(60.0)):
        found = p2smt.synthesize_frontier("ring:4", "broadcast", max_steps=2, limits=limits)
        assert found.ending is Ending.STOPPED
    later = FoundLater()
    monkeypatch.setattr(f"{frontier.__name__}.best_rate", later)
    found = p2smt.synthesize_frontier("ring:4", "broadcast", max_steps=2, limits=limits)
    assert ([*later.begun], found.ending) == ([2], Ending.STOPPED)


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce"])
@pytest.mark.parametrize("vain", [1, 2])
def test_points_that_are_open_have_what_time_is_left(
    collective: str, vain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first nothing is found, as if time were short; then all that effort alone finds.

    Once they take all that they have, and some is left; then none, and are asked a third time.
    """
    clock = Clock()
    later = FoundLater(vain, clock if vain == 1 else None)
    whole = p2smt.synthesize_frontier("ring:4", collective, max_steps=4)
    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{frontier.__name__}.best_rate", later)
    late = p2smt.synthesize_frontier("ring:4", collective, max_steps=4, limits=SearchLimits(3600.0))
    assert later.begun == dict.fromkeys((2, 3, 4), vain)
    assert late.ending is whole.ending
    assert [(one.steps, one.best) for one in late.points] == [
        (one.steps, one.best) for one in whole.points
    ]
    rates = [one.rate for one in late.schedules]
    assert rates == sorted(set(rates), reverse=True)


def test_a_stop_leaves_no_point_after_one_that_nothing_improves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two steps meet the limit as searches go on, and it is stopped then."""
    later = FoundLater()

    def stopped(question: RateQuestion, steps: int, *asked: Any) -> Synthesis | None:
        found = later(question, steps, *asked)
        question.searches[steps].stopped = found is not None
        return found

    monkeypatch.setattr(f"{frontier.__name__}.best_rate", stopped)
    limits = SearchLimits(3600.0)
    found = p2smt.synthesize_frontier("ring:4", "all-gather", max_steps=4, limits=limits)
    assert [*later.begun] == [2, 3, 4]
    assert [(one.steps, one.best) for one in found.points] == [(2, Fraction(3, 2))]
    assert (found.ending, found.proved) == (Ending.STOPPED, False)


def test_a_bound_may_take_more_than_the_part_of_its_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the frontier would end; later points have less.  That of two steps is slow."""
    clock, real = Clock(), least_rate

    def slow(
        setting: SynthesisSetting, steps: int | None, short: StopWatch, whole: StopWatch
    ) -> Any:
        clock.now += 5 * (short.remaining_s() or 0.0) * (steps == 2)
        return None if whole.expired() else real(setting, steps, short, whole)

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{frontier.__name__}.least_rate", slow)
    limits = SearchLimits(3600.0)
    found = p2smt.synthesize_frontier("ring:4", "broadcast", max_steps=4, limits=limits)
    assert [one.steps for one in found.points] == [2, 3, 4]


@pytest.mark.parametrize(
    ("most", "words"),
    [
        ({"max_chunks": 0}, "at most 0 chunks"),
        ({"max_chunks": -1}, "at most -1 chunks"),
        ({"max_steps": 1}, "every schedule has at least 2"),
    ],
)
def test_a_frontier_of_nothing_is_refused(most: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        p2smt.synthesize_frontier("ring:4", "all-gather", **most)  # type: ignore[arg-type]


def test_no_point_of_a_frontier_can_be_beaten_with_few_chunks() -> None:
    """Against every smaller size of at most three chunks, by a search without symmetry."""
    found = p2smt.synthesize_frontier("ring:4", "all-gather", max_chunks=6)
    for point in found.points:
        for chunks in (1, 2, 3):
            for rounds in range(point.steps, 8):
                if point.best is None or Fraction(rounds, chunks) < point.best:
                    one = p2smt.synthesize(
                        *("ring:4", "all-gather"),
                        steps=point.steps,
                        rounds=rounds,
                        chunks=chunks,
                        symmetry=False,
                    )
                    assert one.status is Answer.NO_SCHEDULE


@given(st.integers(1, 5), st.fractions(Fraction(1, 6), 3, max_denominator=8), st.integers(1, 30))
def test_sizes_lie_between_bound_and_best(steps: int, bound: Fraction, most: int) -> None:
    """All of them, against every pair of rounds and chunks."""
    best = bound * Fraction(3, 2)
    exact, between = list(meeting(steps, bound, most)), list(inside(steps, bound, best, most))
    every = [(r, c) for c in range(1, most + 1) for r in range(steps, 5 * most + 6)]
    assert [(s.rounds, s.chunks) for s in between] == [
        (r, c) for r, c in every if bound < Fraction(r, c) < best
    ]
    assert {(s.rounds, s.chunks) for s in exact} <= {p for p in every if Fraction(*p) == bound}
    assert all(s.steps == steps and s.rate >= bound for s in easy(steps, bound))


@pytest.mark.exhaustive
@given(st.integers(1, 4), st.fractions(Fraction(1, 6), 3, max_denominator=8), st.integers(1, 20))
def test_rates_are_halved_until_nothing_is_left(steps: int, low: Fraction, most: int) -> None:
    high = 2 * low
    left = set(inside(steps, low, high, most))
    while left:
        size = halfway(steps, low, high, most, left.__contains__)
        assert size in left
        middle = [s for s in left if abs(s.rate - (low + high) / 2) <= (high - low) / 4]
        assert size.chunks == min(s.chunks for s in middle or left)
        left.discard(size)
    assert halfway(steps, low, high, most, left.__contains__) is None


def one_way_ring() -> Fabric:
    """Three ranks; each sends to the next alone."""
    edges = tuple(FabricEdge(a, (a + 1) % 3, (a,)) for a in range(3))
    return Fabric("one-way", 3, (Capacity("", Fraction(1)),) * 3, edges)


def test_a_bound_that_no_schedule_meets_does_not_end_a_point() -> None:
    """In three steps 3/2 is refuted for 2 and for 4 chunks; 5/3 is better than two steps' 2."""
    found = p2smt.synthesize_frontier(one_way_ring(), "all-reduce", max_steps=3, max_chunks=4)
    assert [(p.best, p.proved) for p in found.points] == [(2, True), (Fraction(5, 3), False)]
    assert [p.gap for p in found.points] == [0, Fraction(1, 10)]
    assert [str(one.size) for one in found.schedules] == ["(2,2,1)", "(3,5,3)"]


@pytest.mark.parametrize("name", ["all-gather", "allgather", "all_gather"])
def test_collectives_are_named_in_any_way(name: str) -> None:
    assert shown_collective(synthesized_collective(name)) == "all-gather"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 1}, "rounds 1 in 2 steps"),
        ({"chunks": 0}, "0 chunks"),
        ({"steps": 0}, "0 steps"),
        ({"root": 1}, "root 1 of all-gather: it has no root"),
        ({"messages": 2}, "2 messages of all-gather"),
        ({"collective": "sendrecv"}, "is none of"),
        ({"fabric": Fabric("one", 1, (), ())}, "of one rank: sends nothing"),
        ({"fabric": Fabric("apart", 2, (), ())}, "has no way to rank 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, object], words: str) -> None:
    asked = {"fabric": "ring:4", "collective": "all-gather", "steps": 2, "rounds": 2, "chunks": 1}
    with pytest.raises(InputError, match=words):
        p2smt.synthesize(**{**asked, **change})  # type: ignore[arg-type]


def test_what_a_refuted_size_refutes_is_not_asked() -> None:
    """As many chunks or more in as many rounds or fewer; nor what is no better than the best."""
    setting, watch = SynthesisSetting(one_way_ring(), "allreduce"), StopWatch.start(SearchLimits())
    question = RateQuestion(setting, 8, Solver.CPSAT, tell_nobody)
    search = _Improving(question, 3, Fraction(3, 2), Fraction(2), watch)
    search.known = [_SymmetrySearches(setting, 1), _SymmetrySearches(setting, 1)]
    with_groups, without = search.known
    for size, status in (((5, 3), Status.INFEASIBLE), ((7, 4), Status.UNKNOWN)):
        one = symmetry_search_of(setting, ScheduleSize(3, *size), Solver.CPSAT, lambda _: None)
        one.known[Trial(NO_SYMMETRY, PARTIAL_SUMS)] = Attempt(1, PARTIAL_SUMS, status, 0.0)
        without.of[ScheduleSize(3, *size)] = one
    for rounds, chunks in product(range(3, 12), range(1, 8)):
        refuted = rounds <= 5 and chunks >= 3
        wanted = not refuted and Fraction(rounds, chunks) < 2
        for climbs in (with_groups, without):
            assert search._open(climbs, ScheduleSize(3, rounds, chunks)) is wanted


@pytest.mark.parametrize("collective", NAMES.values())
@pytest.mark.parametrize(("name", "ports"), [("ring:4", 8), ("dgx-a100", 16)])
def test_chunks_are_counted_before_they_are_made(collective: str, name: str, ports: int) -> None:
    fabric = load_fabric(name)
    setting = SynthesisSetting(fabric, collective)
    assert chunk_count(setting, 3) == len(sum_demands(collective, fabric.ranks, 3))
    most = MAX_PAIRS // ports // chunk_count(setting, 1)
    assert too_many_pairs(setting, most) is None
    assert too_many_pairs(setting, most + 1) is not None


def test_what_breaks_a_rule_is_not_lowered() -> None:
    """Messages that are right, and come in other rounds than they need or are said to."""
    found = p2smt.synthesize("ring:4", "all-gather", steps=2, rounds=3, chunks=2)
    assert found.sums is not None
    steps = found.sums.steps
    hasty = replace(found.sums, steps=tuple(replace(step, rounds=1) for step in steps))
    for size, sums, words in (
        (found.size, hasty, "2 steps and 2 rounds"),
        (ScheduleSize(2, 2, 2), hasty, "capacity . carries 2 chunks in 1 rounds"),
        (ScheduleSize(3, 3, 2), found.sums, "2 steps and 3 rounds"),
    ):
        with pytest.raises(EncodingBug, match=words):
            lower(found.setting, size, sums)
