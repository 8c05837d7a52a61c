"""Simulated searches against list scheduling by hand, and the page against its results."""

from __future__ import annotations

import heapq
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.scaling import store
from experiments.scaling.gantt import CubeBar, LostTime, draw_gantt, timeline_of
from experiments.scaling.page import PAGE, page
from experiments.scaling.simulate import Delays, MeasuredCube, simulate, work_of
from p2smt.parallel_search.journal.record import (
    Continuation,
    JournalEntry,
    JournalRecord,
    JournalText,
    SplitRecord,
)
from p2smt.parallel_search.subproblem import Closure, Member, Subproblem, SubproblemVerdict

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=30)


def plain(lengths: Sequence[float]) -> list[MeasuredCube]:
    return [MeasuredCube(float(length), float(length)) for length in lengths]


def list_schedule(lengths: Sequence[int], workers: int) -> int:
    """The makespan where each cube goes to the worker that is free first."""
    free = [0] * workers
    for length in lengths:
        heapq.heappush(free, heapq.heappop(free) + length)
    return max(free)


@given(LENGTHS, st.integers(1, 8))
def test_without_delays_it_is_list_scheduling(lengths: list[int], workers: int) -> None:
    run = simulate(plain(lengths), workers)
    assert run.makespan_s == list_schedule(lengths, workers)
    assert (run.closed, run.split, run.dropped) == (len(lengths), 0, 0)
    assert run.busy_s == work_of(plain(lengths)) == sum(lengths)


@given(LENGTHS, st.integers(1, 8))
def test_no_schedule_beats_the_two_bounds(lengths: list[int], workers: int) -> None:
    run = simulate(plain(lengths), workers, Delays(0.5, 0.25))
    assert run.makespan_s >= max(sum(lengths) / workers, max(lengths)) + 1.25
    assert 0 < run.efficiency(sum(lengths), workers) < 1


@given(LENGTHS)
def test_one_worker_pays_every_delay(lengths: list[int]) -> None:
    run = simulate(plain(lengths), 1, Delays(0.5, 0.25))
    assert run.makespan_s == sum(lengths) + 1.25 * len(lengths)


@given(LENGTHS)
def test_one_worker_that_has_the_next_cube_at_hand_waits_for_the_first_and_the_last(
    lengths: list[int],
) -> None:
    """But for the last cubes: none is at hand while no more wait than there are workers."""
    run = simulate(plain(lengths), 1, Delays(0.125, 0.25, worker_s=0.5, ahead=1))
    work_s = sum(lengths) + 0.5 * len(lengths)
    waits = 1 if len(lengths) < 2 else 2
    assert run.makespan_s == work_s + waits * 0.5


def test_what_is_at_hand_begins_when_its_worker_is_free() -> None:
    cubes = plain([4.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert simulate(cubes, 2, Delays(1.0)).makespan_s == 4 * (1 + 1 + 1)
    assert simulate(cubes, 2, Delays(1.0, ahead=1)).makespan_s == 9


def test_a_coordinator_that_is_slower_than_its_workers_decides_the_time() -> None:
    run = simulate(plain([1.0] * 100), 1000, Delays(0.0, 2.0))
    assert run.makespan_s == 100 * 2.0 + 1.0


def test_a_worker_s_first_cube_takes_longer() -> None:
    cubes = [MeasuredCube(1.0, 5.0)] * 6
    assert simulate(cubes, 2).makespan_s == 5 + 1 + 1
    assert simulate(cubes, 6).makespan_s == 5


def test_a_split_cube_costs_its_budget_and_its_children() -> None:
    whole = MeasuredCube(10.0, 10.0, children=tuple(plain([4.0, 4.0, 4.0])))
    assert simulate([whole], 3).makespan_s == 10
    run = simulate([whole], 3, Delays(0.0, 0.0, 0.5), budget_s=1.0)
    assert (run.makespan_s, run.busy_s) == (1 + 1.5 + 4, 13)
    assert (run.closed, run.split) == (3, 1)
    assert simulate([whole], 3, budget_s=11.0).split == 0


def test_an_incumbent_drops_what_its_bound_excludes_once_it_is_known() -> None:
    cubes = [
        MeasuredCube(1.0, 1.0, 0, 7),
        MeasuredCube(3.0, 3.0, 6, 9),
        MeasuredCube(2.0, 2.0, 7, 8),
    ]
    assert simulate(cubes, 1, prunes=True).dropped == 1
    assert simulate(cubes, 2, prunes=True).dropped == 1
    assert simulate(cubes, 3, prunes=True).dropped == 0
    assert simulate(cubes, 1).dropped == 0


def test_the_page_is_that_of_its_results() -> None:
    assert page(store.read()) == PAGE.read_text(), "run: python -m experiments.scaling.page"


@pytest.mark.parametrize("part", ["overhead", "two", "waited", "simulated", "pruning", "deaths"])
def test_every_part_has_a_place_on_the_page(part: str) -> None:
    data = store.read()
    data.pop(part, None)
    assert "Not measured yet" in page(data)


# Bars and lost time of a search by hand, and its picture.


def journal(*records: tuple[float, JournalRecord]) -> JournalText:
    entries = [JournalEntry(n, at_s, record) for n, (at_s, record) in enumerate(records, start=2)]
    return JournalText(None, tuple(entries), 0, 0)


def closed(
    name: str, seconds: float, worker: str, bound: int | None = None, *parts: str
) -> Closure:
    verdict = SubproblemVerdict.EMPTY if bound is None else SubproblemVerdict.BOUNDED
    return Closure(Subproblem((name, *parts)), verdict, bound, seconds=seconds, worker=worker)


SEARCH = journal(
    (2.0, closed("a", 2.0, "one")),
    (2.0, Member(5, (), "m")),
    (4.0, closed("b", 3.0, "two", 5)),
    (5.0, closed("c", 2.5, "one", 7)),
    (6.0, SplitRecord(Subproblem(("d",)), (Subproblem(("d", "x")),))),
    (
        6.5,
        Closure(
            Subproblem(("e",)), SubproblemVerdict.BOUNDED, 9, by_formula=True, worker="coordinator"
        ),
    ),
    (9.0, closed("d", 2.0, "one", None, "x")),
)


def test_bars_end_when_they_were_closed() -> None:
    timeline = timeline_of(SEARCH)
    bounded, empty = SubproblemVerdict.BOUNDED, SubproblemVerdict.EMPTY
    assert timeline.bars == (
        CubeBar("one", 0.0, 2.0, empty),
        CubeBar("two", 1.0, 4.0, bounded, stale_s=2.0),
        CubeBar("one", 2.5, 5.0, bounded, stale_s=2.5),
        CubeBar("one", 7.0, 9.0, empty, opened_s=6.0),
    )
    assert timeline.workers == ("one", "two")
    assert (timeline.splits_s, timeline.end_s) == ((6.0,), 9.0)


def test_time_is_lost_to_one_cause_each() -> None:
    """Between 5 and 6 nothing was open for "one"; from 6 to 7 the child of the split was."""
    one, two = timeline_of(SEARCH).lost()
    assert one == LostTime("one", busy_s=6.5, queueing_s=0.5 + 1.0, stale_s=2.5, idling_s=1.0)
    assert two == LostTime("two", busy_s=3.0, queueing_s=1.0 + 1.0, stale_s=2.0, idling_s=4.0)


def test_a_worker_s_time_is_all_accounted_for() -> None:
    timeline = timeline_of(SEARCH)
    for lost in timeline.lost():
        assert lost.busy_s + lost.queueing_s + lost.idling_s == pytest.approx(timeline.end_s)


def test_time_before_a_split_is_work() -> None:
    """Of the cube's seven seconds two were a wait: it was open from the start."""
    parent = Subproblem(("d",))
    split = SplitRecord(parent, (parent.under("x"),), 5.0, "one")
    timeline = timeline_of(journal((7.0, split), (9.0, closed("d", 2.0, "one", None, "x"))))
    assert timeline.bars[0] == CubeBar("one", 2.0, 7.0, None)
    assert timeline.lost() == (LostTime("one", 7.0, 2.0, 0.0, 0.0),)


def test_a_search_that_goes_on_follows_what_was_before() -> None:
    parts = [*[(e.at_s, e.record) for e in SEARCH.entries], (0.0, Continuation({}, {}))]
    timeline = timeline_of(journal(*parts, (3.0, closed("f", 1.0, "three"))))
    assert timeline.bars[-1] == CubeBar("three", 11.0, 12.0, SubproblemVerdict.EMPTY, opened_s=9.0)


def test_the_picture_has_a_row_for_each_worker() -> None:
    pytest.importorskip("matplotlib")
    figure = draw_gantt(timeline_of(SEARCH))
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["one", "two"]
    assert len(left.patches) == 4 + 2  # a bar each, and a part of the two that went stale
    assert len(right.patches) == 2 * 3
    figure.savefig(io.BytesIO(), format="svg")


def test_an_empty_journal_has_an_empty_picture() -> None:
    pytest.importorskip("matplotlib")
    assert not list(draw_gantt(timeline_of(journal())).axes[0].patches)
