"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.small_model.page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from experiments.small_model.study import Row, read
from experiments.testbed.script import ended
from p2smt.errors import InputError

HERE = Path(__file__).resolve().parent
PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"
_HEAD = (
    *("request", "levels", "length", "programs", "states", "open arcs"),
    *("words closed by first and last row", "by two orders", "not closed", "CPU s"),
)


def page(rows: Iterable[Row]) -> str:
    """The page."""
    rows = list(rows)
    left = sum(row.not_closed for row in rows)
    closed = "None is left." if not left else f"{left} are left."
    return TEMPLATE.read_text(encoding="utf-8").format(table="\n".join(_table(rows)), closed=closed)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(_HEAD)} |"
    yield f"|---|{'---:|' * (len(_HEAD) - 1)}"
    for row in rows:
        length = f"{row.case.length}" if row.new_states_to is None else "any"
        cells = (
            *(row.case.request, row.case.levels, length, f"{sum(row.programs):,}"),
            *(f"{row.states:,}", row.open_arcs, row.by_corners, row.by_orders, row.not_closed),
            f"{row.cpu_s:.1f}",
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
