"""The time for verdicts that are solved again is shared out among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.journal_verification import verify_records
from p2smt.parallel_search.journal.tree import RebuiltSpace
from p2smt.parallel_search.subproblem import Closure, OverBudget, Signals, SubproblemTask
from p2smt.result import SearchLimits, StopWatch
from tests.parallel_search.journal.searched import search
from tests.parallel_search.journal.words import Words, words_in

SPACE, LIMIT_S = Words(4), 1000.0


@dataclass(frozen=True, slots=True)
class Noting(Words):
    """Notes how long each cube may take."""

    limits: list[float | None] = field(default_factory=list)

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        self.limits.append(task.deadline_s)
        return Words.close(self, task, signals)


@pytest.mark.parametrize("limit_s", [None, LIMIT_S])
def test_each_verdict_gets_its_part_of_the_time(tmp_path: Path, limit_s: float | None) -> None:
    path, other = tmp_path / "j.jsonl", Noting(4)
    search(path, SPACE)
    remade = RebuiltSpace(SPACE, words_in, "words", False, other, "paper")
    watch = StopWatch.start(SearchLimits(limit_s))
    report = verify_records(read_journal(str(path)), "j", remade, sample=None, watch=watch)
    count = len(other.limits)
    assert count == report.again.tried > 1
    if limit_s is None:
        assert set(other.limits) == {None}
    else:
        parts = [one or 0.0 for one in other.limits]
        assert 0 < parts[0] <= LIMIT_S / count < parts[-1] <= LIMIT_S
