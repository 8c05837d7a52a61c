"""Cells of the least of functions with roots: against every function, on both sides of bounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from p2smt.cost.symbolic.curve_cells import CurvePiece, curve_cells, piecewise_cells
from p2smt.cost.symbolic.curves import PayloadCurve
from p2smt.cost.symbolic.form import LeastCell, PayloadLine, line_cells

numbers = st.fractions(0, 9, max_denominator=4)
radicands = st.lists(st.fractions(0, 9, max_denominator=3), max_size=2)
curves = st.builds(PayloadCurve.of, numbers, numbers, radicands)
ZERO = Fraction(0)


def least(every: list[PayloadCurve], best: PayloadCurve, x: Fraction) -> bool:
    """Whether nothing is less there, exactly."""
    value = best.value(x)
    return all(value.plus(one.value(x), -1).sign() <= 0 for one in every)


@given(st.lists(curves, min_size=1, max_size=6, unique=True), numbers, st.booleans())
def test_the_best_of_a_cell_is_least_in_all_of_it(
    every: list[PayloadCurve], low: Fraction, ends: bool
) -> None:
    high = low + 5 if ends else None
    cells = curve_cells(every, low, high)
    assert cells[0].low == low
    assert not ends or cells[-1].high is not None
    assert ends or cells[-1].high is None
    for cell in cells:
        last = cell.low * 2 + 100 if cell.high is None else cell.high
        (best,) = cell.best
        for part in (0, 1, Fraction(1, 3), Fraction(1, 2**40), 1 - Fraction(1, 2**40)):
            assert least(every, every[best], cell.low + (last - cell.low) * part)


@given(st.lists(curves, min_size=2, max_size=6, unique=True))
def test_a_gap_is_narrow_and_has_a_root(every: list[PayloadCurve]) -> None:
    for before, after in pairwise(curve_cells(every, ZERO, None)):
        assert before.high is not None
        if before.high == after.low:
            continue
        assert after.low - before.high <= after.low / 2**38
        one, other = every[before.best[0]], every[after.best[0]]
        assert one.value(before.high).plus(other.value(before.high), -1).sign() <= 0
        assert one.value(after.low).plus(other.value(after.low), -1).sign() >= 0


@given(st.lists(st.builds(PayloadLine, numbers, numbers), min_size=1, max_size=6, unique=True))
def test_of_lines_they_are_those_of_lines(lines: list[PayloadLine]) -> None:
    every = [PayloadCurve(line.at_zero, line.slope) for line in lines]
    assert curve_cells(every, ZERO, None) == line_cells(lines, ZERO, None)


def test_a_function_that_dips_below_another_is_seen() -> None:
    """1 + x and 6 sqrt(x) - 4 + .. : in y, y^2 - 6 y + 5 is negative between 1 and 5."""
    rising = PayloadCurve.of(Fraction(5), Fraction(1))
    root = PayloadCurve.of(ZERO, ZERO, [Fraction(36)])
    cells = curve_cells([rising, root], ZERO, None)
    assert [cell.best for cell in cells] == [(1,), (0,), (1,)]
    for cell, at in zip(cells, (1, 25), strict=False):
        assert cell.high is not None
        assert abs(cell.high - at) < Fraction(1, 2**30)


def test_functions_that_touch_do_not_cross() -> None:
    """x + 9 and 6 sqrt(x) meet at 9 alone."""
    line, root = (
        PayloadCurve.of(Fraction(9), Fraction(1)),
        PayloadCurve.of(ZERO, ZERO, [Fraction(36)]),
    )
    cells = curve_cells([line, root], ZERO, None)
    assert [cell.best for cell in cells] == [(1,)]


def test_pieces_begin_and_end() -> None:
    flat, steep = PayloadCurve.of(Fraction(2), ZERO), PayloadCurve.of(ZERO, Fraction(1))
    pieces = [
        CurvePiece(ZERO, Fraction(1), flat, (0,)),
        CurvePiece(ZERO, Fraction(4), steep, (1,)),
        CurvePiece(Fraction(1), None, PayloadCurve.of(Fraction(3), ZERO), (0,)),
        CurvePiece(Fraction(4), None, flat, (2,)),
    ]
    three, four = Fraction(3), Fraction(4)
    expected = (
        LeastCell(ZERO, three, (1,)),
        LeastCell(three, four, (0,)),
        LeastCell(four, None, (2,)),
    )
    assert piecewise_cells(pieces) == expected
    asked = iter([False, False, True])
    assert len(piecewise_cells(pieces, lambda: next(asked))) == 2
