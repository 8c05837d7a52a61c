"""Where slices and collectives lead from a state.

A path needs slices of one digit at a time only, as they cost nothing and shrink the array, unless
the number of steps or the bytes of a step count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from p2smt.arrays.steps import StepKind
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.search.redistribution.exact.table import StateTable, powers, subsets
from p2smt.search.redistribution.exact.templates import template


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Steps of one kind over one set of digits, to states of these codes (some may not exist).

    ``plain``: where the blocks of a group follow each other, as far as the digits say.
    """

    kind: StepKind
    digits: tuple[int, ...]
    codes: IntArray
    plain: BoolArray


class DigitMoves:
    """The steps other than permutes of a table's states.

    ``letters`` has one for each digit: of steps that differ in digits of a letter only, one counts.
    """

    def __init__(self, table: StateTable, letters: Sequence[int]) -> None:
        self._table, self._letters = table, letters
        self._powers: list[int] = powers(table.frame, table.fixed).tolist()
        self._most = 1 if table.frame.nested else len(table.frame.digits)

    def bundles(self, number: int, whole_slices: bool) -> Iterator[Bundle]:
        """Every step from a state; without ``whole_slices`` slices of one digit only."""
        table = self._table
        dims, partial = table.dims(number), table.partial(number)
        code = int(table.codes[number])
        sharding = {digit for dim in dims for digit in dim}
        free = [q for q in range(len(self._powers)) if q not in sharding and q not in partial]
        most = self._most if whole_slices else 1
        for digits in self._sets(free, most):
            yield self._placed(StepKind.SLICE, code, dims, digits, range(len(dims)))
        yield from self._suffixes(code, dims)
        reducible = [q for q in partial if q in table.optional]
        for digits in self._sets(reducible, self._most):
            yield self._fewer(StepKind.ALL_REDUCE, code, dims, digits)
            less = code - self._held(dims, digits)
            takers = range(len(dims))
            yield self._placed(StepKind.REDUCE_SCATTER, less, dims, digits, takers)

    def _sets(self, digits: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
        """The sets of so many of them at most; of a letter the first ones."""
        for some in subsets(digits, 1, most):
            last = {self._letters[q]: q for q in some}
            if all(q in some or q > last.get(self._letters[q], -1) for q in digits):
                yield some

    def _placed(
        self,
        kind: StepKind,
        code: int,
        dims: list[list[int]],
        digits: tuple[int, ...],
        takers: Sequence[int],
    ) -> Bundle:
        """Digits without a place, counted out of the code, join the ends of these lists."""
        count = len(self._powers)
        rows = template(tuple(self._letters[q] for q in digits), len(takers))
        ends = np.array([1 + i * count + len(dims[i]) for i in takers], dtype=np.int64)
        places = ends[rows.taker] + rows.offset
        weights = np.array([self._powers[q] for q in digits], dtype=np.int64)
        return Bundle(kind, digits, code + places @ weights, rows.plain)

    def _suffixes(self, code: int, dims: list[list[int]]) -> Iterator[Bundle]:
        """The ends of lists are gathered, or move to lists that lose none."""
        for cut in product(*(range(len(dim) + 1) for dim in dims)):
            if not 0 < sum(cut) <= self._most:
                continue
            lost = [dim[len(dim) - k :] for dim, k in zip(dims, cut, strict=True)]
            yield self._gather(code, dims, lost)
            takers = [i for i, k in enumerate(cut) if not k]
            if takers:
                digits = tuple(sorted(q for some in lost for q in some))
                less = code - self._value(dims, digits)
                yield self._placed(StepKind.ALL_TO_ALL, less, dims, digits, takers)

    def _gather(self, code: int, dims: list[list[int]], lost: list[list[int]]) -> Bundle:
        digits = tuple(sorted(q for some in lost for q in some))
        cut = [some for some in lost if some]
        plain = len(cut) == 1 and cut[0] == sorted(cut[0])
        codes = np.array([code - self._value(dims, digits)], dtype=np.int64)
        return Bundle(StepKind.ALL_GATHER, digits, codes, np.array([plain]))

    def _value(self, dims: list[list[int]], digits: Sequence[int]) -> int:
        """What digits that shard count in a code."""
        count, found = len(self._powers), 0
        for i, dim in enumerate(dims):
            for position, digit in enumerate(dim):
                if digit in digits:
                    found += (1 + i * count + position) * self._powers[digit]
        return found

    def _fewer(
        self, kind: StepKind, code: int, dims: list[list[int]], digits: tuple[int, ...]
    ) -> Bundle:
        less = code - self._held(dims, digits)
        return Bundle(kind, digits, np.array([less], dtype=np.int64), np.array([True]))

    def _held(self, dims: list[list[int]], digits: Sequence[int]) -> int:
        """What partial digits count in a code."""
        last = 1 + len(dims) * len(self._powers)
        return last * sum(self._powers[q] for q in digits)
