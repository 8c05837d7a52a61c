"""Builds the schedule of a request's steps: buffers, pieces, and messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.contract import request_contract, row_places
from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.programs.program import lower
from p2smt.schedules.classics.groups import ALGORITHMS
from p2smt.schedules.construction.builder import Builder, Message
from p2smt.schedules.lower.row_moves import (
    LoweredProgram,
    RankGroup,
    Rings,
    add_step,
    check_groups,
    chunks_per_row,
    group_steps,
    one_ring,
)
from p2smt.schedules.model import Buffer, Span

if TYPE_CHECKING:
    from p2smt.parallelism.placement import IntArray
    from p2smt.programs.program import Hierarchy, Program
    from p2smt.schedules.lower.row_moves import RankGroup
    from p2smt.schedules.model import Schedule


MAX_PIECES = 1024
MAX_CHUNKS = 2**20


@dataclass(frozen=True, slots=True)
class Lowering:
    """How steps become messages.

    algorithm: of every collective: "ring" (a chain where there is a root), "tree" (binomial) or
        "direct" (all members with all others, or with the root).
    pieces: the payload is cut into so many, and the steps are pipelined over them; None: as many
        as the plan says, otherwise one.
    rings: how many rings go round a group, each in which order.
    fused: receives and sends become one step where they can; connections must then hold two
        messages.
    """

    algorithm: str = "ring"
    pieces: int | None = None
    in_place: bool = True
    rings: Rings = one_ring
    fused: bool = False

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise InputError(f"algorithm {self.algorithm[:40]!r}", "is not known", f"use {known}")
        if self.pieces is not None and not 1 <= self.pieces <= MAX_PIECES:
            raise InputError(f"{self.pieces} pieces", f"must be 1 to {MAX_PIECES}")


DEFAULT = Lowering()


def schedule_of_steps(
    name: str,
    kind: RequestKind,
    groups: Sequence[RankGroup],
    steps: Sequence[tuple[Collective, Sequence[RankGroup]]],
    how: Lowering = DEFAULT,
    shards: Sequence[int] | None = None,
) -> Schedule:
    """The schedule of collectives on groups of ranks.

    groups: reduction groups, all ranks together; ``steps``: collectives and who runs them.
    shards: the row that member i of a group must end with (reduce-scatter); None: the one that
        the steps leave it with.

    Raises:
        InputError: members hold rows on which a collective cannot work, or the schedule is too
            large.
    """
    lowered = group_steps(kind, groups, steps)
    rings = how.rings if how.algorithm == "ring" else one_ring
    parts = 1 if how.algorithm == "tree" else chunks_per_row(lowered, rings)
    rows: Sequence[int] = range(len(groups[0]))
    if kind is RequestKind.REDUCE_SCATTER:
        rows = shards or ends_of(groups, lowered) or rows
    pieces = how.pieces or 1
    b = _builder(kind, groups, parts * pieces, rows, how.in_place)
    for piece, number in _pipeline_order(pieces, len(steps)):
        place = _ChunksOfPiece(kind, len(groups[0]), parts, pieces, piece)
        for step in lowered.steps[number]:
            add_step(b, step, how.algorithm, place.chunks, rings)
    return b.schedule(name, fused=how.fused)


@dataclass(frozen=True, slots=True)
class _ChunksOfPiece:
    """Where the chunks of a piece's rows lie.

    The buffers of an all-reduce hold piece after piece; where ranks start or end with rows of
    their own, row after row.
    """

    kind: RequestKind
    size: int
    parts: int
    pieces: int
    piece: int

    def chunks(self, rows: Sequence[int]) -> list[int]:
        """The chunks of some rows."""
        return [first + part for first in map(self._first, rows) for part in range(self.parts)]

    def _first(self, row: int) -> int:
        if self.kind is RequestKind.ALL_REDUCE:
            return (self.piece * self.size + row) * self.parts
        return (row * self.pieces + self.piece) * self.parts


def _pipeline_order(pieces: int, steps: int) -> Iterator[tuple[int, int]]:
    """(piece, step): at each tick one step of every piece on its way, the oldest piece first."""
    for tick in range(pieces + steps - 1):
        for piece in range(max(0, tick - steps + 1), min(pieces, tick + 1)):
            yield piece, tick - piece


def ends_of(groups: Sequence[RankGroup], lowered: LoweredProgram) -> list[int] | None:
    """The row that each member of the first group is left with; None unless one each."""
    ends = [lowered.held[rank] for rank in groups[0]]
    rows = [row for end in ends for row in end]
    return rows if sorted(rows) == list(range(len(ends))) and all(map(len, ends)) else None


def _builder(
    kind: RequestKind, groups: Sequence[RankGroup], row: int, shards: Sequence[int], in_place: bool
) -> Builder:
    """A builder for rows of so many chunks."""
    whole = row * len(groups[0])
    total = whole * len(groups) * len(groups[0])
    if total > MAX_CHUNKS:
        raise InputError(f"a schedule of {total} chunks", f"at most {MAX_CHUNKS} are supported")
    wanted = request_contract(kind, groups, row, shards, in_place=in_place)
    single = {RequestKind.ALL_GATHER: (row, whole), RequestKind.REDUCE_SCATTER: (whole, row)}
    inputs, outputs = single.get(kind, (whole, whole))
    return Builder(wanted, inputs, outputs, row_places(kind, groups, row, shards))


def lower_exchange(
    name: str,
    kind: RequestKind,
    groups: Sequence[RankGroup],
    steps: Sequence[Sequence[RankGroup]],
) -> Schedule:
    """An all-to-all (pairwise), or a send to the next member of each group; out of place.

    Raises:
        InputError: the groups of a step are not the size of the request's.
    """
    wanted = request_contract(kind, groups, 1, range(len(groups[0])), in_place=False)
    size = len(wanted.starts[0])
    b = Builder(wanted, size, size)
    sends = kind is RequestKind.SEND
    for number, those in enumerate(steps, start=1):
        check_groups(number, those, range(wanted.ranks))
        if any(len(group) != len(groups[0]) for group in those):
            raise InputError(f"step {number}", f"its groups are not of {len(groups[0])} ranks")
        for group in those:
            messages = _sends(group) if sends else _pairs(group)
            b.together(messages)
    for group in () if sends else groups:
        for i, rank in enumerate(group):
            b.copy(Span(rank, Buffer.INPUT, i, 1), Span(rank, Buffer.OUTPUT, i, 1))
    return b.schedule(name)


def _sends(group: RankGroup) -> Iterator[Message]:
    for rank, following in pairwise(group):
        yield Message(Span(rank, Buffer.INPUT, 0, 1), Span(following, Buffer.OUTPUT, 0, 1))


def _pairs(group: RankGroup) -> Iterator[Message]:
    """Everybody to the member 1, 2, .. further on."""
    k = len(group)
    for i, j in ((i, (i + d) % k) for d in range(1, k) for i in range(k)):
        yield Message(Span(group[i], Buffer.INPUT, j, 1), Span(group[j], Buffer.OUTPUT, i, 1))


# Lowers programs to schedules.
# A rank is a device in hierarchy order.  The payload of a request over k members has k rows; a row
# has as many chunks as the even split of every all-reduce needs, once for each pipelined piece.


MAX_RANKS = 1024


def lower_program(
    program: Program,
    hierarchy: Hierarchy,
    kind: RequestKind = RequestKind.ALL_REDUCE,
    how: Lowering = DEFAULT,
    groups: Sequence[RankGroup] | None = None,
) -> Schedule:
    """The schedule of a program in every reduction group.

    groups: reduction groups of ``hierarchy.size`` ranks that together are 0, 1, ..; None: one.

    Raises:
        InputError: unknown levels, members that hold different rows, or too large a schedule.
    """
    check_most_ranks(hierarchy.size * len(groups or [()]))
    own = np.array(groups or [tuple(range(hierarchy.size))], dtype=np.int64)
    steps = [
        (i.reduction, _tuples(lower(own, hierarchy.factors, hierarchy.grouping(i))))
        for i in program.instructions
    ]
    return schedule_of_steps(str(program), kind, _tuples(own), steps, how)


def check_most_ranks(ranks: int) -> None:
    """Raise InputError if there are too many ranks for a schedule."""
    if ranks > MAX_RANKS:
        raise InputError(f"{ranks} ranks", f"schedules are made for at most {MAX_RANKS}")


def _tuples(groups: IntArray) -> list[RankGroup]:
    return [tuple(group) for group in groups.tolist()]
