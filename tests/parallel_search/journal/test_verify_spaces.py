"""Verification on spaces of other kinds: slow ones, counted ones, those with their own cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.journal_verification import verify_records
from p2smt.parallel_search.journal.tree import RebuiltSpace, boolean_share
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import SearchLimits, StopWatch
from tests.parallel_search.journal.searched import change, open_journal, search, verdict, verified
from tests.parallel_search.journal.words import Words, words_in

SPACE = Words(4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


@pytest.mark.parametrize("sample", [0, 1, 2, 99, None])
def test_so_many_are_solved_again_as_is_asked(path: Path, sample: int | None) -> None:
    search(path, SPACE, 99)
    report = verified(path, SPACE, sample)
    every = report.again.verdicts
    assert report.again.tried == (every if sample is None else min(sample, every))
    assert report.again.agreed == report.again.tried


class Slow(Words):
    """It gives up at once, one way or the other."""

    def close(self, task: SubproblemTask, _: Signals) -> Closure | OverBudget:
        if task.cube == Subproblem(("a", "b")):
            return OverBudget(task.cube)
        return Closure(task.cube, SubproblemVerdict.UNKNOWN)


def test_what_could_not_be_solved_again_is_no_disagreement(path: Path) -> None:
    search(path, SPACE)
    report = verified(path, SPACE, other=Slow(4))
    assert report.valid
    assert (report.again.agreed, report.again.unsettled) == (0, report.again.tried)


def test_without_time_nothing_is_solved_again(path: Path) -> None:
    search(path, SPACE)
    remade = RebuiltSpace(SPACE, words_in, "words")
    watch = StopWatch.start(SearchLimits(time_limit_s=0))
    report = verify_records(read_journal(str(path)), "journal", remade, watch=watch)
    assert report.again.unsettled == report.again.tried > 0


def test_shares_of_prefixes_are_exact_and_in_order() -> None:
    names = [f"x{n}" for n in range(60)]
    share = boolean_share(names)
    path, total = Subproblem(), Fraction(0)
    for name in names:
        total += share(path.under(f"{name}=1"))
        path = path.under(f"{name}=0")
    assert share(Subproblem()) == 1
    assert total + share(path) == 1
    assert total < 1
    for wrong in ("x1=0", "x0=2", "x0", "=0"):
        with pytest.raises(InputError, match="out of order"):
            share(Subproblem((wrong,)))
    with pytest.raises(InputError, match="out of order"):
        share(path.under("None=0"))


def test_where_members_are_counted_each_list_is_held_against_the_count(path: Path) -> None:
    space = replace(SPACE, skeleton=SearchKind.ENUMERATE)
    search(path, space)

    def members_in(cube: Subproblem) -> Fraction:
        return Fraction(len(space.members(cube)))

    remade = RebuiltSpace(space, members_in, "words without aa", True)
    assert verify_records(read_journal(str(path)), "journal", remade, sample=0).valid
    for changes in ({"count": 3}, {"verdict": "empty", "count": 0}):
        kept = path.read_bytes()
        change(path, lambda x, new=changes: verdict(x, "listed", 1).update(new))  # type: ignore[misc]
        report = verify_records(read_journal(str(path)), "journal", remade, sample=0)
        stated, there = changes.get("count") or 0, len(space.members(Subproblem(("a", "b"))))
        assert report.faults == (f"cube a / b has {there} members, and {stated} on record",)
        path.write_bytes(kept)


def test_a_space_with_a_cutoff_of_its_own_has_all_up_to_that(path: Path) -> None:
    space = Near(4)
    with open_journal(path, space) as journal:
        for cube in space.roots():
            found = [one for one in space.members(cube) if one.value <= 7]
            if found:
                closure = Closure(cube, SubproblemVerdict.SOLVED, found[0].value, tuple(found))
            else:
                closure = Closure(cube, SubproblemVerdict.BOUNDED, space.bound(cube) + 1)
            journal.closed(closure)
    report = verified(path, space, sample=0)
    assert report.valid, report.faults
    assert report.answer is not None
    assert report.answer.best == tuple(one for one in space.members(Subproblem()) if one.value <= 7)
    assert report.answer.best[-1] < Near.cutoff_of(space, report.answer.best, 1)


class Near(Words):
    """Words that cost at most one more than the best are sought."""

    def cutoff_of(self, members: Sequence[Member], _: int) -> Member:
        """After all of them."""
        return Member(min((one.value for one in members), default=98) + 1, (999,), "")
