"""Least sufficient sets and crossings for every size up to a bound, each checked without a solver.

    python -m experiments.crossings.study [--times] [2] [3] [4]

The numbers are those of levels; without one it is two and three.  ``--times`` renews what
the longest search took, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from experiments.crossings.answer import answer
from experiments.crossings.settings import MOST, THREE, four_levels, three_levels, two_levels
from experiments.crossings.store import Row, write
from experiments.testbed.script import ended
from experiments.testbed.written.timings import taken
from p2smt.errors import InputError
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.report.progress import counted
from p2smt.result import SearchLimits

LIMIT_S = 3600.0
PROCESSES = 2


def rows_of(settings: Iterable[SymbolicSetting]) -> list[Row]:
    """A row for each setting."""
    return [answer(setting, SearchLimits(time_limit_s=LIMIT_S)) for setting in settings]


def parts(levels: int) -> list[list[SymbolicSetting]]:
    """The settings in parts that share what they compute."""
    if levels == 2:
        return [list(two_levels(outer)) for outer in range(2, MOST + 1)]
    if levels == 3:
        return [list(three_levels(factors)) for factors in THREE]
    return list(four_levels())


def main(arguments: Sequence[str]) -> None:
    """Compute the rows of each of these numbers of levels, and store them.

    Raises:
        InputError: an argument is none of 2, 3 and 4.
    """
    named, anew = taken(arguments)
    if unknown := set(named) - {"2", "3", "4"}:
        raise InputError(f"levels {sorted(unknown)}", "must be 2, 3 or 4")
    for levels in map(int, named or ("2", "3")):
        with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
            done: list[Row] = []
            settings = parts(levels)
            for rows in counted(pool.map(rows_of, settings), f"{levels} levels", len(settings)):
                done += rows
        write(levels, done, anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
