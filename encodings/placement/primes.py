"""Axis and level sizes as products of primes: what the placement encodings count in.

An entry of a parallelism matrix is a product of primes, so the matrix is a table of
exponents e[i, j, p] (axis, level, index of a prime) whose row and column sums are the
exponents of the sizes.  The primes are independent of each other unless a side constraint
couples them.  Nothing here knows a solver.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from p2smt.errors import TooLarge
from p2smt.parallelism.placement import FixedEntry, Matrix
from p2smt.problems.placement import CostTable, PlacementProblem
from p2smt.result import Status

MAX_LEVEL_SIZE = 2**40
Cell = tuple[int, int, int]  # axis, level, index of a prime
Column = tuple[Cell, ...]  # stands for the sum of the exponents in these cells


def prime_factors(number: int) -> tuple[int, ...]:
    """The distinct primes of a positive integer, ascending, by trial division."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            found.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1 if divisor == 2 else 2
    return (*found, number) if number > 1 else tuple(found)


@dataclass(frozen=True, slots=True)
class ExponentTable:
    """A cost table over exponents: ``rows`` pairs the values of ``columns`` with ticks.

    Columns that cannot vary, and rows that no matrix can have, are gone.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True, slots=True)
class PrimeSizes:
    """Exponents of the sizes: ``axes[i][p]`` and ``levels[j][p]`` for prime ``primes[p]``.

    ``blocks``: the axes that share each level out, all of them or those of two matrices.
    """

    primes: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    levels: tuple[tuple[int, ...], ...]
    blocks: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(problem: PlacementProblem) -> PrimeSizes:
        """Factorise the sizes; raises TooLarge if a level exceeds MAX_LEVEL_SIZE."""
        largest = max(problem.levels)
        if largest > MAX_LEVEL_SIZE:
            raise TooLarge(f"level size {largest}", f"must be at most {MAX_LEVEL_SIZE}")
        primes = tuple(sorted({p for size in problem.levels for p in prime_factors(size)}))
        sizes = PrimeSizes(primes, (), (), problem.blocks)
        axes = tuple(sizes.exponents(size) or () for size in problem.axes)
        levels = tuple(sizes.exponents(size) or () for size in problem.levels)
        return PrimeSizes(primes, axes, levels, problem.blocks)

    def exponents(self, value: int) -> tuple[int, ...] | None:
        """Exponents of ``value``; None if it is not a product of the primes."""
        if value < 1:
            return None
        found = []
        for prime in self.primes:
            exponent = 0
            while value % prime == 0:
                value, exponent = value // prime, exponent + 1
            found.append(exponent)
        return tuple(found) if value == 1 else None

    def value(self, exponents: Sequence[int]) -> int:
        """The product that these exponents stand for."""
        return math.prod(p**e for p, e in zip(self.primes, exponents, strict=True))

    def cells(self, part: Sequence[int]) -> Iterator[Cell]:
        """The cells of these prime indices, row-major."""
        return itertools.product(range(len(self.axes)), range(len(self.levels)), part)

    def bounds(self, cell: Cell) -> tuple[int, int]:
        """Least and largest exponent that the sums alone leave to a cell."""
        i, j, p = cell
        row, column = self.axes[i][p], self.levels[j][p]
        total = sum(level[p] for level in self.levels)
        return max(0, row + column - total), min(row, column)

    def entry_values(
        self, axis: int, level: int, part: Sequence[int]
    ) -> list[tuple[int, tuple[int, ...]]]:
        """What these primes of an entry can give in bounds: (value, exponents), ascending."""
        spans = [self.bounds((axis, level, p)) for p in part]
        choices = itertools.product(*(range(low, high + 1) for low, high in spans))
        primes = [self.primes[p] for p in part]
        return sorted((math.prod(map(pow, primes, choice)), choice) for choice in choices)

    def matrix(self, exponents: Mapping[Cell, int]) -> Matrix:
        """The matrix with these exponents; cells that are not given count as 0."""
        return tuple(
            tuple(
                math.prod(p ** exponents.get((i, j, k), 0) for k, p in enumerate(self.primes))
                for j in range(len(self.levels))
            )
            for i in range(len(self.axes))
        )

    def split(self, matrix: Matrix) -> dict[Cell, int] | None:
        """The exponents of a matrix; None if these primes cannot express it."""
        if [len(row) for row in matrix] != [len(self.levels)] * len(self.axes):
            return None
        found: dict[Cell, int] = {}
        for i, row in enumerate(matrix):
            for j, entry in enumerate(row):
                exponents = self.exponents(entry)
                if exponents is None:
                    return None
                found.update(((i, j, p), exponent) for p, exponent in enumerate(exponents))
        return found

    def column_bounds(self, column: Column) -> tuple[int, int]:
        """Least and largest sum over the cells; equal if a matrix's or only fixed cells are in."""
        if tuple(sorted(cell[0] for cell in column)) in self.blocks:
            _, level, prime = column[0]
            return self.levels[level][prime], self.levels[level][prime]
        bounds = [self.bounds(cell) for cell in column]
        return sum(low for low, _ in bounds), sum(high for _, high in bounds)

    def table(self, table: CostTable) -> ExponentTable:
        """A cost table over exponents, with each column that can vary once."""
        count = len(self.primes)
        columns = [
            tuple((i, t.level, p) for i in t.axes) for t in table.terms for p in range(count)
        ]
        bounds = [self.column_bounds(column) for column in columns]
        first = [columns.index(column) for column in columns]
        keep = [k for k in sorted(set(first)) if bounds[k][0] < bounds[k][1]]
        rows = {}
        for values, ticks in table.rows.items():
            row = self._flat(values)
            if row is not None and all(
                low <= value <= high and value == row[f]
                for value, (low, high), f in zip(row, bounds, first, strict=True)
            ):
                rows[tuple(row[k] for k in keep)] = ticks
        return ExponentTable(tuple(columns[k] for k in keep), tuple(sorted(rows.items())))

    def _flat(self, values: Sequence[int]) -> tuple[int, ...] | None:
        """The exponents of several values in one tuple; None if one has a foreign factor."""
        flat: list[int] = []
        for value in values:
            exponents = self.exponents(value)
            if exponents is None:
                return None
            flat += exponents
        return tuple(flat)


def independent_parts(problem: PlacementProblem, sizes: PrimeSizes) -> list[tuple[int, ...]]:
    """Prime indices in groups that no side constraint couples: their answers combine freely.

    A group for each prime if the only rules are "inside" and fixed entries; else one group.
    """
    free = all(isinstance(rule, FixedEntry) or rule.inside for rule in problem.rules)
    count = len(sizes.primes)
    if free and count > 1 and not problem.costs and not problem.excluded:
        return [(p,) for p in range(count)]
    return [tuple(range(count))]


@dataclass(frozen=True, slots=True)
class PartAnswers:
    """Matrices over a part of the primes, and whether they are proved to be all."""

    matrices: tuple[Matrix, ...]
    complete: bool


def combine(
    parts: Sequence[PartAnswers], max_answers: int | None, expired: Callable[[], bool]
) -> tuple[Status, tuple[Matrix, ...]]:
    """All entry-wise products of one matrix of each part, sorted: COMPLETE or TRUNCATED.

    One part that is proved to have no answer proves it for the whole.
    """
    if any(part.complete and not part.matrices for part in parts):
        return Status.COMPLETE, ()
    complete = all(part.complete for part in parts)
    found: list[Matrix] = []
    for choice in itertools.product(*(part.matrices for part in parts)):
        if len(found) == max_answers or expired():
            complete = False
            break
        found.append(functools.reduce(_times, choice))
    return Status.COMPLETE if complete else Status.TRUNCATED, tuple(sorted(found))


def _times(left: Matrix, right: Matrix) -> Matrix:
    return tuple(tuple(map(operator.mul, r, s)) for r, s in zip(left, right, strict=True))
