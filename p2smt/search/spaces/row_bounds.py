"""What the first rows of a matrix say of its cost: a bound without a solver.

A row of a cost table fits the first rows of a matrix if its terms may still come out: a term whose
axes all have their rows is their product, of another one the product so far is a divisor.  The
least cost of the fitting rows of each table, summed (or the largest of them), bounds all matrices
that begin with these rows: where all axes of a request have their rows it is what the links allow
on its scene, elsewhere what they allow on the best scene that is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p2smt.problems.placement import CostTable, PlacementProblem
from p2smt.search.spaces.rows import MatrixRow

_Known = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Bounds by the cost tables of a question, in its ticks."""

    question: PlacementProblem
    _least: dict[tuple[int, _Known], int | None] = field(default_factory=dict)

    def bound(self, rows: Sequence[MatrixRow]) -> int | None:
        """Ticks that no matrix with these first rows is below; None: there is no such matrix."""
        found = [self._of(number, rows) for number in range(len(self.question.costs))]
        least = [ticks for ticks in found if ticks is not None]
        if len(least) < len(found):
            return None
        return max(least, default=0) if self.question.worst else sum(least)

    def _of(self, number: int, rows: Sequence[MatrixRow]) -> int | None:
        table = self.question.costs[number]
        known = _known(table, rows)
        if (number, known) not in self._least:
            fits = (ticks for values, ticks in table.rows.items() if _fits(values, known))
            self._least[number, known] = min(fits, default=None)
        return self._least[number, known]


def narrowed(question: PlacementProblem, rows: Sequence[MatrixRow]) -> PlacementProblem:
    """The question with only those rows of its tables that fit the first rows of a matrix."""
    costs = []
    for table in question.costs:
        known = _known(table, rows)
        kept = {values: ticks for values, ticks in table.rows.items() if _fits(values, known)}
        costs.append(CostTable(table.terms, kept))
    return replace(question, costs=tuple(costs))


def _known(table: CostTable, rows: Sequence[MatrixRow]) -> _Known:
    """Of each term of a table its product so far, and whether that is all of it."""
    found = []
    for term in table.terms:
        so_far = math.prod(rows[i][term.level] for i in term.axes if i < len(rows))
        found.append((so_far, all(i < len(rows) for i in term.axes)))
    return tuple(found)


def _fits(values: Sequence[int], known: _Known) -> bool:
    return all(
        value == so_far if whole else value % so_far == 0
        for value, (so_far, whole) in zip(values, known, strict=True)
    )
