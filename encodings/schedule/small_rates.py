"""Bandwidths by fractions small enough for a solver's 64 bits, which let the same messages pass.

Messages are whole, and a step has a whole number of rounds.  So of a bandwidth b only the whole
parts of b r count, for the rounds r that a step can have; the largest fraction up to b that has no
greater denominator than r can be has the same ones.  Nor does it matter by how much a capacity
lets more pass than there is.
"""

from __future__ import annotations

from fractions import Fraction

from p2smt.errors import TooLarge

MAX_ROUNDS = 2**31


def check_rounds(rounds: int) -> None:
    """Refuse rounds that would overflow.

    Raises:
        TooLarge: they are more than MAX_ROUNDS.
    """
    if rounds > MAX_ROUNDS:
        given = f"{rounds} rounds" if rounds < 10**20 else "so many rounds"
        raise TooLarge(given, f"are more than {MAX_ROUNDS}", "ask for fewer rounds and chunks")


def small_rate(rate: Fraction, rounds: int, messages: int) -> Fraction:
    """What stands for a bandwidth in steps of at most ``rounds`` rounds and so many messages."""
    return below(min(rate, Fraction(messages)), rounds)


def below(value: Fraction, denominator: int) -> Fraction:
    """The largest fraction up to a positive value that has no greater denominator.

    The convergents of its continued fraction, as far as they go, and the last one between two:
    of these two neighbours the lesser.
    """
    if value.denominator <= denominator:
        return value
    before, last, rest = (0, 1), (1, 0), value
    while True:
        whole = rest.numerator // rest.denominator
        if before[1] + whole * last[1] > denominator:
            break
        before, last = last, (before[0] + whole * last[0], before[1] + whole * last[1])
        rest = 1 / (rest - whole)
    times = (denominator - before[1]) // last[1]
    between = Fraction(before[0] + times * last[0], before[1] + times * last[1])
    return min(between, Fraction(*last))
