"""Every message and every local move of a schedule, chunk by chunk, with the places at its ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.collectives.contract import RULES, CollectiveRule, MadeOf
from p2smt.errors import InputError
from p2smt.problems.schedule import Arrival, EdgeRow, SumSchedule, SumSend, SumStep
from p2smt.synthesis.keeping import ChunkRoom, KeptChunk, LocalMove, Part, ValueUse, kept

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


# What a collective wants of every chunk of a synthesized schedule: where it is given and asked.
# Chunks are numbered class by class.  The chunks of a class are given at the same ranks and asked
# for at the same ranks, so that which of them is which does not matter.


@dataclass(frozen=True, slots=True)
class ChunkClass:
    """Chunks of one origin and one goal; None: of all ranks, or of the root's.

    ``givers`` have an input of them, ``takers`` must end with them.  The first lies at
    ``input`` and ``output`` in the caller's buffers, the others follow.
    """

    givers: tuple[int, ...]
    takers: tuple[int, ...]
    input: int
    output: int


def classes_of(collective: str, ranks: int, chunks: int, root: int) -> tuple[ChunkClass, ...]:
    """The classes, ``chunks`` chunks each, in the order in which schedules number chunks.

    All-gather, reduce-scatter: one for each rank.  All-to-all, scatter, gather: for each pair of
    different ranks that sends.  All-reduce, reduce, broadcast: one.

    Raises:
        InputError: the collective is not one of these.
    """
    rule = rule_of(collective)
    every, alone = tuple(range(ranks)), (root,)
    if rule.source is MadeOf.SUM:
        if rule.input_parts:
            return tuple(ChunkClass(every, (own,), own * chunks, 0) for own in every)
        return (ChunkClass(every, alone if rule.at_root else every, 0, 0),)
    if not rule.input_parts and not rule.at_root:
        if rule.source is MadeOf.ROOT:
            return (ChunkClass(alone, every, 0, 0),)
        return tuple(ChunkClass((own,), every, 0, own * chunks) for own in every)
    return tuple(
        _pair(rule, origin, goal, chunks)
        for origin in (alone if rule.source is MadeOf.ROOT else every)
        for goal in (alone if rule.at_root else every)
        if goal != origin
    )


def at_home(collective: str, ranks: int, chunks: int, root: int) -> tuple[ChunkClass, ...]:
    """What ranks have for themselves alone, and no message carries."""
    rule = rule_of(collective)
    if rule.source is MadeOf.SUM or not (rule.input_parts or rule.at_root):
        return ()
    alone = rule.at_root or rule.source is MadeOf.ROOT
    return tuple(_pair(rule, own, own, chunks) for own in ((root,) if alone else range(ranks)))


def rule_of(collective: str) -> CollectiveRule:
    """The rule of a collective that schedules of chunks are made for; InputError if it is none."""
    rule = RULES.get(collective)
    if rule is None or rule.source not in (MadeOf.SUM, MadeOf.OWNER, MadeOf.ROOT):
        known = [n for n, r in RULES.items() if r.source is not MadeOf.BEFORE_IN_RING]
        raise InputError(f"collective {collective[:40]!r}", f"is none of {', '.join(known)}")
    return rule


def _pair(rule: CollectiveRule, origin: int, goal: int, chunks: int) -> ChunkClass:
    first = goal * chunks if rule.input_parts else 0
    return ChunkClass((origin,), (goal,), first, origin * chunks if rule.output_parts else 0)


# The messages of a schedule that some result needs.


_Message = tuple[int, Arrival]
"""A chunk, and where a message of it arrives."""


def needed(schedule: SumSchedule, edges: Sequence[EdgeRow]) -> SumSchedule:
    """The schedule without messages that reach no result, directly or in another's sum.

    Raises:
        InputError: a message or a result is made of what does not come to its rank in time, or
            of something twice.
    """
    wanted: set[_Message] = set()
    known = {key for number, step in enumerate(schedule.steps) for key in _brought(number, step)}
    for result in schedule.results:
        what = f"chunk {result.chunk} at rank {result.rank}"
        wanted |= _parts(what, result.chunk, result.rank, result.parts, len(schedule.steps), edges)
    kept: list[SumStep] = []
    for number, step in reversed(list(enumerate(schedule.steps))):
        sends = tuple(s for s in step.sends if (s.chunk, arrival_of(number, s)) in wanted)
        for send in sends:
            what = f"step {number + 1}: the message of chunk {send.chunk} over edge {send.edge}"
            source = edges[send.edge][0]
            wanted |= _parts(what, send.chunk, source, send.parts, number, edges)
        kept.append(SumStep(step.rounds, sends))
    if missing := sorted(wanted - known):
        chunk, came = missing[0]
        given = f"chunk {chunk} over edge {came.edge} in step {came.step + 1}"
        raise InputError(given, "is used, and never sent", "replay the schedule")
    return SumSchedule(tuple(reversed(kept)), schedule.results)


def arrival_of(step: int, send: SumSend) -> Arrival:
    """How what a message brings is named at its target."""
    return Arrival(step, send.edge, send.slot)


def _brought(number: int, step: SumStep) -> Iterable[_Message]:
    return ((send.chunk, arrival_of(number, send)) for send in step.sends)


def _parts(
    what: str,
    chunk: int,
    rank: int,
    parts: Sequence[Arrival | None],
    before: int,
    edges: Sequence[EdgeRow],
) -> set[_Message]:
    """The messages that a sum at a rank is made of."""
    if not parts or len(set(parts)) < len(parts):
        raise InputError(what, "is a sum of nothing, or of a value twice", "replay the schedule")
    came = [part for part in parts if part is not None]
    for part in came:
        if part.step >= before or not 0 <= part.edge < len(edges) or edges[part.edge][1] != rank:
            rule = f"is made of what did not come to rank {rank} before (edge {part.edge})"
            raise InputError(what, rule, "replay the schedule")
    return {(chunk, part) for part in came}
