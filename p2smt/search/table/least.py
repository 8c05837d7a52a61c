"""The matrix of least cost of a list, and those that cost little: by looking at each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2smt.parallelism.placement import IntArray, Matrix
from p2smt.result import Result, SolveStats, Status
from p2smt.search.table.entries import FORBIDDEN
from p2smt.search.table.matrices import MatrixList

_STATS = SolveStats("list")


def least(
    listed: MatrixList, costs: Sequence[IntArray], worst: bool, excluded: frozenset[Matrix]
) -> Result[Matrix]:
    """The matrix of least cost; of several the first, which is lexicographically smallest.

    ``costs`` hold ticks of each matrix by request, which add up, or of which the largest counts
    (``worst``).  OPTIMAL or INFEASIBLE: every matrix was looked at.
    """
    totals = _totals(listed, costs, worst, excluded)
    best = int(totals.argmin()) if len(totals) else None
    if best is None or totals[best] >= FORBIDDEN:
        return Result(Status.INFEASIBLE, stats=_STATS)
    return Result(Status.OPTIMAL, listed.matrix(best), int(totals[best]), _STATS)


def at_most(
    listed: MatrixList,
    costs: Sequence[IntArray],
    worst: bool,
    excluded: frozenset[Matrix],
    ticks: int,
    most: int,
) -> Result[tuple[Matrix, ...]]:
    """The matrices of at most so many ticks, in lexicographic order.

    COMPLETE, or TRUNCATED to the ``most`` of least cost.
    """
    totals = _totals(listed, costs, worst, excluded)
    found = np.flatnonzero(totals <= min(ticks, FORBIDDEN - 1))
    cheapest = found[np.argsort(totals[found], kind="stable")][:most]
    status = Status.COMPLETE if len(cheapest) == len(found) else Status.TRUNCATED
    return Result(status, tuple(listed.matrix(n) for n in sorted(cheapest)), stats=_STATS)


def _totals(
    listed: MatrixList, costs: Sequence[IntArray], worst: bool, excluded: frozenset[Matrix]
) -> IntArray:
    """The objective of each matrix in ticks; FORBIDDEN, or more, where it is no answer."""
    totals = np.zeros(len(listed), dtype=np.int64)
    for ticks in costs:
        forbidden = (totals >= FORBIDDEN) | (ticks >= FORBIDDEN)
        totals = np.maximum(totals, ticks) if worst else totals + ticks
        totals[forbidden] = FORBIDDEN
    for matrix in excluded:
        number = listed.number(matrix)
        if number is not None:
            totals[number] = FORBIDDEN
    return totals
