"""Brute force for placements: slow, obvious, and independent of the encodings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import CostTable, PlacementProblem


def all_matrices(levels: tuple[int, ...], axes: tuple[int, ...]) -> Iterator[Matrix]:
    """All parallelism matrices in lexicographic order, by recursion over divisors."""
    if not axes:
        if all(level == 1 for level in levels):
            yield ()
        return
    for row in _rows(levels, axes[0]):
        left = tuple(level // entry for level, entry in zip(levels, row, strict=True))
        for rest in all_matrices(left, axes[1:]):
            yield (row, *rest)


def _rows(levels: tuple[int, ...], product: int) -> Iterator[tuple[int, ...]]:
    if not levels:
        if product == 1:
            yield ()
        return
    for entry in range(1, levels[0] + 1):
        if levels[0] % entry == 0 and product % entry == 0:
            for rest in _rows(levels[1:], product // entry):
                yield (entry, *rest)


def all_rows(problem: PlacementProblem) -> Iterator[Matrix]:
    """All matrices of a problem's sizes; folded: each pair with one first row, its rows as one."""
    first = len(problem.axes) - problem.folded
    own = all_matrices(problem.levels, problem.axes[:first])
    if not problem.folded:
        yield from own
        return
    others = list(all_matrices(problem.levels, (problem.axes[0], *problem.axes[first:])))
    for matrix in own:
        yield from ((*matrix, *other[1:]) for other in others if other[0] == matrix[0])


def obeys(matrix: Matrix, rule: AxisRule | FixedEntry) -> bool:
    """Whether a matrix satisfies a rule, as the rule's docstring says it."""
    if isinstance(rule, FixedEntry):
        return matrix[rule.axis][rule.level] == rule.value
    return (max(matrix[rule.axis][: rule.level + 1]) == 1) is rule.inside


def table_cost(matrix: Matrix, table: CostTable) -> int | None:
    """Ticks of a matrix by one table; None if it is not allowed."""
    values = tuple(math.prod(matrix[i][term.level] for i in term.axes) for term in table.terms)
    return table.rows.get(values)


def objective(problem: PlacementProblem, matrix: Matrix) -> int | None:
    """The objective in ticks; None if a cost table does not allow the matrix."""
    costs = [table_cost(matrix, table) for table in problem.costs]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return max(known, default=0) if problem.worst else sum(known)


def valid_matrices(problem: PlacementProblem) -> list[tuple[Matrix, int]]:
    """All answers of a problem with their objective, in lexicographic order."""
    found = []
    for matrix in all_rows(problem):
        cost = objective(problem, matrix)
        allowed = all(obeys(matrix, rule) for rule in problem.rules)
        if cost is None or not allowed or matrix in problem.excluded:
            continue
        if problem.at_most is None or cost <= problem.at_most:
            found.append((matrix, cost))
    return found


def best_matrix(problem: PlacementProblem) -> tuple[Matrix, int] | None:
    """The lexicographically smallest optimum with its objective; None if there is none."""
    return min(valid_matrices(problem), key=lambda pair: (pair[1], pair[0]), default=None)
