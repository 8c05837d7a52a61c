"""The reference executor: every rank in one process, in numpy.

It moves rows as :mod:`p2smt.runtime.programs.regions` says and adds in rank order; it shares
nothing with the semantics, so that each is a check of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from p2smt.collectives.names import Collective, RequestKind
from p2smt.runtime.payload import Array
from p2smt.runtime.programs.regions import GroupMove, RowMoves, rows

Buffers = dict[int, Array]
"""One piece (rows, width) of the payload per rank; changed in place."""


def run_piece(row_moves: RowMoves, buffers: Buffers) -> None:
    """Carry out all steps on one piece."""
    for moves in row_moves.steps:
        for move in moves:
            _carry_out(move, buffers)


def _carry_out(move: GroupMove, buffers: Buffers) -> None:
    own = [buffers[rank] for rank in move.members]
    region = list(rows(move.region))
    match move.operation:
        case Collective.ALL_REDUCE:
            summed = _sum(own, region)
            for buffer in own:
                buffer[region] = summed
        case Collective.REDUCE:
            own[0][region] = _sum(own, region)
        case Collective.REDUCE_SCATTER:
            for buffer, part in zip(own, move.parts, strict=True):
                kept = list(rows(part))
                buffer[kept] = _sum(own, kept)
        case Collective.BROADCAST:
            for buffer in own[1:]:
                buffer[region] = own[0][region]
        case Collective.ALL_GATHER:
            for source, part in zip(own, move.parts, strict=True):
                brought = list(rows(part))
                for buffer in own:
                    buffer[brought] = source[brought]
        case RequestKind.ALL_TO_ALL:
            before = np.stack(own)
            for place, buffer in enumerate(own):
                buffer[:] = before[:, place]
        case RequestKind.SEND:
            for buffer, source in zip(reversed(own[1:]), reversed(own[:-1]), strict=True):
                buffer[:] = source
        case _:
            assert_never(move.operation)


def _sum(buffers: Sequence[Array], region: Sequence[int]) -> Array:
    total = buffers[0][region].copy()
    for buffer in buffers[1:]:
        total += buffer[region]
    return total
