"""Every matrix of some levels and axes in a table of numbers, if there are not too many.

A column of a matrix is an ordered factorisation of its level's size, each factor a divisor of its
axis.  Every such column belongs to some matrix: prime by prime, what it leaves of the axes fits on
what is left of the levels, since the sums are equal.  So without rules no partial list is longer
than the whole one, and the list is given up as soon as a part of it is too long.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

import numpy as np

from p2smt.cost.loads.footprint import Digits
from p2smt.parallelism.matrices import divisors
from p2smt.parallelism.placement import AxisRule, BoolArray, FixedEntry, IntArray, Matrix

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


# Every way in which some axes can split over the levels: counted first, then listed.
# A split is a column per level.  Where positions matter a column says what the other axes put
# between the chosen ones; elsewhere only the product counts.  ``left`` is what of each chosen axis
# remains for the levels further in, and then what remains of the others: of those before all chosen
# ones, and of those just after each.


_Left = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SceneColumn:
    """One level of a split: values of its terms, and the digits they stand for."""

    values: tuple[int, ...]
    digits: Digits


Split = tuple[SceneColumn, ...]
_Step = tuple[SceneColumn, _Left]


@dataclass(frozen=True, slots=True)
class Columns:
    """Splits of the ``chosen`` axes over levels of these sizes, under rules.

    ``exact``: levels where positions matter.  ``fixed``: values that rules want at (axis, level);
    two of them exclude each other.  ``across``: axes (and levels) that must be split there or
    outside it.  Rules on other axes leave out what they exclude of a level; what they exclude
    together may stay.
    """

    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    chosen: tuple[int, ...]
    exact: tuple[bool, ...]
    fixed: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    across: tuple[tuple[int, int], ...] = ()
    _steps: dict[tuple[int, _Left], tuple[_Step, ...]] = field(default_factory=dict)
    _counts: dict[tuple[int, frozenset[_Left]], int] = field(default_factory=dict)

    def more_than(self, most: int) -> bool:
        """Whether there are more than ``most`` different splits; no split is built for it."""
        return self._count(0, frozenset([self._whole]), most) > most

    def splits(self) -> Iterator[Split]:
        """Every split; one may come again where different ``left`` lead to the same values."""
        return self._extend(0, self._whole)

    @property
    def _whole(self) -> _Left:
        others = (math.prod(self.axes[i] for i in span) for span in self._spans)
        return (*(self.axes[i] for i in self.chosen), *others)

    @property
    def _spans(self) -> list[range]:
        """The axes before all chosen ones, and those just after each."""
        ends = [*self.chosen, len(self.axes)]
        after = (range(i + 1, end) for i, end in zip(self.chosen, ends[1:], strict=True))
        return [range(ends[0]), *after]

    def _extend(self, j: int, left: _Left) -> Iterator[Split]:
        if j == len(self.sizes):
            yield ()
            return
        for column, rest in self._steps_of(j, left):
            for more in self._extend(j + 1, rest):
                yield (column, *more)

    def _count(self, j: int, lefts: frozenset[_Left], most: int) -> int:
        """Different splits of the levels from j on, of any of ``lefts``; or more than ``most``."""
        if j == len(self.sizes):
            return 1
        if (j, lefts) not in self._counts:
            after: defaultdict[tuple[int, ...], set[_Left]] = defaultdict(set)
            for left in lefts:
                for column, rest in self._steps_of(j, left):
                    after[column.values].add(rest)
            total = 0
            for rests in after.values():
                total += self._count(j + 1, frozenset(rests), most)
                if total > most:
                    break
            self._counts[j, lefts] = total
        return self._counts[j, lefts]

    def _steps_of(self, j: int, left: _Left) -> tuple[_Step, ...]:
        """The columns of level j with what they leave, if that fits on the levels further in."""
        if (j, left) not in self._steps:
            found = dict.fromkeys(self._columns(j, left))
            self._steps[j, left] = tuple(
                (column, rest) for column, rest in found if self._fits(j + 1, rest)
            )
        return self._steps[j, left]

    def _fits(self, j: int, left: _Left) -> bool:
        if j == len(self.sizes):
            return math.prod(left[: len(self.chosen)]) == 1
        return bool(self._steps_of(j, left))

    def _columns(self, j: int, left: _Left) -> Iterator[_Step]:
        mine, others = left[: len(self.chosen)], left[len(self.chosen) :]
        for entries in product(
            *(self._entries(j, i, n) for i, n in zip(self.chosen, mine, strict=True))
        ):
            merged = math.prod(entries)
            rest = tuple(n // e for n, e in zip(mine, entries, strict=True))
            if self.sizes[j] % merged or math.prod(self.sizes[j + 1 :]) % math.prod(rest):
                continue
            if self._across(j, rest):
                free = self.sizes[j] // merged
                for column, still in self._level_columns(j, entries, free, others):
                    yield column, (*rest, *still)

    def _entries(self, j: int, axis: int, left: int) -> Sequence[int]:
        possible = divisors(math.gcd(left, self.sizes[j]))
        wanted = self.fixed.get((axis, j))
        return possible if wanted is None else [n for n in possible if {n} == wanted]

    def _across(self, j: int, rest: _Left) -> bool:
        """Whether axes that must be split at level j or outside it are, given what is left."""
        left = dict(zip(self.chosen, rest, strict=True))
        return all(left.get(i) != self.axes[i] for i, level in self.across if level == j)

    def _level_columns(
        self, j: int, entries: Sequence[int], free: int, left: _Left
    ) -> Iterator[_Step]:
        """The columns with these entries: one, or one per way the other axes lie in between.

        With each what remains of ``left``, the others.  A level where only counts matter takes
        any of them: what lies there is what the other levels leave.
        """
        others = [i for i in range(len(self.axes)) if i not in self.chosen]
        if not self._may_hold(j, others, free):
            return
        if not self.exact[j]:
            merged = math.prod(entries)
            yield SceneColumn((merged,), ((merged, 1),) if merged > 1 else ()), left
            return
        for gaps in self._gaps(j, free, left):
            still = tuple(n // gap for n, gap in zip(left, gaps, strict=True))
            yield _column(len(self.axes), self.chosen, entries, gaps[1:]), still

    def _may_hold(self, j: int, others: Sequence[int], free: int) -> bool:
        """Whether the rules let these other axes together be split ``free`` ways at level j."""
        wanted = [self.fixed[i, j] for i in others if (i, j) in self.fixed]
        if any(len(values) > 1 for values in wanted):
            return False
        fixed = math.prod(value for values in wanted for value in values)
        return free == fixed if len(wanted) == len(others) else free % fixed == 0

    def _gaps(self, j: int, free: int, left: _Left) -> Iterator[tuple[int, ...]]:
        """Products of the other axes' entries: before all chosen axes, and just after each."""
        fit = [
            [d for d in divisors(math.gcd(free, n)) if self._may_hold(j, span, d)]
            for span, n in zip(self._spans, left, strict=True)
        ]
        for after in product(*fit[1:]):
            before, odd = divmod(free, math.prod(after))
            if not odd and before in fit[0]:
                yield (before, *after)


def fixed_values(
    rules: Sequence[AxisRule | FixedEntry],
) -> dict[tuple[int, int], frozenset[int]]:
    """The values that rules want at (axis, level), where they want any."""
    found: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for rule in rules:
        if isinstance(rule, FixedEntry):
            found[rule.axis, rule.level].add(rule.value)
        elif rule.inside:
            for j in range(rule.level + 1):
                found[rule.axis, j].add(1)
    return {cell: frozenset(values) for cell, values in found.items()}


def across_levels(rules: Sequence[AxisRule | FixedEntry]) -> tuple[tuple[int, int], ...]:
    """(axis, level) of each rule that an axis lies across a level."""
    return tuple((r.axis, r.level) for r in rules if isinstance(r, AxisRule) and not r.inside)


def _column(
    axes: int, chosen: Sequence[int], entries: Sequence[int], gaps: Sequence[int]
) -> SceneColumn:
    """The column of these entries with the other axes' products just after each."""
    values: list[int] = []
    digits: list[tuple[int, int]] = []
    suffix = 1
    for i, entry, gap in reversed(list(zip(chosen, entries, gaps, strict=True))):
        stride = suffix * gap
        values = [entry, *([stride] if i + 1 < axes else []), *values]
        suffix = stride * entry
        digits = [(entry, stride), *digits]
    return SceneColumn(tuple(values), _merged(digits))


def _merged(digits: Sequence[tuple[int, int]]) -> Digits:
    """Digits as :func:`p2smt.cost.loads.footprint.digits_of` gives them."""
    found: list[tuple[int, int]] = []
    for size, stride in digits:
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        elif size > 1:
            found.append((size, stride))
    return tuple(found)
