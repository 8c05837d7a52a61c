"""Sums of square roots of rationals, exactly: which of two is less is decided, never rounded.

Square roots of positive rationals are linearly independent over the rationals unless two of them
have a rational ratio.  Once those are added up, a sum is zero only if nothing is left of it; of any
other one bounds that are close enough tell the sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

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
