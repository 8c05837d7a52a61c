"""Prints the tables of the report from the results.

python -m experiments.schedule_mutations.table experiments/schedule_mutations/results.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.testbed.script import ended, only_argument

COLUMNS = (
    "wrong, refuted",
    "wrong, accepted",
    "wrong, not settled",
    "right, accepted",
    "right, refuted",
    "right, not settled",
)


def table(title: str, rows: dict[str, dict[str, int]]) -> str:
    """A table in Markdown, one row per key."""
    lines = [
        f"| {title} | mutants | {' | '.join(COLUMNS)} | others |",
        "|---|" + "---:|" * (len(COLUMNS) + 2),
    ]
    for name, counts in rows.items():
        cells = [counts.get(column, 0) for column in COLUMNS]
        total = sum(counts.values())
        numbers = [total, *cells, total - sum(cells)]
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Prints both tables."""
    file = only_argument(arguments, "the results.json that mutations_report.py wrote")
    results = json.loads(Path(file).read_text(encoding="utf-8"))
    print(table("source", {**results["by_source"], "all": results["outcomes"]}))
    print()
    print(table("mutation", results["by_mutation"]))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
