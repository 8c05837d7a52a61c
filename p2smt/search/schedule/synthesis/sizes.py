"""Which rounds and chunks to try for so many steps, between a bound and the best rate known."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from p2smt.search.schedule.synthesis.question import ScheduleSize

MULTIPLES = 2
"""Of the least chunks at which a schedule could meet the bound, so many multiples are tried."""


def sizes(
    steps: int, bound: Fraction, best: Fraction | None, most_chunks: int
) -> tuple[tuple[ScheduleSize, ...], tuple[ScheduleSize, ...]]:
    """What to try first: the fewest chunks that could meet the bound, then sizes above it.

    And what to try when that has had its turn: more chunks that could meet the bound.
    """
    exact = tuple(meeting(steps, bound, most_chunks))
    return (*exact[:1], *between(steps, bound, best, most_chunks)), exact[1:]


def meeting(steps: int, bound: Fraction, most_chunks: int) -> Iterator[ScheduleSize]:
    """Sizes whose rate is the bound, the fewest chunks first."""
    least = -(-steps // bound.numerator)
    for times in range(least, least + MULTIPLES):
        if times * bound.denominator <= most_chunks:
            yield ScheduleSize(steps, times * bound.numerator, times * bound.denominator)


def between(
    steps: int, bound: Fraction, best: Fraction | None, most_chunks: int
) -> Iterator[ScheduleSize]:
    """Sizes better than ``best`` that cannot meet the bound, up to the first that could.

    For rounds from the fewest on, the most chunks that the bound allows.
    """
    rounds, chunks = steps, 0
    while chunks < most_chunks:
        chunks = min(int(rounds / bound), most_chunks)
        if chunks and Fraction(rounds, chunks) == bound:
            return
        if chunks and (best is None or Fraction(rounds, chunks) < best):
            yield ScheduleSize(steps, rounds, chunks)
        rounds += 1
