"""The best schedules by payload: never below the bound, and each where it is the best."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from p2smt import result
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.result import SearchLimits, StopWatch
from p2smt.schedules.cost.predict import payload_chunks
from p2smt.schedules.verify.report import Verdict
from p2smt.synthesis import by_size
from p2smt.synthesis.best_rate import RateQuestion, best_rate
from p2smt.synthesis.by_size import RoundPrices, SizesEnding, proved_spans
from p2smt.synthesis.certificate.sizes import check_sizes
from p2smt.synthesis.forests.pieces import ForestSeed
from p2smt.synthesis.frontier import frontier
from p2smt.synthesis.setting import (
    NAMES,
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    least_rate,
)
from p2smt.synthesis.synthesize import synthesize
from tests.synthesis.late import Clock, FoundLater
from tests.synthesis.sizes.made import ALPHA_S, HIGH, LOW, gathered, search

PAYLOADS = tuple(random.Random(39).randint(LOW, HIGH) for _ in range(200))


def test_both_rates_of_the_frontier_are_found_and_proved() -> None:
    found = gathered()
    assert [str(one.size) for one in found.schedules] == ["(2,3,2)", "(3,7,6)"]
    assert (found.proved, found.ending) == (True, SizesEnding.SEARCHED)
    assert found.certificate is not None
    assert check_sizes(found.certificate).valid


def test_forests_are_for_payloads_that_few_steps_are_too_few_for() -> None:
    """Two steps have 3/2; trees in pieces come near 7/6, after many more."""
    found = gathered(2)
    assert found.certificate is not None
    assert check_sizes(found.certificate).valid
    first, *made = found.schedules
    assert str(first.size) == "(2,3,2)"
    assert made
    for one in made:
        assert one.origin.startswith("a forest")
        assert one.report is not None
        assert one.report.verdict is Verdict.VALID
    rates = [one.rate for one in found.schedules]
    assert rates == sorted(rates, reverse=True)
    last = found.certificate.corner_at(Fraction(HIGH))
    assert last.ratio <= Fraction(11, 10)


@pytest.mark.parametrize("most_steps", [2, 6])
def test_no_time_is_below_the_bound(most_steps: int) -> None:
    """With two steps the second schedule is missing: up to the ratio, and not beyond it."""
    claim = gathered(most_steps).certificate
    assert claim is not None
    ratios = [claim.corner_at(Fraction(payload)).ratio for payload in PAYLOADS]
    assert all(1 <= ratio <= claim.ratio for ratio in ratios)
    if most_steps == 6:
        assert set(ratios) == {1}
    else:
        assert claim.ratio == max(one.ratio for one in claim.corners) > 1


def test_each_payload_has_its_best_schedule() -> None:
    """Against the times of all schedules at each payload; the pieces hold every whole byte."""
    found = gathered()
    for payload in (LOW, HIGH, *PAYLOADS):
        times = {
            one.size.steps: ALPHA_S * one.size.steps + payload * found.prices.beta_s * one.rate
            for one in found.schedules
        }
        assert times[found.piece_of(payload).found.size.steps] == min(times.values())
    pieces = found.pieces
    assert (pieces[0].low, pieces[-1].high) == (LOW, HIGH)
    assert [one.low for one in pieces[1:]] == [one.high + 1 for one in pieces[:-1]]


def test_one_more_step_alone_can_be_missing() -> None:
    """What could be better is one step away: the search says that steps, not proofs, ended it."""
    found = gathered(2)
    assert (found.proved, found.ending) == (False, SizesEnding.STEPS)
    claim = found.certificate
    assert claim is not None
    spans = proved_spans(claim.corners)
    assert [one.ratio == 1 for one in spans] == [True, False]
    assert spans[0].high == spans[1].low
    assert spans[1].ratio == claim.ratio


def test_numbers_of_steps_whose_bound_is_no_better_are_not_searched() -> None:
    """Of the smallest payload only the fewest steps: one more costs more than it could gain."""
    small = search(sizes=(LOW, LOW))
    assert small.run().proved
    assert small.searched == {2}


def test_schedules_of_another_source_join() -> None:
    """Those of the frontier, offered before: nothing is left to search, the answer is the same."""
    asked = search()
    worse = None
    for one in frontier(asked.question.setting).schedules:
        asked.offer(one)
        worse = worse or one
    assert worse is not None
    asked.offer(worse)
    found = asked.run()
    assert asked.searched == set()
    assert [one.size for one in found.schedules] == [one.size for one in gathered().schedules]
    assert found.proved


def test_offered_schedules_may_have_more_steps_than_are_searched() -> None:
    """One of three steps where two are the most: the bound beyond two steps proves it."""
    asked = search(most_steps=2)
    asked.offer(gathered().schedules[1])
    found = asked.run()
    assert asked.searched == {2}
    assert [one.size.steps for one in found.schedules] == [2, 3]
    assert found.certificate is not None
    assert check_sizes(found.certificate).valid
    assert found.proved


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> object:
        if given[1] == 3:
            raise KeyboardInterrupt
        return best_rate(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{by_size.__name__}.best_rate", interrupted)
    found = search().run()
    assert found.ending is SizesEnding.STOPPED
    assert [str(one.size) for one in found.schedules] == ["(2,3,2)"]
    assert not found.proved


def test_an_interrupt_offers_what_was_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the first search: seeds need none, and no forest is grown."""

    def stopped(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{by_size.__name__}.best_rate", stopped)
    monkeypatch.setattr(f"{by_size.__name__}.forest_seeds", stopped)
    asked = search(6, collective="allreduce")
    found = asked.run()
    assert found.ending is SizesEnding.STOPPED
    known = [seed.size for seed in asked.question.seeds.values()]
    assert [one.size for one in found.schedules] == known
    assert len(known) == 2
    assert found.certificate is not None
    assert check_sizes(found.certificate).valid


def test_time_that_came_leaves_what_gains_most_beside_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two steps there is a schedule; one of four gains, and needs no search."""
    clock = Clock()

    def slow(*_: object) -> tuple[ForestSeed, ...]:
        clock.all_of(asked.watch)
        return ()

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{by_size.__name__}.best_rate", FoundLater(clock=clock))
    asked = search(6, collective="allreduce")
    asked.offer(synthesize(asked.question.setting, ScheduleSize(2, 2, 2)))
    asked.watch = StopWatch.start(SearchLimits(3600.0))
    monkeypatch.setattr(f"{by_size.__name__}.forest_seeds", slow)
    found = asked.run()
    assert [str(one.size) for one in found.schedules] == ["(2,2,2)", "(4,6,16)"]


def test_steps_that_are_open_have_what_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first nothing is found, as if time were short; then all that effort alone finds."""
    later = FoundLater(vain=2)
    monkeypatch.setattr(f"{by_size.__name__}.best_rate", later)
    asked = search(most_steps=3)
    asked.watch = StopWatch.start(SearchLimits(3600.0))
    found = asked.run()
    assert later.begun == {2: 2, 3: 2}
    assert [one.size for one in found.schedules] == [one.size for one in gathered().schedules]
    assert (found.proved, found.ending) == (True, SizesEnding.SEARCHED)


def test_steps_that_cannot_gain_have_no_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four could, of a dozen: they share what time there is before forests, and then the rest.

    By a clock: a search in vain takes all that it has.
    """
    clock, had = Clock(), list[tuple[int, float]]()
    later = FoundLater(clock=clock)

    def asked(question: RateQuestion, steps: int, *more: Any) -> Synthesis | None:
        had.append((steps, round(more[-1].remaining_s())))
        return later(question, steps, *more)

    monkeypatch.setattr(f"{by_size.__name__}.best_rate", asked)
    monkeypatch.setattr(f"{result.__name__}.time", clock)
    sized = search(12, (LOW, 2**22))
    sized.watch = StopWatch.start(SearchLimits(3600.0))
    found = sized.run()
    assert had == [(2, 675), (3, 675), (4, 675), (5, 675), (3, 225), (2, 900)]
    assert found.ending is SizesEnding.SEARCHED
    assert [str(one.size) for one in found.schedules] == ["(2,3,2)", "(3,7,6)"]


def test_a_bound_may_take_more_than_the_part_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the search would end.  That of two steps is slow."""
    clock, real = Clock(), least_rate

    def slow(
        setting: SynthesisSetting, steps: int | None, short: StopWatch, whole: StopWatch
    ) -> Any:
        clock.now += 5 * (short.remaining_s() or 0.0) * (steps == 2)
        return None if whole.expired() else real(setting, steps, whole, whole)

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{by_size.__name__}.least_rate", slow)
    sized = search(most_steps=3)
    sized.watch = StopWatch.start(SearchLimits(3600.0))
    found = sized.run()
    assert (found.proved, found.ending) == (True, SizesEnding.SEARCHED)


def test_forests_that_take_the_time_that_is_left_are_no_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All steps were searched before, so more time would find nothing more."""
    clock = Clock()

    def slow(_: SynthesisSetting, limits: SearchLimits) -> tuple[ForestSeed, ...]:
        clock.now += limits.time_limit_s or 0.0
        return ()

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(f"{by_size.__name__}.forest_seeds", slow)
    sized = search(most_steps=2)
    sized.watch = StopWatch.start(SearchLimits(3600.0))
    found = sized.run()
    assert clock.now >= 3600.0
    assert (found.proved, found.ending) == (False, SizesEnding.STEPS)


@pytest.mark.parametrize("collective", NAMES.values())
def test_a_chunk_is_as_large_as_in_the_priced_schedule(collective: str) -> None:
    """A round of a chunk takes its bytes over the unit, whatever the collective counts."""
    fabric = load_fabric("dgx-a100")
    setting = SynthesisSetting(fabric, collective)
    found = synthesize(setting, ScheduleSize(2, 56, 1))
    assert found.schedule is not None
    assert fabric.unit is not None
    chunks = payload_chunks(found.schedule.contract)
    assert RoundPrices.of(setting, ALPHA_S).beta_s == 1 / (chunks * fabric.unit)


def test_bandwidths_without_a_unit_have_no_times() -> None:
    setting = SynthesisSetting(load_fabric("ring:4"), "allgather")
    with pytest.raises(InputError, match="without a unit"):
        RoundPrices.of(setting, ALPHA_S)
