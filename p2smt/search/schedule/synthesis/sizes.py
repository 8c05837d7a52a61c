"""Which rounds and chunks to try for so many steps, between a bound and the best rate known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from p2smt.search.schedule.synthesis.question import ScheduleSize

MULTIPLES = 2
"""Of the least chunks at which a schedule could meet the bound, so many multiples are tried."""
EASY = 3
"""So many sizes of one chunk, each with twice the rounds of the one before."""


def easy(steps: int, bound: Fraction) -> tuple[ScheduleSize, ...]:
    """Sizes of one chunk: the fewest rounds that the bound allows, twice as many, and so on."""
    least = max(steps, -(-bound.numerator // bound.denominator))
    return tuple(ScheduleSize(steps, least * 2**n, 1) for n in range(EASY))


def meeting(steps: int, bound: Fraction, most_chunks: int) -> Iterator[ScheduleSize]:
    """Sizes whose rate is the bound, the fewest chunks first."""
    least = -(-steps // bound.numerator)
    for times in range(least, least + MULTIPLES):
        if times * bound.denominator <= most_chunks:
            yield ScheduleSize(steps, times * bound.numerator, times * bound.denominator)


def halfway(
    steps: int,
    low: Fraction,
    high: Fraction,
    most_chunks: int,
    wanted: Callable[[ScheduleSize], bool] = lambda _: True,
) -> ScheduleSize | None:
    """The wanted size of fewest chunks whose rate is in the middle half between two rates.

    Where that has none, one anywhere between them, both left out; None: there is none either.
    """
    quarter = (high - low) / 4
    for least, most in ((low + quarter, high - quarter), (low, high)):
        sizes = (s for s in inside(steps, low, high, most_chunks) if least <= s.rate <= most)
        found = next((size for size in sizes if wanted(size)), None)
        if found is not None:
            return found
    return None


def inside(steps: int, low: Fraction, high: Fraction, most_chunks: int) -> Iterator[ScheduleSize]:
    """All sizes of a rate above ``low`` and below ``high``: fewest chunks, fewest rounds first."""
    for chunks in range(1, most_chunks + 1):
        rounds = max(steps, int(low * chunks) + 1)
        while rounds < high * chunks:
            yield ScheduleSize(steps, rounds, chunks)
            rounds += 1
