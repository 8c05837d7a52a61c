"""The twelve cases: what is committed is what is found, and the page has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.transfer.cases import CASES
from experiments.transfer.study import LABELS, read, row_of

ROWS = {int(row["case"]): row for row in read()}
QUICK = (1, 2, 3, 5, 9, 10, 11, 12)
TEXT = (Path(__file__).parents[3] / "docs" / "transfer.md").read_text(encoding="utf-8")


def test_every_case_is_there() -> None:
    assert sorted(ROWS) == [case.number for case in CASES]


@pytest.mark.parametrize("number", QUICK)
def test_a_case_is_found_again(number: int) -> None:
    """What plan is found where several are as good may differ; its time does not."""
    found, known = row_of(CASES[number - 1]), ROWS[number]
    for key in known.keys() - {"pieces"}:
        assert found[key] == known[key], key


def test_plans_reach_their_bounds() -> None:
    for row in ROWS.values():
        assert float(row["plan_ms"]) == pytest.approx(float(row["bound_ms"]), rel=1e-6)
        assert all(float(row[label]) >= 1 - 1e-4 for label in LABELS)
        if row["relayed_ms"]:
            assert float(row["relayed_ms"]) == pytest.approx(
                float(row["relayed_bound_ms"]), rel=1e-4
            )


def test_the_page_has_these_figures() -> None:
    """A line for each case: the bound, that of plans that relay, and rules over the bound."""
    for number, row in ROWS.items():
        bounds = [
            f"{float(row[key]):,.1f}" if row[key] else "" for key in ("bound_ms", "relayed_ms")
        ]
        rules = [f"{float(row[label]):.2f}" for label in LABELS]
        line = next(line for line in TEXT.splitlines() if line.startswith(f"| {number} "))
        assert [part.strip() for part in line.split("|")[3:-1]] == [*bounds, *rules]
