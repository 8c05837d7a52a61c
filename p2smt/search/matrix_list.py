"""Every matrix of some levels and axes in a table of numbers, if there are not too many.

A column of a matrix is an ordered factorisation of its level's size, each factor a divisor of its
axis.  Every such column belongs to some matrix: prime by prime, what it leaves of the axes fits on
what is left of the levels, since the sums are equal.  So without rules no partial list is longer
than the whole one, and the list is given up as soon as a part of it is too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from p2smt.parallelism.placement import AxisRule, BoolArray, FixedEntry, IntArray, Matrix
from p2smt.search.scene_columns import divisors

MAX_LISTED = 1_000_000
"""Longer lists are left to a solver."""

_PACKED = 2**62
_TRIED = 20_000_000  # pairs of a state and a column: more take longer than a solver

Column = tuple[int, ...]
_Rules = Sequence[AxisRule | FixedEntry]


@dataclass(frozen=True, slots=True)
class MatrixList:
    """All matrices of a question, in lexicographic order of their rows.

    ``columns[j]`` are the columns that some matrix has at level j, ``ids[n, j]`` is which of them
    matrix n has there.
    """

    columns: tuple[tuple[Column, ...], ...]
    ids: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def matrix(self, number: int) -> Matrix:
        """The matrix of this number."""
        chosen = [columns[n] for columns, n in zip(self.columns, self.ids[number], strict=True)]
        return tuple(zip(*chosen, strict=True))

    def number(self, matrix: Matrix) -> int | None:
        """The number of a matrix; None if it is not in the list."""
        wanted = []
        for column, known in zip(zip(*matrix, strict=True), self.columns, strict=True):
            if column not in known:
                return None
            wanted.append(known.index(column))
        found = np.flatnonzero((self.ids == wanted).all(axis=1))
        return int(found[0]) if len(found) else None


def listed(
    levels: Sequence[int], axes: Sequence[int], rules: _Rules = (), most: int = MAX_LISTED
) -> MatrixList | None:
    """The matrices under rules; None if there are too many, or were without the rules."""
    columns = []
    for j, size in enumerate(levels):
        found = list(islice(_columns(size, axes, _values(j, axes, rules)), most + 1))
        if len(found) > most:
            return None
        columns.append(tuple(found))
    ids = _combined(columns, axes, rules, most)
    if ids is None:
        return None
    order = np.lexsort(_keys(columns, ids, len(axes))[::-1])
    return MatrixList(tuple(columns), ids[order])


def _keys(columns: Sequence[Sequence[Column]], ids: IntArray, axes: int) -> list[IntArray]:
    """Numbers that order matrices by their rows: entries by rank, packed while they fit."""
    keys, size = [np.zeros(len(ids), dtype=np.int64)], 1
    for i in range(axes):
        for j, known in enumerate(columns):
            entries = [column[i] for column in known]
            values = sorted(set(entries))
            ranks = np.array([values.index(entry) for entry in entries], dtype=np.int64)
            if size * len(values) > _PACKED:
                keys.append(np.zeros(len(ids), dtype=np.int64))
                size = 1
            keys[-1] = keys[-1] * len(values) + ranks[ids[:, j]]
            size *= len(values)
    return keys


def _values(level: int, axes: Sequence[int], rules: _Rules) -> list[frozenset[int] | None]:
    """Per axis the entries that rules want at a level, None if any."""
    found: list[frozenset[int] | None] = [None] * len(axes)
    for rule in rules:
        wanted = None
        if isinstance(rule, FixedEntry) and rule.level == level:
            wanted = frozenset([rule.value])
        elif isinstance(rule, AxisRule) and rule.inside and level <= rule.level:
            wanted = frozenset([1])
        if wanted is not None:
            known = found[rule.axis]
            found[rule.axis] = wanted if known is None else known & wanted
    return found


def _columns(
    size: int, axes: Sequence[int], wanted: Sequence[frozenset[int] | None]
) -> Iterator[Column]:
    """Every way to write a size as a product of divisors of the axes, in lexicographic order."""
    if not axes:
        if size == 1:
            yield ()
        return
    for entry in divisors(math.gcd(size, axes[0])):
        if wanted[0] is not None and entry not in wanted[0]:
            continue
        if math.prod(axes[1:]) % (size // entry) == 0:
            for rest in _columns(size // entry, axes[1:], wanted[1:]):
                yield (entry, *rest)


def _combined(
    columns: Sequence[Sequence[Column]], axes: Sequence[int], rules: _Rules, most: int
) -> IntArray | None:
    """Columns that make up a matrix, by their numbers; None if a part of the list is too long.

    What is left of the axes decides what can follow, so each different rest is looked at once.

    ``states`` are what is left of the axes, ``at`` is the state of each partial matrix.
    """
    states = np.array([axes], dtype=np.int64)
    ids = np.empty((1, 0), dtype=np.int64)
    at = np.zeros(1, dtype=np.int64)
    for j, listed_columns in enumerate(columns):
        column = np.array(listed_columns, dtype=np.int64).reshape(-1, len(axes))
        if len(states) * len(column) > _TRIED:
            return None
        source, chosen = np.nonzero(_fits(states, column))
        left = states[source] // column[chosen]
        kept = _across(left, axes, rules, j)
        source, chosen, left = source[kept], chosen[kept], left[kept]
        counts = np.bincount(source, minlength=len(states))
        if counts[at].sum() > most:
            return None
        before, steps = _joined(at, counts)
        ids = np.concatenate([ids[before], chosen[steps][:, None]], axis=1)
        states, target = np.unique(left, axis=0, return_inverse=True)
        at = target.reshape(-1)[steps]
    whole = (states == 1).all(axis=1)[at]
    return np.asarray(ids[whole])


def _fits(states: IntArray, columns: IntArray) -> BoolArray:
    """Which columns divide which states."""
    fits = np.ones((len(states), len(columns)), dtype=bool)
    for i in range(states.shape[1]):
        fits &= states[:, i, None] % columns[:, i] == 0
    return fits


def _across(left: IntArray, axes: Sequence[int], rules: _Rules, level: int) -> BoolArray:
    """Where axes that must be split at a level or outside it are."""
    kept = np.ones(len(left), dtype=bool)
    for rule in rules:
        if isinstance(rule, AxisRule) and not rule.inside and rule.level == level:
            kept &= left[:, rule.axis] < axes[rule.axis]
    return kept


def _joined(at: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Each partial matrix with each step from its state; steps are in order of their states."""
    mine, first = counts[at], np.cumsum(counts) - counts
    before = np.repeat(np.arange(len(at)), mine)
    offset = np.arange(len(before)) - np.repeat(np.cumsum(mine) - mine, mine)
    return before, first[at][before] + offset
