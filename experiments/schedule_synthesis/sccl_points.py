"""Published all-reduces of the DGX-1, and what published all-gathers compose to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Point:
    """An all-reduce in steps, rounds and chunks (in all)."""

    steps: int
    rounds: int
    chunks: int
    source: str

    @property
    def rate(self) -> Fraction:
        """Rounds a chunk."""
        return Fraction(self.rounds, self.chunks)


RANKS = 8
NAMED = (
    Point(4, 4, 8, "SCCL (PPoPP'21), named in the text"),
    Point(14, 14, 48, "SCCL (PPoPP'21), as NCCL's rings"),
)
GATHERS = ((2, 3, 2), (3, 7, 6))
"""All-gathers on the frontier in msccl-tools' SYNTHESIS.md: steps, rounds, chunks a rank."""


def composed(gather: tuple[int, int, int]) -> Point:
    """The gather in reverse and then the gather: twice the steps and rounds, its chunks of all."""
    steps, rounds, chunks = gather
    return Point(2 * steps, 2 * rounds, RANKS * chunks, "composed of an optimal all-gather")


PUBLISHED = (*NAMED, *map(composed, GATHERS))
