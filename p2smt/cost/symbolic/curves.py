"""Times as functions of the payload x: a + b x + sum of sqrt(r x), and the signs of differences.

In y = sqrt(x) the difference of two of these is a quadratic, whose roots are where they cross.
Signs are exact: floating point says them where it leaves no doubt, sums of roots where it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

_DOUBT = 1e-11
"""Floats that differ by less than this part of what they are made of are compared exactly."""


@dataclass(frozen=True, slots=True)
class PayloadCurve:
    """The function at_zero + slope x + sum of q sqrt(r x) over ``roots``, ascending."""

    at_zero: Fraction
    slope: Fraction
    roots: tuple[RootTerm, ...] = ()

    @staticmethod
    def of(at_zero: Fraction, slope: Fraction, radicands: Iterable[Fraction] = ()) -> PayloadCurve:
        """The function at_zero + slope x + sum of sqrt(r x); equal functions are equal values."""
        rational, added = Fraction(0), [(Fraction(1), r) for r in radicands if r]
        found = RootSum.of(rational, added)
        squares = [q * q * r for q, r in found.roots]
        if found.rational:
            squares.append(found.rational * found.rational)
        return PayloadCurve(at_zero, slope, tuple((Fraction(1), r) for r in sorted(squares)))

    def value(self, x: Fraction) -> RootSum:
        """Its value at x >= 0."""
        return RootSum.of(self.at_zero + self.slope * x, [(q, r * x) for q, r in self.roots])


@dataclass(frozen=True, slots=True)
class CurveDifference:
    """One function less another: a + sigma y + b y^2 in y = sqrt(x), sigma a sum of roots."""

    a: Fraction
    b: Fraction
    sigma: RootSum
    floats: tuple[float, float, float] = field(compare=False)

    @staticmethod
    def of(one: PayloadCurve, other: PayloadCurve) -> CurveDifference:
        """The first less the second."""
        a, b = one.at_zero - other.at_zero, one.slope - other.slope
        terms = [*one.roots, *((-q, r) for q, r in other.roots)]
        sigma = RootSum.of(Fraction(0), terms)
        return CurveDifference(a, b, sigma, (float(a), float(sigma), float(b)))

    def sign(self, x: Fraction) -> int:
        """Its sign at x."""
        found = _float_sign(self.floats, math.sqrt(x))
        if found is not None:
            return found
        one = Fraction(1)
        root = RootSum.of(Fraction(0), [(one, x)])
        return self.sigma.times(root).plus(RootSum(self.a + self.b * x)).sign()

    def sign_beyond(self, x: Fraction) -> int:
        """Its sign just above x; 0: it is zero everywhere."""
        here = self.sign(x)
        if here:
            return here
        rising = self.sigma.sign() if not x else self._derivative(x)
        return rising or (self.b > 0) - (self.b < 0)

    def _derivative(self, x: Fraction) -> int:
        """The sign of the derivative in y: 2 b y + sigma, y times which has rational parts."""
        root = RootSum.of(Fraction(0), [(Fraction(1), x)])
        return self.sigma.times(root).plus(RootSum(2 * self.b * x)).sign()

    def sign_at_end(self, x: Fraction | None) -> int:
        """Its sign at x; None: for large x."""
        if x is not None:
            return self.sign(x)
        return (self.b > 0) - (self.b < 0) or self.sigma.sign() or (self.a > 0) - (self.a < 0)

    def below_zero(self, low: Fraction, high: Fraction | None) -> Fraction | None:
        """A point between two where it is negative, though it is not beyond ``low`` or at ``high``.

        None: there is none.  It must have a least value between them, which is at y = -sigma / 2b.
        """
        if self.b <= 0 or self.sigma.sign() >= 0:
            return None
        four = RootSum(-4 * self.a * self.b)
        if self.sigma.times(self.sigma).plus(four).sign() <= 0:
            return None
        bits = 64
        while True:
            ends = [number / (-2 * self.b) for number in self.sigma.bounds(bits)]
            middle = sum(ends, Fraction(0)) / 2
            x = middle * middle
            if x <= low or (high is not None and x >= high):
                return None
            if self.sign(x) < 0:
                return x
            bits *= 2


def _float_sign(parts: tuple[float, float, float], y: float) -> int | None:
    a, sigma, b = parts
    value, size = a + (sigma + b * y) * y, abs(a) + (abs(sigma) + abs(b) * y) * y
    if abs(value) <= _DOUBT * size:
        return None
    return 1 if value > 0 else -1


# Sums of square roots of rationals, exactly: which of two is less is decided, never rounded.
# Square roots of positive rationals are linearly independent over the rationals unless two of them
# have a rational ratio.  Once those are added up, a sum is zero only if nothing is left of it; of
# any other one bounds that are close enough tell the sign.


_FIRST_BITS = 64
"""Binary digits of the first bounds; twice as many each time they do not tell."""

RootTerm = tuple[Fraction, Fraction]
"""The number q sqrt(r) as (q, r)."""


@dataclass(frozen=True, slots=True)
class RootSum:
    """The number ``rational`` + sum of q sqrt(r); no ratio of two of these r is a square."""

    rational: Fraction
    roots: tuple[RootTerm, ...] = ()

    @staticmethod
    def of(rational: Fraction, terms: Iterable[RootTerm] = ()) -> RootSum:
        """A rational and any terms with r >= 0, those of rational ratios added up."""
        found: list[tuple[Fraction, Fraction]] = []
        for factor, radicand in terms:
            whole = square_root(radicand)
            if whole is not None:
                rational += factor * whole
                continue
            for n, (known, first) in enumerate(found):
                ratio = square_root(radicand / first)
                if ratio is not None:
                    found[n] = (known + factor * ratio, first)
                    break
            else:
                found.append((factor, radicand))
        return RootSum(rational, tuple(term for term in found if term[0]))

    def plus(self, other: RootSum, factor: int = 1) -> RootSum:
        """This and so many times another one."""
        more = [(factor * q, r) for q, r in other.roots]
        return RootSum.of(self.rational + factor * other.rational, (*self.roots, *more))

    def times(self, other: RootSum) -> RootSum:
        """The product."""
        one = Fraction(1)
        every = [[(number.rational, one), *number.roots] for number in (self, other)]
        terms = [(p * q, r * s) for p, r in every[0] for q, s in every[1] if p and q]
        return RootSum.of(Fraction(0), terms)

    def sign(self) -> int:
        """1, 0 or -1."""
        if not self.roots:
            return (self.rational > 0) - (self.rational < 0)
        bits = _FIRST_BITS
        while True:
            low, high = self.bounds(bits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
            bits *= 2

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals below and above it, closer together with more binary digits."""
        low = high = self.rational
        for factor, radicand in self.roots:
            below, above = _root_bounds(radicand, bits)
            low += factor * (below if factor > 0 else above)
            high += factor * (above if factor > 0 else below)
        return low, high

    def __float__(self) -> float:
        bits, (low, high) = _FIRST_BITS, self.bounds(_FIRST_BITS)
        while self.roots and high - low > abs(low) / 2**_FIRST_BITS:
            bits *= 2
            low, high = self.bounds(bits)
        return float((low + high) / 2)


def square_root(number: Fraction) -> Fraction | None:
    """The square root of a rational >= 0 where it is rational."""
    roots = math.isqrt(number.numerator), math.isqrt(number.denominator)
    found = Fraction(*roots)
    return found if found * found == number else None


def _root_bounds(radicand: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """The square root between neighbours that differ by a part of it of so many binary digits."""
    scale = max(0, bits - radicand.numerator.bit_length() // 2)
    whole = radicand.numerator * radicand.denominator << 2 * scale
    root, under = math.isqrt(whole), radicand.denominator << scale
    return Fraction(root, under), Fraction(root + 1, under)
