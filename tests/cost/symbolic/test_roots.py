"""Sums of square roots: signs against decimals of many digits, and zero only where it is."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from p2smt.cost.symbolic.curves import RootSum, square_root
from p2smt.cost.symbolic.form import simplest

rationals = st.fractions(-9, 9, max_denominator=6)
terms = st.lists(st.tuples(rationals, st.fractions(0, 50, max_denominator=9)), max_size=5)


def decimals(rational: Fraction, parts: list[tuple[Fraction, Fraction]]) -> Decimal:
    """The number to 80 digits."""
    with localcontext() as context:
        context.prec = 80
        total = Decimal(rational.numerator) / rational.denominator
        for factor, radicand in parts:
            root = (Decimal(radicand.numerator) / radicand.denominator).sqrt()
            total += Decimal(factor.numerator) / factor.denominator * root
        return total


@given(rationals, terms)
def test_signs_are_those_of_many_digits(
    rational: Fraction, parts: list[tuple[Fraction, Fraction]]
) -> None:
    value, found = decimals(rational, parts), RootSum.of(rational, parts)
    sign = 0 if abs(value) < Decimal(10) ** -60 else 1 if value > 0 else -1
    assert found.sign() == sign
    assert abs(Decimal(float(found)) - value) < Decimal(10) ** -12


@given(rationals, terms, rationals, terms)
def test_sums_and_products(
    a: Fraction,
    one: list[tuple[Fraction, Fraction]],
    b: Fraction,
    other: list[tuple[Fraction, Fraction]],
) -> None:
    x, y = RootSum.of(a, one), RootSum.of(b, other)
    assert x.plus(y, -1).plus(y).plus(x, -1).sign() == 0
    square = x.plus(y).times(x.plus(y)).plus(x.plus(y, -1).times(x.plus(y, -1)), -1)
    assert square.plus(x.times(y), -4).sign() == 0


def test_roots_of_one_ratio_are_added_up() -> None:
    eight, two = Fraction(8), Fraction(2)
    assert RootSum.of(Fraction(1), [(Fraction(1), eight), (Fraction(-2), two)]).sign() == 1
    assert RootSum.of(Fraction(0), [(Fraction(1), eight), (Fraction(-2), two)]).sign() == 0
    assert square_root(Fraction(9, 4)) == Fraction(3, 2)
    assert square_root(two) is None


def test_near_zero_is_told_from_zero() -> None:
    """Two roots that agree in twenty digits with a third."""
    big = Fraction(10**40)
    parts = [(Fraction(1), big + 1), (Fraction(1), big - 1), (Fraction(-2), big)]
    assert RootSum.of(Fraction(0), parts).sign() == -1


@given(st.fractions(Fraction(1, 10**5), 1000, max_denominator=10**5))
def test_a_float_stands_for_its_simplest_fraction(value: Fraction) -> None:
    assert simplest(float(value)) == value
    assert simplest(float(value) * 3 / 3) == value
    assert simplest(0.0) == 0
