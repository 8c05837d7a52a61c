"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.mixture_search.page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from experiments.mixture_search.study import Row, read
from experiments.testbed.script import ended
from p2smt.errors import InputError

HERE = Path(__file__).resolve().parent
PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"
_HEAD = (
    *("cluster", "space", "devices", "levels", "sequences", "strategies", "with placements"),
    *("timed", "prices", "proof", "within 5 %", "CPU s"),
)


def page(rows: Iterable[Row]) -> str:
    """The page."""
    rows = list(rows)
    best = "\n".join(
        f"* {row.case.topology}, {row.case.space}: `{row.strategy}`, {row.iteration_s:g} s"
        for row in rows
    )
    return TEMPLATE.read_text(encoding="utf-8").format(table="\n".join(_table(rows)), best=best)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(_HEAD)} |"
    yield f"|---|---|{'---:|' * (len(_HEAD) - 2)}"
    for row in rows:
        proof = "all closed" if row.status == "optimal" else f"gap {row.gap:.2g}"
        cells = (
            *(row.case.topology, row.case.space, f"{row.devices:,}", row.levels),
            *(f"{row.case.sequences:,}", f"{row.strategies:,}", f"{row.placements:,}"),
            *(f"{row.evaluated:,}", f"{row.prices:,}", proof, row.near, f"{row.cpu_s:.1f}"),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(read().values()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
