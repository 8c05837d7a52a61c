"""The order in which a rank issues the steps of a program's pieces."""

from __future__ import annotations

from collections.abc import Iterator


def pipeline_order(steps: int, pieces: int) -> Iterator[tuple[int, int]]:
    """(piece, step) pairs: at each tick one step of every piece on its way, the oldest first.

    Step s of piece i is issued at tick s + i, once its step s - 1 is complete.  Every rank
    issues in this order and waits only for what it issued before, so no two ranks wait for
    each other.
    """
    for tick in range(steps + pieces - 1):
        for piece in range(max(0, tick - steps + 1), min(pieces, tick + 1)):
            yield piece, tick - piece
