"""Cells of the least line, against every line at random points and on both sides of each bound."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from p2smt.cost.symbolic.form import CostForm, PayloadLine, bandwidth_cells, line_cells
from tests.strategies.draws import Draws, draws

numbers = st.fractions(0, 20, max_denominator=7)
lines = st.builds(PayloadLine, numbers, numbers)
ZERO = Fraction(0)


@given(st.lists(lines, min_size=1, max_size=8), numbers)
def test_the_best_of_a_cell_is_least_in_all_of_it(
    every: list[PayloadLine], width: Fraction
) -> None:
    for high in (None, width + 1):
        cells = line_cells(every, ZERO, high)
        assert (cells[0].low, cells[-1].high) == (ZERO, high)
        assert [a.high for a in cells[:-1]] == [b.low for b in cells[1:]]
        for cell in cells:
            last = cell.low + 100 if cell.high is None else cell.high
            for part in (1, 2, 2**40):
                for x in (cell.low + (last - cell.low) / part, last - (last - cell.low) / part):
                    least = min(line.value(x) for line in every)
                    assert {every[n].value(x) for n in cell.best} == {least}


@given(st.lists(lines, min_size=2, max_size=8))
def test_each_bound_is_a_crossing(every: list[PayloadLine]) -> None:
    cells = line_cells(every, ZERO, None)
    for before, after in pairwise(cells):
        assert before.high is not None
        a, b = every[before.best[0]], every[after.best[0]]
        assert a.value(before.high) == b.value(before.high)
        assert a != b


rows = st.tuples(numbers, numbers, numbers).filter(any)
forms = st.builds(
    lambda maxima: CostForm(1, (ZERO,) * 3, tuple(maxima)), st.lists(rows, min_size=1, max_size=3)
)


@given(st.lists(forms, min_size=1, max_size=5), draws())
def test_costs_with_kinks_have_exact_cells(every: list[CostForm], data: Draws) -> None:
    betas, low, high = (Fraction(1), Fraction(2), Fraction(3)), Fraction(1, 8), Fraction(64)
    level = data.draw(st.integers(0, 2))
    cells = bandwidth_cells(every, betas, level, low, high)
    assert (cells[0].low, cells[-1].high) == (low, high)
    x = data.draw(st.fractions(low, high, max_denominator=1000))
    at = tuple(x if j == level else beta for j, beta in enumerate(betas))
    least = min(form.s_per_byte(at) for form in every)
    (*_, cell) = (one for one in cells if one.low <= x)
    assert every[cell.best[0]].s_per_byte(at) == least
    assert all(a.best != b.best for a, b in pairwise(cells))
