"""The committed results: rows of values by column, one a line, so that a change shows which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.testbed.written import timings
from p2smt.files.write import write_atomically

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
COLUMNS = (
    *("factors", "ports", "kind", "calls", "status", "programs", "costs", "members", "alone"),
    *("cases", "certificate", "large", "agree", "confirmed"),
)
"""``members`` is a place in ``sets``: many settings have the same."""


def read() -> dict[str, list[Row]]:
    """The rows by the number of levels, as text; none before the study ran."""
    if not RESULTS.exists():
        return {}
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    sets = data["sets"]
    return {
        levels: [_row(values, sets) for values in rows] for levels, rows in data["rows"].items()
    }


def _row(values: Sequence[Any], sets: Sequence[list[str]]) -> Row:
    row = dict(zip(COLUMNS, values, strict=True))
    return {**row, "members": sets[row["members"]]}


def write(levels: int, rows: Sequence[Row], anew: bool) -> None:
    """Replace all rows of so many levels; ``anew``: and the time of the longest of them."""
    write_atomically(str(RESULTS), text({**read(), str(levels): list(rows)}))
    longest_s = max((row["seconds"] for row in rows), default=0.0)
    timings.keep(HERE, {str(levels): {"longest_s": longest_s}}, anew)


def text(data: dict[str, list[Row]]) -> str:
    """The file with these rows."""
    sets: dict[str, int] = {}
    parts = []
    for levels in sorted(data):
        lines = []
        for row in data[levels]:
            place = sets.setdefault(json.dumps(row["members"]), len(sets))
            values = [place if key == "members" else row.get(key) for key in COLUMNS]
            lines.append(json.dumps(values))
        parts.append(f"{json.dumps(levels)}: [\n" + ",\n".join(lines) + "\n]")
    return '{"sets": [\n' + ",\n".join(sets) + '\n],\n"rows": {' + ",\n".join(parts) + "}}\n"
