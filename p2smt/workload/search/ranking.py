"""The order of strategies that were timed: by time, and of equally fast ones the plainest first.

A model of cost cannot tell a tenth of a per cent, so such strategies count as equal.  Among them
are whole families whose dp, cp and micro-batch are exchanged: alike, they take one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from p2smt.parallelism.placement import IntArray
from p2smt.plans.solution import SAME
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.search.pricing.prices import Seconds
from p2smt.workload.search.question import SEARCHED

ALIKE = 1e-6
"""Relative: strategies that differ in ``EXCHANGED`` only take the same time within it."""
EXCHANGED = ("dp", "cp", "micro_batch")
_FIRST = 64
"""Rows among which the best distinct ones are first looked for."""
Plainness = Callable[[int], tuple[int, ...]]
"""What equally fast rows are ordered by, the plainest first."""


@dataclass(frozen=True, slots=True)
class AlikeRows:
    """Rows that take one place: the plainest one, and those that are alike."""

    row: int
    others: tuple[int, ...]


def families(columns: StrategyColumns) -> IntArray:
    """A number for each row: the same for those that differ in ``EXCHANGED`` only."""
    names = [name for name in SEARCHED if name not in EXCHANGED]
    fields = np.stack([getattr(columns, name).astype(np.int64) for name in names], axis=1)
    return np.asarray(np.unique(fields, axis=0, return_inverse=True)[1].ravel())


def ordered(time_s: Seconds, tie: float, plainness: Plainness) -> list[int]:
    """Rows that were timed, the fastest first; of those within a tie of one the plainest."""
    rows = np.flatnonzero(np.isfinite(time_s))
    rows = rows[np.argsort(time_s[rows], kind="stable")]
    sorted_s = time_s[rows]
    found: list[int] = []
    while len(found) < len(rows):
        limit_s = sorted_s[len(found)] * (1 + max(tie, SAME))
        end = int(np.searchsorted(sorted_s, limit_s, side="right"))
        found += sorted(rows[len(found) : end].tolist(), key=plainness)
    return found


def alike(rows: list[int], time_s: Seconds, family: IntArray) -> list[AlikeRows]:
    """Rows in their order, those that are alike together at the place of their first."""
    by_time = sorted(rows, key=lambda row: float(time_s[row]))
    key_of_row = dict(zip(by_time, _keys(by_time, time_s, family), strict=True))
    found: dict[tuple[int, float], list[int]] = {}
    for row in rows:
        found.setdefault(key_of_row[row], []).append(row)
    return [AlikeRows(some[0], tuple(some[1:])) for some in found.values()]


def last_s(time_s: Seconds, family: IntArray, top: int) -> float:
    """Seconds of the ``top``-th of the rows that were timed and are not alike; infinite: there
    are fewer.
    """
    known = np.flatnonzero(np.isfinite(time_s))
    many = _FIRST
    while True:
        few = known[np.argpartition(time_s[known], many)[:many]] if many < len(known) else known
        rows = few[np.argsort(time_s[few], kind="stable")].tolist()
        seen = list(dict.fromkeys(_keys(rows, time_s, family)))
        if len(seen) >= top:
            return seen[top - 1][1]
        if many >= len(known):
            return float(np.inf)
        many *= 4


def _keys(rows: list[int], time_s: Seconds, family: IntArray) -> Iterator[tuple[int, float]]:
    """Of rows by time: their family and the time of the fastest row that they are alike with."""
    first: dict[int, float] = {}
    for row, seconds in zip(rows, time_s[rows].tolist(), strict=True):
        mine = int(family[row])
        if seconds > first.get(mine, -1.0) * (1 + ALIKE):
            first[mine] = seconds
        yield mine, first[mine]
