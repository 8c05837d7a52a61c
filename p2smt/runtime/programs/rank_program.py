"""A program on one rank: its pieces and moves, run step by step or pipelined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, assert_never

import torch
import torch.distributed as dist

from p2smt.collectives.names import Collective, RequestKind
from p2smt.runtime.payload import Cutting
from p2smt.runtime.process_groups import GroupCache
from p2smt.runtime.programs.regions import GroupMove, RowMoves, Runs, count
from p2smt.runtime.unwritten import fill_unwritten

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


# One rank's part of a step, as calls of torch.distributed.
# A move is prepared once and then started as often as it is timed.  It works in place on the
# rows of a piece where these lie in one run; otherwise rows are packed into a buffer of their
# own and unpacked afterwards.


# Named anew in torch 2.13; the older names warn there.
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def _nothing() -> None:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class RankMove:
    """A rank's part of a step, ready to be started.

    ``start`` issues the communication, ``finish`` follows once its work is complete.  ``load`` must
    be called after the piece got new values: it copies what is sent out of place, and makes buffers
    forget what they received.
    """

    start: Callable[[], Iterable[Any]]
    finish: Callable[[], None] = _nothing
    load: Callable[[], None] = _nothing


def prepare(move: GroupMove, piece: torch.Tensor, rank: int, group: dist.ProcessGroup) -> RankMove:
    """The part of ``rank`` in a step on one piece (rows, width), which it is a member of."""
    operation = move.operation
    match operation:
        case Collective.ALL_REDUCE | Collective.REDUCE | Collective.BROADCAST:
            return _whole(move, piece, rank, group)
        case Collective.REDUCE_SCATTER:
            return _reduce_scatter_move(move, piece, rank, group)
        case Collective.ALL_GATHER:
            return _all_gather_move(move, piece, rank, group)
        case RequestKind.ALL_TO_ALL if move.parts:
            return _exchange_move(move, piece, group)
        case RequestKind.ALL_TO_ALL:
            source = piece.clone()
            return RankMove(
                lambda: [dist.all_to_all_single(piece, source, group=group, async_op=True)],
                load=lambda: _copy(piece, source),
            )
        case RequestKind.SEND:
            return _send_move(move, piece, rank, group)
        case _:
            assert_never(operation)


def _copy(source: torch.Tensor, target: torch.Tensor) -> None:
    target.copy_(source)


def _in_place(piece: torch.Tensor, runs: Runs) -> torch.Tensor | None:
    """The rows of a single run as a view; None: there are several runs."""
    if len(runs) != 1:
        return None
    first, length = runs[0]
    return piece[first : first + length]


def _buffer(piece: torch.Tensor, runs: Runs) -> torch.Tensor:
    return piece.new_empty((count(runs), piece.shape[1]))


def _pack(piece: torch.Tensor, runs: Runs, packed: torch.Tensor) -> None:
    at = 0
    for first, length in runs:
        packed[at : at + length] = piece[first : first + length]
        at += length


def _unpack(packed: torch.Tensor, piece: torch.Tensor, runs: Runs) -> None:
    at = 0
    for first, length in runs:
        piece[first : first + length] = packed[at : at + length]
        at += length


def _whole(move: GroupMove, piece: torch.Tensor, rank: int, group: dist.ProcessGroup) -> RankMove:
    """All-reduce, reduce and broadcast: every member's buffer is the whole region."""
    root = move.members[0]

    def call(data: torch.Tensor) -> Any:
        if move.operation is Collective.ALL_REDUCE:
            return dist.all_reduce(data, group=group, async_op=True)
        if move.operation is Collective.REDUCE:
            return dist.reduce(data, dst=root, group=group, async_op=True)
        return dist.broadcast(data, src=root, group=group, async_op=True)

    view = _in_place(piece, move.region)
    if view is not None:
        return RankMove(lambda: [call(view)])
    packed = _buffer(piece, move.region)
    forget = partial(fill_unwritten, packed)

    def start() -> list[Any]:
        if rank == root or move.operation is not Collective.BROADCAST:
            _pack(piece, move.region, packed)
        return [call(packed)]

    def finish() -> None:
        if rank == root or move.operation is not Collective.REDUCE:
            _unpack(packed, piece, move.region)

    return RankMove(start, finish, forget)


def _reduce_scatter_move(
    move: GroupMove, piece: torch.Tensor, rank: int, group: dist.ProcessGroup
) -> RankMove:
    place = move.members.index(rank)
    view = _in_place(piece, move.region)
    if view is not None:
        own = _share(view, place, len(move.members))
        return RankMove(lambda: [_reduce_scatter(own, view, group=group, async_op=True)])
    packed = _buffer(piece, move.region)
    kept = _share(packed, place, len(move.members))

    def start() -> list[Any]:
        _pack(piece, move.region, packed)
        return [_reduce_scatter(kept, packed, group=group, async_op=True)]

    forget = partial(fill_unwritten, packed)
    return RankMove(start, lambda: _unpack(kept, piece, move.parts[place]), forget)


def _share(data: torch.Tensor, place: int, members: int) -> torch.Tensor:
    """The rows of one member, where each has as many."""
    each = data.shape[0] // members
    return data[place * each : (place + 1) * each]


def _all_gather_move(
    move: GroupMove, piece: torch.Tensor, rank: int, group: dist.ProcessGroup
) -> RankMove:
    place = move.members.index(rank)
    every = tuple(run for part in move.parts for run in part)
    whole, own = _in_place(piece, move.region), _in_place(piece, move.parts[place])
    in_order = all(a[0] + a[1] == b[0] for a, b in pairwise(every))
    if whole is not None and own is not None and in_order:
        return RankMove(lambda: [_all_gather(whole, own, group=group, async_op=True)])
    packed = _buffer(piece, every)
    brought = own if own is not None else _buffer(piece, move.parts[place])

    def start() -> list[Any]:
        if own is None:
            _pack(piece, move.parts[place], brought)
        return [_all_gather(packed, brought, group=group, async_op=True)]

    forget = partial(fill_unwritten, packed)
    return RankMove(start, lambda: _unpack(packed, piece, every), forget)


def _exchange_move(move: GroupMove, piece: torch.Tensor, group: dist.ProcessGroup) -> RankMove:
    """An all-to-all that is a step of several: rows are packed by the member that they go to."""
    every = tuple(run for part in move.parts for run in part)
    packed, received = _buffer(piece, every), _buffer(piece, every)
    in_order = all(a[0] + a[1] == b[0] for a, b in pairwise(every))

    def start() -> list[Any]:
        if not in_order:
            _pack(piece, every, packed)
        source = piece if in_order else packed
        return [dist.all_to_all_single(received, source, group=group, async_op=True)]

    forget = partial(fill_unwritten, received)
    return RankMove(start, lambda: _unpack(received, piece, every), forget)


def _send_move(
    move: GroupMove, piece: torch.Tensor, rank: int, group: dist.ProcessGroup
) -> RankMove:
    place, source = move.members.index(rank), piece.clone()
    through_host = piece.is_cuda and dist.get_backend(group) == dist.Backend.GLOO
    outgoing, incoming = (source.cpu(), piece.cpu()) if through_host else (source, piece)
    calls = []
    if place + 1 < len(move.members):
        calls.append(dist.P2POp(dist.isend, outgoing, move.members[place + 1], group))
    if place > 0:
        calls.append(dist.P2POp(dist.irecv, incoming, move.members[place - 1], group))

    def start() -> list[Any]:
        if through_host:  # Gloo's collectives do this themselves, its sends do not
            outgoing.copy_(source)
        return list(dist.batch_isend_irecv(calls))

    def finish() -> None:
        if through_host and place > 0:
            piece.copy_(incoming)

    def load() -> None:
        _copy(piece, source)
        if through_host:
            fill_unwritten(incoming)

    return RankMove(start, finish, load)
