"""What was found about a schedule in pieces, told of its whole steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.schedules.order.chunkwise import Pieces
    from p2smt.schedules.verify.report import Violation


def of_whole_steps(pieces: Pieces, violation: Violation) -> Violation:
    """The violation with numbers of whole steps; which chunks of a step is said as its part.

    A shortest order of pieces need not be a shortest one of steps, so that is not claimed.
    """
    if pieces.whole:
        return violation
    entries = list(_entries(pieces, violation))
    return replace(
        violation,
        steps=tuple(dict.fromkeys(pieces.origin[number] for number in violation.steps)),
        order=tuple(number for number, _ in entries),
        parts=tuple(part for _, part in entries),
        shortest=None if violation.shortest is None else False,
    )


def _entries(pieces: Pieces, violation: Violation) -> Iterator[tuple[int, str]]:
    """The interleaving in whole steps; beginnings and ends of steps do nothing that shows."""
    parts = violation.parts or ("",) * len(violation.order)
    for number, part in zip(violation.order, parts, strict=True):
        chunks = pieces.chunks[number]
        if chunks is None or part:
            yield pieces.origin[number], part
        elif chunks:
            last = f"..{chunks[-1]}" if len(chunks) > 1 else ""
            yield pieces.origin[number], f"chunk{'s' * bool(last)} {chunks[0]}{last} of it"
