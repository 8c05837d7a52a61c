"""Which rows of the payload each rank holds from step to step, and what a group moves.

A request over k members cuts the payload into k rows.  Executors move rows; what the rows
mean (whose contributions they hold) is the business of the semantics, which this module does
not know: that is what makes running a program a check of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.collectives.demand import Chunks, demand_of
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.runtime.job import JobRequest, JobStep

Runs = tuple[tuple[int, int], ...]
"""Rows as ascending, disjoint runs (first row, number of rows)."""

RowsHeld = NDArray[np.bool_]


class StepError(Exception):
    """A step cannot be carried out: its members do not hold what it needs."""

    def __init__(self, step: int, rank: int, message: str) -> None:
        self.step, self.rank, self.message = step, rank, message
        super().__init__(step, rank, message)

    def __str__(self) -> str:
        return f"step {self.step}: rank {self.rank}: {self.message}"


@dataclass(frozen=True, slots=True)
class GroupMove:
    """What one group does in a step.

    ``members`` ascend.  ``region`` holds the rows that the operation works on (all-gather: its
    result).  ``parts`` are the rows that each member keeps of them (reduce-scatter), brings
    (all-gather), or gets from every member (an all-to-all that is a step of several: they come to
    lie where those for their sender lay); empty for the others.
    """

    operation: Operation
    members: tuple[int, ...]
    region: Runs
    parts: tuple[Runs, ...] = ()


@dataclass(frozen=True, slots=True)
class RowMoves:
    """What the groups move in each step; ``held`` (ranks, rows): what ranks end with."""

    steps: tuple[tuple[GroupMove, ...], ...]
    held: RowsHeld


def runs_of(rows: NDArray[np.intp]) -> Runs:
    """Ascending row numbers as runs."""
    if not len(rows):
        return ()
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    return tuple((int(part[0]), len(part)) for part in np.split(rows, cuts))


def count(runs: Runs) -> int:
    """Number of rows in runs."""
    return sum(length for _, length in runs)


def start_rows(request: JobRequest, ranks: int) -> RowsHeld:
    """What ranks hold at first: every row, or member i row i."""
    own = demand_of(request.kind).start.chunks is Chunks.OWN
    held = np.zeros((ranks, request.size), dtype=bool)
    for group in request.groups:
        if own:
            held[list(group), range(len(group))] = True
        else:
            held[list(group)] = True
    return held


def moves_of(request: JobRequest, steps: Sequence[JobStep], ranks: int) -> RowMoves:
    """The moves of each step.

    Raises:
        StepError: a collective's members do not hold rows that it could work on.
    """
    held, found = start_rows(request, ranks), []
    for number, step in enumerate(steps, start=1):
        if isinstance(step.operation, Dispatch):
            raise StepError(number, step.groups[0][0], "dispatches tokens, and moves no rows")
        if step.operation is RequestKind.ALL_TO_ALL and len(steps) > 1:
            found.append(_regrouped(number, step, request))
            continue
        if isinstance(step.operation, RequestKind):
            found.append(tuple(_exchange(number, step.operation, g, request) for g in step.groups))
            continue
        moves = [_move(number, step.operation, group, held) for group in step.groups]
        for move in moves:
            _apply(move, held)
        found.append(tuple(moves))
    return RowMoves(tuple(found), held)


def _exchange(
    number: int, operation: Operation, group: tuple[int, ...], request: JobRequest
) -> GroupMove:
    """An all-to-all or a send: the whole payload, a part for each member."""
    if len(group) != request.size:
        text = f"is in a group of {len(group)} ranks, the payload has {request.size} parts"
        raise StepError(number, group[0], text)
    return GroupMove(operation, group, ((0, request.size),))


def _regrouped(number: int, step: JobStep, request: JobRequest) -> tuple[GroupMove, ...]:
    """An all-to-all that is a step of several, from its groups alone.

    Row r of the payload is for the member with number r.  A group passes it towards its own member
    that has the place that this one has in its group.
    """
    moves = []
    for whole in request.groups:
        number_of = {rank: at for at, rank in enumerate(whole)}
        own = [group for group in step.groups if group[0] in number_of]
        members = sorted(rank for group in own for rank in group)
        if members != list(whole) or len({len(group) for group in own}) != 1:
            text = f"its groups do not part the {len(whole)} ranks of the request evenly"
            raise StepError(number, whole[0], text)
        places = zip(*own, strict=True)
        parts = tuple(_runs([number_of[rank] for rank in place]) for place in places)
        moves += [
            GroupMove(RequestKind.ALL_TO_ALL, group, ((0, len(whole)),), parts) for group in own
        ]
    return tuple(moves)


def _runs(numbers: list[int]) -> Runs:
    return runs_of(np.array(sorted(numbers)))


def _move(number: int, operation: Collective, group: tuple[int, ...], held: RowsHeld) -> GroupMove:
    if operation is Collective.ALL_GATHER:
        return _gather(number, group, held)
    if operation is Collective.BROADCAST:
        return GroupMove(operation, group, _rows(number, group[0], held))
    region = _rows(number, group[0], held)
    for rank in group[1:]:
        if (held[rank] != held[group[0]]).any():
            text = f"holds other rows than rank {group[0]}, with which it reduces"
            raise StepError(number, rank, text)
    if operation is not Collective.REDUCE_SCATTER:
        return GroupMove(operation, group, region)
    rows = np.flatnonzero(held[group[0]])
    if len(rows) % len(group):
        text = f"{len(rows)} rows cannot be scattered evenly over {len(group)} ranks"
        raise StepError(number, group[0], text)
    parts = tuple(runs_of(part) for part in np.split(rows, len(group)))
    return GroupMove(operation, group, region, parts)


def _gather(number: int, group: tuple[int, ...], held: RowsHeld) -> GroupMove:
    own = held[list(group)]
    twice = np.flatnonzero(own.sum(axis=0) > 1)
    if len(twice):
        rank = group[int(np.flatnonzero(own[:, twice[0]])[1])]
        raise StepError(number, rank, f"brings row {twice[0]}, which another member brings too")
    for rank, rows in zip(group, own, strict=True):
        if rows.sum() != own[0].sum() or not rows.any():
            text = f"brings {rows.sum()} rows, rank {group[0]} brings {own[0].sum()}"
            raise StepError(number, rank, text)
    parts = tuple(runs_of(np.flatnonzero(rows)) for rows in own)
    return GroupMove(Collective.ALL_GATHER, group, runs_of(np.flatnonzero(own.any(axis=0))), parts)


def _rows(number: int, rank: int, held: RowsHeld) -> Runs:
    found = runs_of(np.flatnonzero(held[rank]))
    if not found:
        raise StepError(number, rank, "holds nothing that it could contribute")
    return found


def _apply(move: GroupMove, held: RowsHeld) -> None:
    """What the members hold afterwards."""
    members = list(move.members)
    if move.operation is Collective.REDUCE:
        held[members[1:]] = False
        return
    if move.operation is Collective.REDUCE_SCATTER:
        held[members] = False
        for rank, part in zip(members, move.parts, strict=True):
            held[rank, list(rows(part))] = True
        return
    held[np.ix_(members, list(rows(move.region)))] = True


def rows(runs: Runs) -> Iterator[int]:
    """The row numbers of runs."""
    for first, length in runs:
        yield from range(first, first + length)
