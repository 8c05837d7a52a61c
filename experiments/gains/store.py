"""The committed results: where they are, rounding, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.testbed.written import results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
GAIN = 0.05
"""A gain counts from here."""
DIGITS = 6
"""Significant digits of a time or gain."""


def rounded(value: float) -> float:
    """A number with ``DIGITS`` significant digits."""
    return results.rounded(value, DIGITS)


def positive(gain: float) -> float:
    """A gain without what rounding leaves of none."""
    return rounded(gain) if gain > GAIN / 1000 else 0.0


def read() -> dict[str, Any]:
    """The committed results."""
    return results.read(RESULTS)


def entries(data: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """The rows of a part, by column."""
    columns = data[f"{part}_columns"]
    return [dict(zip(columns, row, strict=True)) for row in data[part]]
