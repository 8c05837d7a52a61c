"""The committed results: rounding, writing and reading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
GAIN = 0.05
"""A gain counts from here."""
DIGITS = 6
"""Significant digits of a time or gain."""


def rounded(value: float) -> float:
    """A number with ``DIGITS`` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def positive(gain: float) -> float:
    """A gain without what rounding leaves of none."""
    return rounded(gain) if gain > GAIN / 1000 else 0.0


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file with one line per entry of its lists, so that changes can be read."""
    parts = [f"{json.dumps(key)}: {_value(value)}" for key, value in data.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _value(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "[\n" + ",\n".join(f" {json.dumps(entry)}" for entry in value) + "\n]"
    return json.dumps(value)


def read(path: Path = RESULTS) -> dict[str, Any]:
    """The results."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def entries(data: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """The rows of a part, by column."""
    columns = data[f"{part}_columns"]
    return [dict(zip(columns, row, strict=True)) for row in data[part]]
