"""The committed results: one row a line, so that a change shows which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"


def read() -> list[Row]:
    """The rows; none before the study ran."""
    if not RESULTS.exists():
        return []
    rows: list[Row] = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return rows


def text(rows: Iterable[Row]) -> str:
    """The file with these rows."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"rows": [\n{lines}\n]}}\n'
