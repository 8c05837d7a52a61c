"""How many chunks the buffers of an MSCCL XML file have.

``nchunksperloop`` chunks make up the larger of the caller's two buffers, so that the collective
and the number of ranks say how much memory there is; ``i_chunks`` and ``o_chunks`` are what the
file claims to use, and what the runtime holds every step against.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from p2smt.schedules.model import Buffer, Sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from p2smt.collectives.contract import Contract
    from p2smt.schedules.model import Step

PARTED = ("allgather", "reduce_scatter", "alltoall", "scatter", "gather")
"""Collectives whose larger buffer has a part for every rank."""

Pair = tuple[int, int]
"""Chunks of input and of output."""


def needs(contract: Contract) -> list[Pair]:
    """By rank, the chunks that the collective is given and must produce."""
    outputs = [0] * contract.ranks
    for goal in contract.goals:
        outputs[goal.rank] = max(outputs[goal.rank], goal.chunk + 1)
    return [(len(given), out) for given, out in zip(contract.starts, outputs, strict=True)]


def limits(contract: Contract) -> list[Pair]:
    """By rank, the chunks that are the caller's memory under the name of input and of output.

    Every rank is handed buffers of the same size, also one whose output is not looked at.
    """
    needed = needs(contract)
    inputs, outputs = (max(pair[side] for pair in needed) for side in (0, 1))
    if not contract.in_place:
        return [(inputs, outputs)] * len(needed)
    places = [(max(shift, 0), max(-shift, 0)) for shift in contract.shift]
    totals = [max(at_in + inputs, at_out + outputs) for at_in, at_out in places]
    return [(t - at_in, t - at_out) for t, (at_in, at_out) in zip(totals, places, strict=True)]


def reach(steps: Iterable[Step]) -> Mapping[tuple[int, Buffer], int]:
    """By rank and buffer, the end of the furthest span."""
    found: dict[tuple[int, Buffer], int] = defaultdict(int)
    for step in steps:
        for span in (*step.reads, *step.writes):
            end = span.start + span.count
            if end > found[span.rank, span.buffer]:
                found[span.rank, span.buffer] = end
    return found


def sizes_of(
    contract: Contract, declared: Sequence[tuple[int, int, int]], steps: Sequence[Step]
) -> tuple[Sizes, ...]:
    """The sizes by which steps are held in bounds.

    They are what the file declares, or the collective needs if that is more, except that

    - in place, one name may be used as far as the memory behind it goes;
    - out of place, a step beyond what is declared is out of bounds;
    - a step beyond the caller's memory is out of bounds, whatever is declared.
    """
    ends = reach(steps)
    found: list[Sizes] = []
    bounds = zip(needs(contract), limits(contract), declared, strict=True)
    for rank, (needed, limit, claim) in enumerate(bounds):
        pair = [
            _size(contract.in_place, needed[side], limit[side], claim[side], ends[rank, buffer])
            for side, buffer in enumerate((Buffer.INPUT, Buffer.OUTPUT))
        ]
        found.append(Sizes(pair[0], pair[1], claim[2]))
    return tuple(found)


def _size(in_place: bool, needed: int, limit: int, claim: int, end: int) -> int:
    size = max(claim, needed)
    if in_place and end > size:
        size = max(size, limit)
    elif not in_place and end > claim:
        size = claim
    return min(size, limit) if end > limit else size
