"""New numbers for chunks that may trade places: those that travel together become neighbours.

The chunks of a class are alike for the collective, so each may lie wherever another of its class
would.  Neighbours that take the same edge in the same step go as one message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from p2smt.schedules.lower.chunked.placed import PlacedChunk

Itinerary = frozenset[object]


def numbered(chunks: Sequence[PlacedChunk], size: int) -> list[int]:
    """The old numbers in the new order; classes are runs of ``size`` chunks and stay in place."""
    travels = [frozenset[object](chunk.itinerary) for chunk in chunks]
    order: list[int] = []
    for first in range(0, len(chunks), size):
        alike: dict[Itinerary, list[int]] = defaultdict(list)
        for chunk in range(first, first + size):
            alike[travels[chunk]].append(chunk)
        before = travels[order[-1]] if order else frozenset()
        for travel in _chain(list(alike), before):
            order += alike[travel]
    return order


def _chain(travels: list[Itinerary], before: Itinerary) -> list[Itinerary]:
    """Always the one next that shares most messages with the one before; ties: the first."""
    left, found = dict.fromkeys(travels), list[Itinerary]()
    while left:
        last = found[-1] if found else before
        best = max(left, key=lambda travel: len(last & travel))
        del left[best]
        found.append(best)
    return found
