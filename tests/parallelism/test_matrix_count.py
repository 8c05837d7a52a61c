"""The number of matrices by the formula, against a list of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallelism.matrix_count import matrix_count
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from tests.tiers import examples_of

Rules = Sequence[AxisRule | FixedEntry]


def every(levels: Sequence[int], axes: Sequence[int]) -> Iterator[Matrix]:
    """All matrices, by trying every entry."""
    rows = [
        [row for row in product(*(range(1, n + 1) for n in levels)) if math.prod(row) == size]
        for size in axes
    ]
    for matrix in product(*rows):
        if tuple(map(math.prod, zip(*matrix, strict=True))) == tuple(levels):
            yield matrix


def obeys(matrix: Matrix, rules: Rules) -> bool:
    for rule in rules:
        row = matrix[rule.axis]
        if isinstance(rule, FixedEntry):
            if row[rule.level] != rule.value:
                return False
        elif (max(row[: rule.level + 1]) == 1) != rule.inside:
            return False
    return True


def listed(levels: Sequence[int], axes: Sequence[int], rules: Rules, rows: Matrix) -> int:
    found = [m for m in every(levels, axes) if m[: len(rows)] == rows]
    return sum(obeys(matrix, rules) for matrix in found)


SIZES = [
    ((4, 6), (2, 12)),
    ((4, 6), (4, 3, 2)),
    ((2, 2, 8), (4, 8)),
    ((6, 4), (6, 2, 2)),
    ((2, 3, 4), (4, 6)),
    ((12,), (3, 4)),
    ((3, 4), (1, 12)),
    ((4, 4), (6, 3)),
    ((1,), (1,)),
]


@st.composite
def questions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], Rules, Matrix]:
    levels, axes = draw(st.sampled_from(SIZES))
    axis = st.integers(0, len(axes) - 1)
    level = st.integers(0, len(levels) - 1)
    rule = st.builds(AxisRule, axis, level, st.booleans()) | st.builds(
        FixedEntry, axis, level, st.integers(1, 4)
    )
    rules = draw(st.lists(rule, max_size=3))
    matrices = list(every(levels, axes))
    rows: Matrix = draw(st.sampled_from(matrices)) if matrices else ()
    return levels, axes, rules, rows[: draw(st.integers(0, len(axes)))]


@given(questions())
@settings(max_examples=examples_of(200), deadline=None)
def test_it_is_the_number_of_those_that_are_listed(
    question: tuple[tuple[int, ...], tuple[int, ...], Rules, Matrix],
) -> None:
    assert matrix_count(*question) == listed(*question)


@pytest.mark.parametrize(("levels", "axes"), SIZES)
def test_first_rows_divide_the_whole(levels: tuple[int, ...], axes: tuple[int, ...]) -> None:
    first = {matrix[:1] for matrix in every(levels, axes)}
    parts = (matrix_count(levels, axes, rows=rows) for rows in first)
    assert sum(parts) == matrix_count(levels, axes) == len(list(every(levels, axes)))


def test_large_sizes_are_counted_at_once() -> None:
    """Two axes and two levels of one prime: as many as the least of the four exponents, and one."""
    assert matrix_count((2**20, 2**9), (2**15, 2**14)) == 10
    # Six levels of 4 and four axes of 8: the coefficient of the product of complete symmetric
    # polynomials, made here by multiplying them out.
    counts: dict[tuple[int, ...], int] = {(0,) * 6: 1}
    for _ in range(4):
        step: dict[tuple[int, ...], int] = {}
        for taken, ways in counts.items():
            for row in product(range(3), repeat=6):
                reached = tuple(map(sum, zip(taken, row, strict=True)))
                if sum(row) == 3 and max(reached) <= 2:
                    step[reached] = step.get(reached, 0) + ways
        counts = step
    assert matrix_count((4,) * 6, (8,) * 4) == counts[(2,) * 6]


def test_rows_that_are_none_of_a_matrix() -> None:
    for rows in ([(2,)], [(1, 1), (2, 2), (1, 1)]):
        with pytest.raises(InputError, match="none of a matrix"):
            matrix_count((2, 2), (2, 2), rows=rows)
    assert matrix_count((2, 2), (2, 2), rows=[(2, 2)]) == 0
    assert matrix_count((2, 2), (2, 2), rows=[(3, 1)]) == 0
    assert matrix_count((2, 2), (2, 2), rows=[(0, 1)]) == 0
    assert matrix_count((2, 2), (2, 2), rows=[(2, 1), (1, 2)]) == 1
