"""The verification of journals: right ones hold, and nothing that is wrong passes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.subproblem import Closure, SearchKind, Subproblem, SubproblemVerdict
from p2smt.result import Status
from tests.parallel_search.journal.searched import (
    Lines,
    change,
    open_journal,
    search,
    verdict,
    verified,
)
from tests.parallel_search.journal.words import Words
from tests.strategies.draws import Draws, draws

SPACE = Words(4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


@pytest.mark.parametrize("top", [1, 3, 8, 99])
@pytest.mark.parametrize("splits", [False, True])
def test_a_finished_optimisation_is_proved(path: Path, top: int, splits: bool) -> None:
    search(path, SPACE, top, splits=splits)
    report = verified(path, SPACE)
    assert report.faults == ()
    assert report.valid
    assert report.answer is not None
    assert report.answer.status is Status.OPTIMAL
    assert report.answer.best == tuple(SPACE.members(Subproblem())[:top])
    assert report.answer.bound == SPACE.members(Subproblem())[0].value
    assert report.cover.counted == report.cover.whole == 1
    assert report.again.agreed == report.again.verdicts > 0


def test_a_space_without_members(path: Path) -> None:
    space = Words(3, forbidden="")  # every word holds it
    search(path, space)
    report = verified(path, space)
    assert report.valid
    assert report.answer is not None
    assert (report.answer.status, report.answer.bound) == (Status.INFEASIBLE, None)


@pytest.mark.parametrize("splits", [False, True])
def test_an_enumeration_is_counted_whatever_its_cubes(path: Path, splits: bool) -> None:
    space = replace(SPACE, skeleton=SearchKind.ENUMERATE)
    search(path, space, splits=splits)
    report = verified(path, space)
    every = [member.witness for member in space.members(Subproblem())]
    assert report.valid
    assert report.answer is not None
    assert report.answer.status is Status.COMPLETE
    assert (report.answer.count, report.answer.digest) == (len(every), digest_of(every))


def test_a_decision_needs_a_member_or_the_cover(path: Path) -> None:
    space = replace(SPACE, skeleton=SearchKind.DECIDE)
    with open_journal(path, space) as journal:
        journal.closed(Closure(Subproblem(("a",)), SubproblemVerdict.EMPTY))
    assert not verified(path, space, sample=0).valid
    with open_journal(path, space) as journal:
        journal.incumbent(space.member("bbcb"))
    report = verified(path, space, sample=5)
    assert report.valid
    assert report.shown_by_member
    assert not report.cover.complete
    assert (report.again.tried, report.again.verdicts) == (0, 1)  # it rests on none
    assert verified(path, space, sample=None).again.disagreements  # and that one is wrong


def test_two_solved_cubes_of_a_decision_may_show_different_members(path: Path) -> None:
    space = replace(SPACE, skeleton=SearchKind.DECIDE)
    with open_journal(path, space) as journal:
        for word in ("abab", "abac"):
            member = space.member(word)
            journal.closed(Closure(Subproblem(("a",)), SubproblemVerdict.SOLVED, best=(member,)))
    assert verified(path, space).valid
    with open_journal(path, space) as journal:
        journal.closed(Closure(Subproblem(("a",)), SubproblemVerdict.EMPTY))
    assert not verified(path, space).valid


@pytest.mark.parametrize("closed", [0, 1, 3, 4])
def test_an_unfinished_search_is_not_proved_but_told(path: Path, closed: int) -> None:
    search(path, SPACE, most=closed)
    report = verified(path, SPACE)
    assert not report.valid
    assert report.faults == ()
    assert len(report.cover.open) == 5 - closed
    assert report.answer is not None
    assert report.answer.status is (Status.FEASIBLE if closed > 1 else Status.UNKNOWN)
    least = SPACE.members(Subproblem())[0].value
    assert report.answer.bound is not None
    assert report.answer.bound <= least


def test_nothing_but_a_header(path: Path) -> None:
    with open_journal(path, SPACE):
        pass
    assert not verified(path, SPACE).valid


def test_an_empty_file_has_nothing_to_verify(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(InputError, match="has no header"):
        verified(path, SPACE)


def test_a_cube_closed_as_unknown_counts_by_its_bound(path: Path) -> None:
    search(path, SPACE)
    change(path, lambda lines: verdict(lines, "solved").update(UNKNOWN | {"bound": 5}))
    report = verified(path, SPACE)
    assert not report.valid
    assert report.faults == ()
    assert report.answer is not None
    assert (report.answer.status, report.answer.bound) == (Status.FEASIBLE, 5)
    assert report.cover.complete
    assert len(report.answer.unsettled) == 1


UNKNOWN = {"verdict": "unknown", "best": []}


def without(lines: Lines, line: dict[str, Any]) -> Lines:
    return [one for one in lines if one is not line]


def repeated(lines: Lines, line: dict[str, Any], **changes: Any) -> Lines:
    return [*lines, line | changes]


def split(lines: Lines) -> dict[str, Any]:
    return next(line for line in lines if line["record"] == "split")


def emptied(line: dict[str, Any]) -> dict[str, Any]:
    """A closure as one of a cube without members."""
    changes = {"verdict": "empty", "best": [], "by_formula": False}
    return line | changes if line["record"] == "closed" else line


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda x: split(x)["children"].remove(["a", "c"]),
            "the parts of cube a hold 2/9 of its 1/3",
        ),
        (lambda x: split(x)["children"].append(["a", "a"]), "a part that stands there twice"),
        (lambda x: split(x)["children"].append(["a", "a", "b"]), "hold 10/27 of its 1/3"),
        (lambda x: split(x)["children"].append(["b", "a"]), "into what is no part of it"),
        (lambda x: repeated(x, split(x), children=[["a", "a"]]), "is split otherwise"),
        (lambda x: repeated(x, verdict(x, "empty"), cube=["c", "a"]), "comes of no split"),
        (lambda x: repeated(x, verdict(x, "solved"), verdict="empty", best=[]), "contradicts"),
        (lambda x: verdict(x, "bounded").update(bound=99), "has the bound 99, and 7 by the"),
        (lambda x: verdict(x, "bounded").update(bound=1), "has the bound 1, and 7 by the"),
        (lambda x: verdict(x, "solved")["best"][0].update(value=7), "costs 6 ticks, not 7"),
        (lambda x: verdict(x, "solved")["best"][0].update(tie=[1]), "has another place"),
        (lambda x: verdict(x, "solved")["best"][0].update(witness="aabb"), "none of this space"),
        (lambda x: verdict(x, "solved")["best"][0].update(witness="xx"), "none of this space"),
        (lambda x: [emptied(line) for line in x], "'abab' is better than all verdicts allow"),
    ],
)
def test_what_was_changed_is_found_without_solving(
    path: Path, edit: Callable[[Lines], Any], message: str
) -> None:
    search(path, SPACE)
    change(path, edit)
    report = verified(path, SPACE, sample=0)
    assert not report.valid
    assert any(message in fault for fault in report.faults), report.faults


@pytest.mark.parametrize("name", ["solved", "empty", "bounded", "split"])
def test_a_dropped_cube_is_missed(path: Path, name: str) -> None:
    search(path, SPACE)
    change(path, lambda x: without(x, split(x) if name == "split" else verdict(x, name)))
    report = verified(path, SPACE, sample=0)
    assert not report.valid
    assert report.cover.open or report.faults


def test_a_header_with_other_roots_does_not_cover(path: Path) -> None:
    with open_journal(path, SPACE) as journal:
        header = replace(journal._header, roots=SPACE.roots()[1:])
    path.unlink()
    journal = open_journal(path, SPACE)
    journal._header = header
    with journal:
        for cube in header.roots:
            journal.closed(Closure(cube, SubproblemVerdict.EMPTY))
    report = verified(path, SPACE, sample=0)
    assert report.faults == ("the parts of cube the whole space hold 2/3 of its 1",)
    assert not report.valid


def test_a_header_of_another_space_is_told(path: Path) -> None:
    search(path, SPACE)
    report = verified(path, Words(3))
    assert "describes itself otherwise" in report.faults[0]
    assert not report.valid


def test_verdicts_solved_again_disagree_with_wrong_ones(path: Path) -> None:
    liar = replace(SPACE, lies=("ab",))  # where the best word is
    search(path, liar)
    report = verified(path, SPACE)
    assert report.faults == ()
    assert not report.valid
    assert report.covered
    assert any("empty on record, solved with 6" in one for one in report.again.disagreements)


def test_a_solver_that_disagrees_with_right_verdicts_is_told_as_well(path: Path) -> None:
    search(path, SPACE)
    report = verified(path, SPACE, other=replace(SPACE, lies=("ab",)))
    assert report.again.disagreements == (
        "cube a / b: solved with 6 on record, empty when solved again",
    )


def test_a_wrong_list_is_found_by_solving_again(path: Path) -> None:
    space = replace(SPACE, skeleton=SearchKind.ENUMERATE)
    search(path, space)
    for changes in ({"count": 3}, {"digest": "0" * 64}):
        change(path, lambda x, new=changes: verdict(x, "listed", 1).update(new))  # type: ignore[misc]
        assert len(verified(path, space).again.disagreements) == 1
        assert verified(path, space, sample=0).valid  # the word of a solver


@pytest.mark.parametrize("sought", [1, 2])
def test_a_better_member_than_the_answer_is_found_by_solving_again(path: Path, sought: int) -> None:
    """Of the cubes' best words one is nowhere on record."""
    with open_journal(path, SPACE, sought) as journal:
        for cube in SPACE.roots():
            first, second, *_ = SPACE.members(cube)
            best = (second,) if cube.path == ("a",) else (first, second)[:sought]
            journal.closed(Closure(cube, SubproblemVerdict.SOLVED, best[0].value, best))
    report = verified(path, SPACE)
    assert report.covered
    assert len(report.again.disagreements) == 1
    assert report.again.disagreements[0].startswith("cube a: solved with ")


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_order_duplicates_and_tears_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path, draw = tmp_path_factory.mktemp("journal") / "j.jsonl", random.Random(seed)
    search(path, SPACE, 3)
    expected = verified(path, SPACE, sample=0).answer

    def edit(lines: Lines) -> Lines:
        rest = [*lines[1:], *draw.choices(lines[1:], k=4)]
        draw.shuffle(rest)
        return [lines[0], *rest]

    change(path, edit)
    path.write_bytes(path.read_bytes() + b'{"record": "clo')
    report = verified(path, SPACE, sample=0)
    assert report.valid
    assert report.answer == expected
    assert report.torn == 15


@given(data=draws())
@settings(max_examples=60, deadline=None)
def test_no_change_of_one_line_makes_another_answer(
    tmp_path_factory: pytest.TempPathFactory, data: Draws
) -> None:
    """Whatever one line is changed to, a journal that verifies in full has the true answer."""
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    search(path, SPACE, 2)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    number = data.draw(st.integers(1, len(lines) - 1))
    cubes = st.lists(st.sampled_from("abc"), max_size=3)
    key, value = data.draw(
        st.one_of(
            st.tuples(st.just("bound"), st.integers(0, 12)),
            st.tuples(st.just("cube"), cubes),
            st.tuples(st.just("verdict"), st.sampled_from(["empty", "solved", "bounded"])),
            st.tuples(st.just("best"), st.just([])),
            st.tuples(st.just("by_formula"), st.booleans()),
            st.tuples(st.just("children"), st.lists(cubes, max_size=4)),
        )
    )
    if key in lines[number]:
        change(path, lambda x: x[number].update({key: value}))
    try:
        report = verified(path, SPACE)
    except InputError:
        return
    if report.valid:
        assert report.answer is not None
        assert report.answer.best == tuple(SPACE.members(Subproblem())[:2])
