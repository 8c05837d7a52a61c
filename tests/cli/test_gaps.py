"""How far a time lies above its bound, as commands print it."""

from __future__ import annotations

import pytest

from p2smt.report.tables import gap


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (1.0, 1.0, "0 %"),
        (1.0, 1.0 - 2e-9, "0 %"),
        (1.0, 1.0 - 1e-7, "under 0.001 %"),
        (1.0, 0.75, "25 %"),
        (0.0, 0.0, "0 %"),
    ],
)
def test_a_tick_is_no_gap(value: float, bound: float, text: str) -> None:
    assert gap(value, bound) == text
