"""The gaps of random transfers: what is committed is what is measured, and near to the bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.transfer.random_layouts import (
    COUNT,
    TransferGap,
    geometric_mean,
    measured,
    read,
)

ROWS = read()
QUICK = [row.seed for row in ROWS if row.classes < 40][:6]


def test_every_seed_is_there_and_none_is_below_its_bound() -> None:
    assert [row.seed for row in ROWS] == list(range(COUNT))
    assert all(row.gap >= 0 for row in ROWS)
    assert all(row.bandwidth_s >= row.bound_s * (1 - 1e-12) for row in ROWS)


def test_plans_are_near_their_bounds() -> None:
    """The words of the page."""
    assert geometric_mean(ROWS) <= 1 + 1e-6
    assert max(row.gap for row in ROWS) <= 1e-6


@pytest.mark.parametrize("seed", QUICK)
def test_a_transfer_takes_what_is_committed(seed: int) -> None:
    row: TransferGap = measured(seed)
    known = ROWS[seed]
    assert row.bound_s == pytest.approx(known.bound_s, rel=1e-6)
    assert row.classes == known.classes
    assert row.bandwidth_s == pytest.approx(known.bandwidth_s, rel=1e-5)


def test_the_page_has_these_figures() -> None:
    text = (Path(__file__).parents[3] / "docs" / "transfer.md").read_text(encoding="utf-8")
    said = " ".join(text.split())
    assert f"Of {len(ROWS)} random transfers" in said
    assert "all are within a millionth of their bounds" in said
