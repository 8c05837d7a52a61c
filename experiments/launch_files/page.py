"""Writes the tables of README.md from files.yaml and the outcomes.

Usage: python -m experiments.launch_files.page
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.launch_files.study import FAULT, HERE, READ, REFUSED, RESULTS, files
from experiments.testbed.written.marked import filled

PAGE = HERE / "README.md"
BEFORE = HERE / "before.json"


def outcomes(path: Path = RESULTS) -> dict[str, Mapping[str, Any]]:
    """The outcomes by file."""
    found: dict[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def page(text: str) -> str:
    """The page with the tables of now."""
    return filled(text, "tables", tables())


def tables() -> str:
    """What became of each file, and how many files each outcome has."""
    now, then = outcomes(), outcomes(BEFORE)
    rows = (_row(facts, now[facts["file"]], then[facts["file"]]) for facts in files())
    counts = [Counter(one["outcome"] for one in each.values()) for each in (then, now)]
    summed = ((kind, *(str(each[kind]) for each in counts)) for kind in (READ, REFUSED, FAULT))
    heads = ("file", "from", "before", "now", "mapped", "without effect", "read as, or why not")
    return f"{_table(('outcome', 'before', 'now'), summed)}\n{_table(heads, rows)}"


def _row(
    facts: Mapping[str, Any], now: Mapping[str, Any], then: Mapping[str, Any]
) -> tuple[str, ...]:
    where = f"{facts['repository']}, `{facts['path']}`" if "path" in facts else "not named"
    told = f"`{now['strategy']}`" if now["outcome"] == READ else now["said"].partition(": ")[2]
    counts = (str(len(now[key])) if key in now else "" for key in ("mapped", "ignored"))
    return (facts["file"], where, then["outcome"], now["outcome"], *counts, told)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
