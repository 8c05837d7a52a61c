"""Cubes of parallelism matrices: those that share their first rows.

A decision is the row of the next axis, such as ``dp:8,4``: dp is split 8 ways at the outermost
level and 4 ways at the next.  The rows of the axes before it leave of each level a divisor, over
which the axis is split in every way; rows that a rule excludes are left out.  Whatever rows come
first, the others can be completed (each prime by itself is a table with given sums), so without
rules no cube is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix, Placement

MatrixRow = tuple[int, ...]
MatrixRules = tuple[AxisRule | FixedEntry, ...]


@dataclass(frozen=True, slots=True)
class MatrixSubproblems:
    """The matrices of these sizes under rules, cut by rows in the order of the axes.

    ``names`` are those of the axes; ``prefix`` are decisions that stand before all rows.
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]
    axes: tuple[int, ...]
    rules: MatrixRules = ()
    prefix: tuple[str, ...] = ()

    def roots(self, least: int) -> tuple[Subproblem, ...]:
        """The cubes of as many first rows as make ``least`` cubes, if there are so many."""
        found = [Subproblem(self.prefix)]
        for _ in self.axes[:-1]:
            if len(found) >= least:
                break
            found = [child for cube in found for child in self.split(cube)]
        if len(self.axes) == 1 or not found:
            return self.split(Subproblem(self.prefix)) if found else ()
        return tuple(found)

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """The cubes of one row more; none where the rows left are determined."""
        rows = self.rows(cube)
        if len(rows) >= max(1, len(self.axes) - 1):
            return ()
        left, axis = self._left(rows), len(rows)
        return tuple(
            cube.under(self._decision(axis, row))
            for row in ways(self.axes[axis], left)
            if self._allowed(axis, row)
        )

    def matrices(self, cube: Subproblem) -> Iterator[Matrix]:
        """Every matrix of a cube that obeys the rules, in lexicographic order; without a solver."""
        rows = self.rows(cube)
        if len(rows) == len(self.axes):
            yield rows
            return
        left, axis = self._left(rows), len(rows)
        for row in ways(self.axes[axis], left):
            if self._allowed(axis, row):
                yield from self.matrices(cube.under(self._decision(axis, row)))

    def rows(self, cube: Subproblem) -> tuple[MatrixRow, ...]:
        """The rows that a cube fixes.

        Raises:
            InputError: a decision is no row of its axis, or the rows exceed a level.
        """
        if cube.path[: len(self.prefix)] != self.prefix:
            raise InputError(f"cube {cube.path}", "is no part of this space")
        texts = cube.path[len(self.prefix) :]
        if len(texts) > len(self.axes):
            raise InputError(f"cube {cube.path}", f"has more than {len(self.axes)} rows")
        rows = tuple(_row(text, name) for text, name in zip(texts, self.names, strict=False))
        left = self.levels
        for row, size in zip(rows, self.axes, strict=False):
            if len(row) != len(left) or math.prod(row) != size:
                raise InputError(f"cube {cube.path}", f"has a row that is not {size} ways in all")
            if any(n % entry for n, entry in zip(left, row, strict=True)):
                raise InputError(f"cube {cube.path}", "splits a level more ways than it has")
            left = tuple(n // entry for n, entry in zip(left, row, strict=True))
        return rows

    def fixed(self, cube: Subproblem) -> MatrixRules:
        """The rules, and those that fix the rows of a cube."""
        rows = self.rows(cube)
        entries = [FixedEntry(i, j, n) for i, row in enumerate(rows) for j, n in enumerate(row)]
        return (*self.rules, *entries)

    def first(self, cube: Subproblem) -> tuple[int, ...]:
        """The entries that the matrices of a cube begin with, row by row."""
        return tuple(entry for row in self.rows(cube) for entry in row)

    def _decision(self, axis: int, row: MatrixRow) -> str:
        return f"{self.names[axis]}:{','.join(map(str, row))}"

    def _left(self, rows: Sequence[MatrixRow]) -> MatrixRow:
        """What the rows leave of each level."""
        taken = [math.prod(column) for column in zip(*rows, strict=True)] or [1] * len(self.levels)
        return tuple(n // used for n, used in zip(self.levels, taken, strict=True))

    def _allowed(self, axis: int, row: MatrixRow) -> bool:
        return all(_obeys(rule, row) for rule in self.rules if rule.axis == axis)


def ways(size: int, levels: Sequence[int]) -> Iterator[MatrixRow]:
    """Every split of a size over levels, at each by a divisor of it, in lexicographic order."""
    if not levels:
        if size == 1:
            yield ()
        return
    most = math.gcd(size, levels[0])
    for entry in range(1, most + 1):
        rest = size // entry
        if most % entry == 0 and math.prod(levels[1:]) % rest == 0:
            for row in ways(rest, levels[1:]):
                yield (entry, *row)


def flat(matrix: Matrix) -> tuple[int, ...]:
    """The entries row by row: matrices are ordered by them."""
    return tuple(entry for row in matrix for entry in row)


def _obeys(rule: AxisRule | FixedEntry, row: MatrixRow) -> bool:
    if isinstance(rule, FixedEntry):
        return row[rule.level] == rule.value
    return all(entry == 1 for entry in row[: rule.level + 1]) is rule.inside


def _row(text: str, name: str) -> MatrixRow:
    axis, colon, entries = text.partition(":")
    parts = entries.split(",")
    whole = all(part.isascii() and part.isdigit() and 0 < len(part) < 19 for part in parts)
    if axis != name or not colon or not whole or "0" in parts:
        raise InputError(f"decision {text[:60]!r}", f"is no row of {name}", f"write {name}:8,4")
    return tuple(int(part) for part in parts)


# Matrices as the texts that stand for members.


_MOST = 10_000


def matrix_of(text: str) -> Matrix:
    """The matrix of a text such as ``[[4,1],[1,16]]``, as :meth:`Placement.text` writes it.

    Raises:
        InputError: it is none, or is written in another way.
    """
    given = f"matrix {text[:60]!r}"
    try:
        data = loads(text[:_MOST])
        matrix = tuple(tuple(row) for row in data)
        placement = Placement(matrix)
    except (ValueError, TypeError, RecursionError):
        raise InputError(given, "is not written like [[4,1],[1,16]]") from None
    if placement.text() != text:
        raise InputError(given, "is not written like [[4,1],[1,16]]")
    return placement.matrix
