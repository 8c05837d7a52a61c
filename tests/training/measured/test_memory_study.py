"""The study of memory: its page, the bounds that ship, and the rows of reports."""

from __future__ import annotations

import re

import pytest

from experiments.training_runs import memory_study
from experiments.training_runs.failed_runs import USED, Outcome, reported, reports
from experiments.training_runs.memory_study import PAGE, Figures, fitted, page
from p2smt.training.memory_verdict import FITS_PERCENT, USABLE_PERCENT

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_the_page_is_what_the_study_finds() -> None:
    assert page() == TEXT


def test_the_bounds_that_ship_are_those_of_the_page() -> None:
    (bounds,) = re.findall(r"to (\d+)% of it fits, above (\d+)% it does not fit", TEXT)
    assert tuple(map(int, bounds)) == (FITS_PERCENT, USABLE_PERCENT)


def test_no_figure_of_the_unseen_half_misses_its_limit() -> None:
    (row,) = re.findall(r"^\| \*\*not seen\*\* \| (.*) \|$", TEXT, re.M)
    *_, fit, tight, refused, ran_tight = (float(cell.rstrip("%")) for cell in row.split(" | "))
    assert (fit <= 5, refused <= 3, max(tight, ran_tight) <= 20) == (True, True, True)


def test_every_report_is_used_or_has_a_reason() -> None:
    rows = reports()
    assert len({row["source"] for row in rows if row["status"] == "failed"}) >= 20
    for row in rows:
        used = row["status"] in USED
        assert used or re.fullmatch(r"not used: .{8,}", row["status"]), row
        assert not used or (row["gpu"] and row["framework"] and row["options"]), row


def test_a_report_lies_in_one_half() -> None:
    halves: dict[str, set[bool]] = {}
    for one in reported():
        halves.setdefault(one.report, set()).add(one.seen)
    assert {len(found) for found in halves.values()} == {1}
    assert {True, False} == set.union(*halves.values())


def test_the_bounds_divide_runs_that_failed_from_runs_that_ran() -> None:
    failed = [Outcome("a", "", True, share, 100) for share in (80, 95, 95, 99, 99, 120)]
    ran = [Outcome("b", "", False, share, 100) for share in (10, 20, 30, 40, 50, 60, 70)]
    fits, usable = fitted([*failed, *ran])
    found = Figures.of([*failed, *ran], fits, usable)
    assert 0.6 <= fits < 0.8 <= usable < 0.95
    assert (found.failed_fit, found.ran_not) == (0, 0)
    assert max(found.failed_tight, found.ran_tight) <= memory_study.MOST_TIGHT
