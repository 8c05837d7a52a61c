"""A program on one rank: its pieces and moves, run step by step or pipelined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from p2smt.runtime.groups import GroupCache
from p2smt.runtime.payload import Cutting
from p2smt.runtime.programs.moves import RankMove, prepare
from p2smt.runtime.programs.regions import GroupMove, RowMoves

Stage = Callable[[], AbstractContextManager[Any]]
"""Where the calls of one piece are issued: a stream of its own on a GPU."""


@dataclass(slots=True)
class RankProgram:
    """``moves[piece][step]`` is None where the rank takes no part in a step."""

    moves: list[list[RankMove | None]]
    stages: list[Stage]
    _underway: dict[int, tuple[RankMove, Any]] = field(default_factory=dict)

    @staticmethod
    def prepare(
        row_moves: RowMoves, pieces: Sequence[torch.Tensor], rank: int, groups: GroupCache
    ) -> RankProgram:
        """The moves of a rank on its pieces (rows, width) of the payload.

        Every rank prepares the same programs in the same order, for the groups' sake.
        """
        groups.make(move.members for moves in row_moves.steps for move in moves)
        own = [_own(moves, rank) for moves in row_moves.steps]
        moves: list[list[RankMove | None]] = [
            [None if m is None else prepare(m, piece, rank, groups.of(m.members)) for m in own]
            for piece in pieces
        ]
        return RankProgram(moves, _stages(pieces))

    def load(self) -> None:
        """To be called after the pieces got new values."""
        for move in (move for piece in self.moves for move in piece if move is not None):
            move.load()

    def run(self) -> None:
        """The whole program, its pieces pipelined."""
        for piece, step in pipeline_order(len(self.moves[0]), len(self.moves)):
            self._finish(piece)
            self._start(piece, step)
        for piece in range(len(self.moves)):
            self._finish(piece)

    def run_step(self, step: int) -> None:
        """One step of the first piece, to its end."""
        self._start(0, step)
        self._finish(0)

    def _start(self, piece: int, step: int) -> None:
        move = self.moves[piece][step]
        if move is not None:
            with self.stages[piece]():
                self._underway[piece] = (move, move.start())

    def _finish(self, piece: int) -> None:
        move, works = self._underway.pop(piece, (None, ()))
        if move is not None:
            with self.stages[piece]():
                for work in works:
                    work.wait()
                move.finish()


def _own(moves: Sequence[GroupMove], rank: int) -> GroupMove | None:
    found = [move for move in moves if rank in move.members and len(move.members) > 1]
    return found[0] if found else None


def _stages(pieces: Sequence[torch.Tensor]) -> list[Stage]:
    """One piece, or a CPU: where the caller is; several on a GPU: a stream each."""
    if len(pieces) == 1 or not pieces[0].is_cuda:
        return [nullcontext] * len(pieces)
    streams = [torch.cuda.Stream(piece.device) for piece in pieces]  # type: ignore[no-untyped-call]
    return [lambda stream=stream: torch.cuda.stream(stream) for stream in streams]  # type: ignore[misc]


def cut(flat: torch.Tensor, cutting: Cutting) -> list[torch.Tensor]:
    """The pieces (rows, width) of a padded payload as views."""
    found, at = [], 0
    for _, _, width in cutting.spans:
        size = cutting.rows * width
        found.append(flat[at : at + size].view(cutting.rows, width))
        at += size
    return found


def pipeline_order(steps: int, pieces: int) -> Iterator[tuple[int, int]]:
    """(piece, step) pairs: at each tick one step of every piece on its way, the oldest first.

    Step s of piece i is issued at tick s + i, once its step s - 1 is complete.  Every rank
    issues in this order and waits only for what it issued before, so no two ranks wait for
    each other.
    """
    for tick in range(steps + pieces - 1):
        for piece in range(max(0, tick - steps + 1), min(pieces, tick + 1)):
            yield piece, tick - piece
