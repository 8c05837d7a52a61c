"""Bars and lost time of a search by hand, and its picture."""

from __future__ import annotations

import io

import pytest

from experiments.scaling.gantt import CubeBar, LostTime, draw_gantt, timeline_of
from p2smt.parallel_search.journal.record import (
    Continuation,
    JournalEntry,
    JournalRecord,
    JournalText,
    SplitRecord,
)
from p2smt.parallel_search.subproblem import Closure, Cube, CubeVerdict, Member


def journal(*records: tuple[float, JournalRecord]) -> JournalText:
    entries = [JournalEntry(n, at_s, record) for n, (at_s, record) in enumerate(records, start=2)]
    return JournalText(None, tuple(entries), 0, 0)


def closed(
    name: str, seconds: float, worker: str, bound: int | None = None, *parts: str
) -> Closure:
    verdict = CubeVerdict.EMPTY if bound is None else CubeVerdict.BOUNDED
    return Closure(Cube((name, *parts)), verdict, bound, seconds=seconds, worker=worker)


SEARCH = journal(
    (2.0, closed("a", 2.0, "one")),
    (2.0, Member(5, (), "m")),
    (4.0, closed("b", 3.0, "two", 5)),
    (5.0, closed("c", 2.5, "one", 7)),
    (6.0, SplitRecord(Cube(("d",)), (Cube(("d", "x")),))),
    (6.5, Closure(Cube(("e",)), CubeVerdict.BOUNDED, 9, by_formula=True, worker="coordinator")),
    (9.0, closed("d", 2.0, "one", None, "x")),
)


def test_bars_end_when_they_were_closed() -> None:
    timeline = timeline_of(SEARCH)
    bounded, empty = CubeVerdict.BOUNDED, CubeVerdict.EMPTY
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
    parent = Cube(("d",))
    split = SplitRecord(parent, (parent.under("x"),), 5.0, "one")
    timeline = timeline_of(journal((7.0, split), (9.0, closed("d", 2.0, "one", None, "x"))))
    assert timeline.bars[0] == CubeBar("one", 2.0, 7.0, None)
    assert timeline.lost() == (LostTime("one", 7.0, 2.0, 0.0, 0.0),)


def test_a_search_that_goes_on_follows_what_was_before() -> None:
    parts = [*[(e.at_s, e.record) for e in SEARCH.entries], (0.0, Continuation({}, {}))]
    timeline = timeline_of(journal(*parts, (3.0, closed("f", 1.0, "three"))))
    assert timeline.bars[-1] == CubeBar("three", 11.0, 12.0, CubeVerdict.EMPTY, opened_s=9.0)


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
