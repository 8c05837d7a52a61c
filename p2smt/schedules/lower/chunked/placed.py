"""Every message and every local move of a schedule, chunk by chunk, with the places at its ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.sums import Arrival, SumSchedule
from p2smt.schedules.lower.chunked.demand import ChunkClass
from p2smt.schedules.lower.chunked.keeping import (
    ChunkRoom,
    KeptChunk,
    LocalMove,
    Part,
    ValueUse,
    kept,
)
from p2smt.schedules.lower.chunked.needed import arrival_of

_Place = tuple[int, int]
"""A chunk at a rank."""


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message of a chunk: from which place of its sender to which of its receiver."""

    edge: int
    slot: int
    source: int
    target: int
    adds: bool


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """All that happens to a chunk.

    messages: by step, sorted by edge and slot.  moves: by rank, in their order.
    """

    messages: tuple[tuple[PlacedMessage, ...], ...]
    moves: tuple[tuple[int, tuple[LocalMove, ...]], ...]

    @property
    def itinerary(self) -> frozenset[tuple[int, PlacedMessage]]:
        """Its messages with their steps."""
        return frozenset((s, message) for s, step in enumerate(self.messages) for message in step)


@dataclass(frozen=True, slots=True)
class ChunkRooms:
    """What ranks have of a chunk of each class; ``shared``: (class, rank) of one place for both."""

    classes: tuple[ChunkClass, ...]
    chunks: int
    shared: frozenset[tuple[int, int]]
    clobbers: bool

    def of(self, chunk: int, rank: int) -> ChunkRoom:
        """Of a chunk by its number."""
        number = chunk // self.chunks
        own = rank in self.classes[number].givers
        final = rank in self.classes[number].takers
        return ChunkRoom(own, final, (number, rank) in self.shared, self.clobbers)


def placed(schedule: SumSchedule, edges: Sequence[EdgeRow], rooms: ChunkRooms) -> list[PlacedChunk]:
    """The chunks by number; of a schedule all of whose messages are needed.

    Raises:
        InputError: a rank has no result that the collective asks for, or one that it does not, or
            adds an input that it does not have.
    """
    uses, arrivals = _uses(schedule, edges, rooms)
    found: dict[int, dict[int, KeptChunk]] = defaultdict(dict)
    for chunk, rank in sorted(set(uses) | set(arrivals)):
        room, these = rooms.of(chunk, rank), uses[chunk, rank]
        _check(chunk, rank, room, these, len(schedule.steps))
        came = arrivals.get((chunk, rank), [])
        found[chunk][rank] = kept(room, came, these, len(schedule.steps))
    messages = _messages(schedule, edges, found)
    return [
        PlacedChunk(
            tuple(tuple(sorted(step, key=lambda m: (m.edge, m.slot))) for step in messages[chunk]),
            tuple((rank, at.moves) for rank, at in found[chunk].items() if at.moves),
        )
        for chunk in range(len(rooms.classes) * rooms.chunks)
    ]


def _uses(
    schedule: SumSchedule, edges: Sequence[EdgeRow], rooms: ChunkRooms
) -> tuple[dict[_Place, list[ValueUse]], dict[_Place, list[Arrival]]]:
    """What every rank sends and ends with, and what comes to it, by chunk and rank."""
    uses: dict[_Place, list[ValueUse]] = defaultdict(list)
    arrivals: dict[_Place, list[Arrival]] = defaultdict(list)
    for number, step in enumerate(schedule.steps):
        for send in step.sends:
            source, target, _ = edges[send.edge]
            uses[send.chunk, source].append(ValueUse(number, frozenset(send.parts)))
            arrivals[send.chunk, target].append(arrival_of(number, send))
    results = dict(_results(schedule))
    for at, parts in results.items():
        uses[at].append(ValueUse(len(schedule.steps), parts))
    for number, one in enumerate(rooms.classes):
        for chunk in range(number * rooms.chunks, (number + 1) * rooms.chunks):
            for rank in one.takers:
                if (chunk, rank) not in results and one.givers == (rank,):
                    uses[chunk, rank].append(ValueUse(len(schedule.steps), frozenset((None,))))
                elif (chunk, rank) not in results:
                    given, rule = f"chunk {chunk} at rank {rank}", "has no result"
                    raise InputError(given, rule, "replay the schedule")
    return uses, arrivals


def _results(schedule: SumSchedule) -> Iterator[tuple[_Place, frozenset[Part]]]:
    for result in schedule.results:
        yield (result.chunk, result.rank), frozenset(result.parts)


def _check(chunk: int, rank: int, room: ChunkRoom, uses: Sequence[ValueUse], end: int) -> None:
    given, remedy = f"chunk {chunk} at rank {rank}", "replay the schedule"
    if not room.own and any(None in use.parts for use in uses):
        raise InputError(given, "is not given there, and yet used", remedy)
    if not room.final and any(use.time == end for use in uses):
        raise InputError(given, "is not asked for, and yet has a result", remedy)


def _messages(
    schedule: SumSchedule, edges: Sequence[EdgeRow], found: dict[int, dict[int, KeptChunk]]
) -> dict[int, list[list[PlacedMessage]]]:
    """By chunk and step."""
    messages: dict[int, list[list[PlacedMessage]]] = defaultdict(
        lambda: [[] for _ in schedule.steps]
    )
    for number, step in enumerate(schedule.steps):
        for send in step.sends:
            source, target, _ = edges[send.edge]
            at = found[send.chunk]
            start = at[source].sums[ValueUse(number, frozenset(send.parts))]
            end, adds = at[target].landed[arrival_of(number, send)]
            messages[send.chunk][number].append(
                PlacedMessage(send.edge, send.slot, start, end, adds)
            )
    return messages
