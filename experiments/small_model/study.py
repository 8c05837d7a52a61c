"""Searches all programs for all sizes at once, case by case, and stores what was found.

    python -m experiments.small_model.study [--times] [REQUEST:LEVELS:LENGTH ..]

Without an argument it is every case (some five minutes of one core).  ``--times`` renews what
searches took, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.small_model.open_arcs import Closed, close
from experiments.small_model.search import search
from experiments.testbed.script import ended
from experiments.testbed.written.case_rows import CaseRows
from p2smt.collectives.names import RequestKind

RESULTS = Path(__file__).resolve().parent / "results.json"
ANY_LENGTH = 16
"""The longest programs that a request may ask for."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """Programs of a request of at most so many instructions over so many levels."""

    request: str
    levels: int
    length: int

    def __str__(self) -> str:
        return f"{self.request}:{self.levels}:{self.length}"


CASES = (
    *(Case("all-reduce", levels, length) for levels, length in ((1, ANY_LENGTH), (2, ANY_LENGTH))),
    *(Case("all-reduce", levels, length) for levels, length in ((3, 6), (4, 6))),
    *(Case("all-reduce", levels, length) for levels, length in ((5, 5), (5, 6), (6, 5))),
    *(Case("all-gather", levels, ANY_LENGTH) for levels in (1, 2, 3, 4, 5)),
    *(Case("reduce-scatter", levels, ANY_LENGTH) for levels in (1, 2, 3)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What the search of a case found.

    ``programs``: the number of programs by length, from 1.  ``new_states_to``: the length from
    which no state was new; None: there may be more.  Words to open arcs by how they are closed.
    """

    case: Case
    programs: list[int]
    new_states_to: int | None
    states: int
    open_arcs: int
    by_corners: int
    by_orders: int
    not_closed: int
    cpu_s: float


def row_of(case: Case) -> Row:
    """Search a case."""
    before_s = time.process_time()
    found = search(case.levels, RequestKind(case.request), case.length)
    words = dict.fromkeys(Closed, 0)
    for (_, how), many in close(found).items():
        words[how] += many
    counts = found.counts()
    return Row(
        case,
        [counts.get(length, 0) for length in range(1, max(counts, default=0) + 1)],
        found.depth if found.finished else None,
        len(found.arcs),
        len(found.open_arcs),
        words[Closed.BY_CORNERS],
        words[Closed.BY_ORDERS],
        words[Closed.NOT],
        round(time.process_time() - before_s, 1),
    )


ROWS = CaseRows(RESULTS, CASES, Case, Row)


def read() -> dict[Case, Row]:
    """The stored rows; none before the study ran."""
    return ROWS.read()


def main(arguments: Sequence[str]) -> None:
    """Search these cases, and store each."""
    ROWS.run(arguments, row_of)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
