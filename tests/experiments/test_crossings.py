"""The study of crossings: its page says what its rows say, and rows are computed again."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.crossings import page, summary
from experiments.crossings.answer import answer
from experiments.crossings.settings import (
    KINDS,
    MOST,
    four_levels,
    ports_of,
    three_levels,
    two_levels,
)
from experiments.crossings.store import COLUMNS, RESULTS, read, text
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.result import SearchLimits

DATA = read()
TWO = DATA["2"]


def row_of(setting: SymbolicSetting) -> dict[str, Any]:
    """The committed row of a setting."""
    key = list(setting.factors), list(setting.ports), setting.kind.value, setting.calls
    (row,) = [one for one in DATA[str(len(setting.factors))] if asked(one) == key]
    return row


def asked(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about."""
    return row["factors"], row["ports"], row["kind"], row["calls"]


def certain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is stored, without what depends on the solver."""
    return {key: row.get(key) for key in COLUMNS if key != "cases"}


def test_the_page_is_that_of_the_results() -> None:
    wanted = page.page(DATA)
    assert page.PAGE.read_text(encoding="utf-8") == wanted, (
        "run: python -m experiments.crossings.page"
    )


def test_the_file_is_as_it_is_written() -> None:
    assert text(DATA) == RESULTS.read_text(encoding="utf-8")


def test_every_setting_of_two_levels_has_a_row() -> None:
    every = [setting for outer in range(2, MOST + 1) for setting in two_levels(outer)]
    assert [asked(row) for row in TWO] == [
        (list(one.factors), list(one.ports), one.kind.value, one.calls) for one in every
    ]


def test_every_row_is_proved() -> None:
    assert [row for rows in DATA.values() for row in rows if not summary.proved(row)] == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_row_is_computed_again(kind: Any) -> None:
    for setting in (
        SymbolicSetting((2, 3), (1, 1), kind, calls=False),
        SymbolicSetting((3, 4), (2, 1), kind),
    ):
        assert certain(answer(setting, SearchLimits())) == certain(row_of(setting))


@pytest.mark.exhaustive
def test_three_levels_are_computed_again() -> None:
    for setting in three_levels((2, 2, 2)):
        assert certain(answer(setting, SearchLimits())) == certain(row_of(setting))


@pytest.mark.exhaustive
def test_scatters_over_four_levels_are_computed_again() -> None:
    setting = four_levels()[1][0]
    assert certain(answer(setting, SearchLimits())) == certain(row_of(setting))


def test_every_setting_of_four_levels_has_a_row() -> None:
    every = [setting for part in four_levels() for setting in part]
    assert [asked(row) for row in DATA["4"]] == [
        (list(one.factors), list(one.ports), one.kind.value, one.calls) for one in every
    ]


def test_a_wrong_row_is_an_exception_to_what_is_said() -> None:
    row = next(row for row in TWO if row["kind"] == "all-reduce" and row["large"])
    assert summary.off([row], summary.follows_closed_form) == []
    cells = [row["large"][0], ["1/3", 0, 1], row["large"][2]]
    wrong = {**row, "large": cells, "members": row["members"][:1], "certificate": False}
    assert summary.off([wrong], summary.follows_closed_form) == [wrong]
    assert summary.off([wrong], summary.has_expected_count) == [wrong]
    assert summary.counts([row, wrong]) == "1 over 2 x 2; 2 over 2 x 2"
    assert not summary.proved(wrong)
    assert summary.flat_range({**row, "large": cells[:2]}) is None


def test_ports_spread_evenly() -> None:
    assert ports_of(6) == (1, 2, 3, 6, 12)
