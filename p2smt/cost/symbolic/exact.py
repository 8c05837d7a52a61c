"""The rational that a load in floating point stands for.

A load is made of whole numbers by a handful of operations, so it is a rational of a small
denominator, and its float differs from it by a few roundings.  Two fractions of denominators up to
Q differ by at least 1 / Q^2: where that is far more than the roundings, one fraction alone is near
the float, and that is the load.
"""

from __future__ import annotations

import math
from fractions import Fraction

from p2smt.errors import InputError

_ROUNDING = Fraction(1, 2**48)
"""More than the relative error of a load: 32 roundings."""
_ROUNDINGS = 4
"""Of the handful of operations that a library estimates times by."""
_MARGIN = 2**5
"""So many times smaller than they might be are denominators, so that no other float passes."""


def exact(value: float) -> Fraction:
    """The fraction of a small denominator that a float stands for.

    Raises:
        InputError: there is none within the rounding.
    """
    near = Fraction(value)
    error = abs(near) * _ROUNDING
    if not error:
        return near
    most = math.isqrt(int(1 / (2 * error))) // _MARGIN
    found = near.limit_denominator(max(1, most))
    if abs(found - near) > error:
        rule = "has a denominator too large to be told from its rounding"
        raise InputError(f"a load of {value:g}", rule, "take smaller groups or fewer ports")
    return found


def decimal(value: float) -> Fraction:
    """The shortest decimal number whose float this is, as a file would write it."""
    return Fraction(repr(value))


def simplest(value: float) -> Fraction:
    """The fraction of the least denominator within a few roundings of a float that is not negative.

    For numbers made of decimals whose fraction :func:`exact` could not tell from others.
    """
    if not value:
        return Fraction(0)
    error = Fraction(math.ulp(value)) * _ROUNDINGS
    return _between(Fraction(value) - error, Fraction(value) + error)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of the least denominator between two positive ones."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    below = low.numerator // low.denominator
    return below + 1 / _between(1 / (high - below), 1 / (low - below))
