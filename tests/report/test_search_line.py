"""The line of a search in parts."""

from __future__ import annotations

from p2smt.parallel_search.engine import SearchProgress
from p2smt.parallel_search.subproblem import Member, SubproblemVerdict
from p2smt.report.progress import progress_text


def progress(**changes: object) -> SearchProgress:
    fields = {
        "open_subproblems": 3,
        "in_flight": 2,
        "closed": ((SubproblemVerdict.SOLVED, 4), (SubproblemVerdict.BOUNDED, 9)),
        "incumbent": Member(2000, (), ""),
        "bound": 1500,
        "gap": 0.25,
        "count": None,
        "workers": 2,
        "elapsed_s": 1.0,
        "to_go_s": 3.0,
    }
    return SearchProgress(**{**fields, **changes})  # type: ignore[arg-type]


def test_it_says_how_far_the_search_has_come() -> None:
    expected = "3 cubes open, 4 solved, 9 bounded; best 2 ms; gap 25 %; 2 workers; about 3 s to go"
    assert progress_text(progress(), 1e-6) == expected


def test_it_has_what_is_known() -> None:
    start = progress(closed=(), incumbent=None, gap=None, workers=1, to_go_s=None)
    assert progress_text(start, 1e-6) == "3 cubes open; bound 1.5 ms; 1 worker"
    listed = progress(closed=((SubproblemVerdict.LISTED, 1),), incumbent=None, count=7, to_go_s=0.0)
    assert progress_text(listed, None) == "3 cubes open, 1 listed; 7 found; 2 workers"
