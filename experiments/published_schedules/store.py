"""The committed results: one row a line, so that a change shows which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.testbed.written.timings import Timed

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
TIMED = Timed(HERE, ("cpu_s",), lambda row: f"{row['repository']} {row['path']}")


def read() -> list[Row]:
    """The rows; none before the study ran."""
    if not RESULTS.exists():
        return []
    rows: list[Row] = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return TIMED.joined(rows)


def write(rows: Sequence[Row], anew: bool) -> None:
    """Store the rows; ``anew``: with their times in place of those that are there."""
    RESULTS.write_text(text(TIMED.apart(rows, anew)), encoding="utf-8")


def text(rows: Sequence[Row]) -> str:
    """The file with these rows, which have no times."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"rows": [\n{lines}\n]}}\n'
