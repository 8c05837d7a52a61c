"""Synthesized schedules as schedules of thread blocks and messages, right in every interleaving."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from p2smt.collectives.contract import Contract, contract
from p2smt.errors import InputError
from p2smt.problems.schedule import EdgeRow, SumSchedule
from p2smt.schedules.construction.builder import MAX_RUN, Builder, Message
from p2smt.schedules.model import Buffer, Connection, Schedule, Span
from p2smt.synthesis.keeping import FINAL, OWN
from p2smt.synthesis.placed import (
    ChunkRooms,
    PlacedChunk,
    at_home,
    classes_of,
    needed,
    placed,
    rule_of,
)

# Where places of chunks are in the buffers of ranks.


@dataclass(frozen=True, slots=True)
class AskedChunks:
    """A collective, of ``chunks`` chunks a rank, pair or in all, and whether it runs in place."""

    collective: str
    ranks: int
    chunks: int
    root: int
    in_place: bool

    @property
    def contract(self) -> Contract:
        """What it is given and must produce."""
        return contract(
            self.collective, self.ranks, self.chunks, in_place=self.in_place, root=self.root
        )

    @property
    def shift(self) -> tuple[int, ...]:
        """By rank, how its input and its output lie to each other in place; else empty."""
        rule = rule_of(self.collective)
        ranks = range(self.ranks if self.in_place else 0)
        return tuple(rule.shift(rank, self.chunks) for rank in ranks)

    @property
    def buffers(self) -> tuple[int, int]:
        """Chunks of input and of output, on every rank."""
        rule = rule_of(self.collective)
        whole = self.ranks * self.chunks
        return (
            whole if rule.input_parts else self.chunks,
            whole if rule.output_parts else self.chunks,
        )

    def rooms(self) -> ChunkRooms:
        """What ranks have of the chunks of every class.

        Raises:
            InputError: an all-to-all in place: what arrives would overwrite what is to be sent.
        """
        rule = rule_of(self.collective)
        if self.in_place and rule.input_parts and rule.output_parts:
            raise InputError(f"{self.collective} in place", "has no memory for what arrives")
        classes = classes_of(self.collective, self.ranks, self.chunks, self.root)
        shift = self.shift
        shared = frozenset(
            (number, rank)
            for number, one in enumerate(classes)
            for rank in set(one.givers) & set(one.takers)
            if self.in_place and one.input + shift[rank] == one.output
        )
        return ChunkRooms(classes, self.chunks, shared, self.in_place)


@dataclass(frozen=True, slots=True)
class ChunkLayout:
    """The span of every place of a chunk; chunks by their new numbers.

    larger: of input and output.  scratch: by rank, where (plane, chunk) lies.
    """

    asked: AskedChunks
    rooms: ChunkRooms
    shift: tuple[int, ...]
    larger: Buffer
    scratch: Mapping[int, Mapping[tuple[int, int], int]]

    def span(self, chunk: int, rank: int, place: int) -> Span:
        """The chunk's place at a rank; in place, in the larger of input and output."""
        if place not in (OWN, FINAL):
            return Span(rank, Buffer.SCRATCH, self.scratch[rank][place, chunk], 1)
        number, part = divmod(chunk, self.asked.chunks)
        one = self.rooms.classes[number]
        if place == OWN:
            return self.at(rank, Buffer.INPUT, one.input + part)
        return self.at(rank, Buffer.OUTPUT, one.output + part)

    def at(self, rank: int, buffer: Buffer, start: int, count: int = 1) -> Span:
        """Chunks of input or output; in place by the name of the larger one."""
        if self.shift:
            shift = self.shift[rank]
            start += max(shift, 0) if buffer is Buffer.INPUT else max(-shift, 0)
            buffer = self.larger
        return Span(rank, buffer, start, count)


def layout_of(
    asked: AskedChunks,
    rooms: ChunkRooms,
    chunks: Sequence[PlacedChunk],
    order: Sequence[int],
    edges: Sequence[EdgeRow],
) -> ChunkLayout:
    """The layout; scratch holds what is used of it, plane by plane, in the order of the chunks."""
    used: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for new, old in enumerate(order):
        for rank, place in _places(chunks[old], edges):
            if place not in (OWN, FINAL):
                used[rank].add((place, new))
    scratch = {
        rank: {key: start for start, key in enumerate(sorted(keys))} for rank, keys in used.items()
    }
    inputs, outputs = asked.buffers
    larger = Buffer.OUTPUT if outputs >= inputs else Buffer.INPUT
    return ChunkLayout(asked, rooms, asked.shift, larger, scratch)


def _places(chunk: PlacedChunk, edges: Sequence[EdgeRow]) -> set[tuple[int, int]]:
    """The places of a chunk that anything uses, by rank."""
    found = {
        (rank, place)
        for rank, moves in chunk.moves
        for m in moves
        for place in (m.source, m.target)
    }
    for step in chunk.messages:
        for message in step:
            source, target, _ = edges[message.edge]
            found |= {(source, message.source), (target, message.target)}
    return found


def copy_home(b: Builder, layout: ChunkLayout, most: int) -> None:
    """What ranks have for themselves alone goes from their input to their output."""
    asked = layout.asked
    for one in at_home(asked.collective, asked.ranks, asked.chunks, asked.root):
        for first in range(0, asked.chunks, most):
            count, rank = min(most, asked.chunks - first), one.givers[0]
            source = layout.at(rank, Buffer.INPUT, one.input + first, count)
            target = layout.at(rank, Buffer.OUTPUT, one.output + first, count)
            if source != target:
                b.copy(source, target)


# New numbers for chunks that may trade places: those that travel together become neighbours.
# The chunks of a class are alike for the collective, so each may lie wherever another of its class
# would.  Neighbours that take the same edge in the same step go as one message.


Itinerary = frozenset[object]


def numbered(chunks: Sequence[PlacedChunk], size: int) -> list[int]:
    """The old numbers in the new order; classes are runs of ``size`` chunks and stay in place."""
    travels = [frozenset[object](chunk.itinerary) for chunk in chunks]
    order: list[int] = []
    for first in range(0, len(chunks), size):
        alike: dict[Itinerary, list[int]] = defaultdict(list)
        for chunk in range(first, first + size):
            alike[travels[chunk]].append(chunk)
        before = travels[order[-1]] if order else frozenset()
        for travel in _chain(list(alike), before):
            order += alike[travel]
    return order


def _chain(travels: list[Itinerary], before: Itinerary) -> list[Itinerary]:
    """Always the one next that shares most messages with the one before; ties: the first."""
    left, found = dict.fromkeys(travels), list[Itinerary]()
    while left:
        last = found[-1] if found else before
        best = max(left, key=lambda travel: len(last & travel))
        del left[best]
        found.append(best)
    return found


# Chunks side by side move as one: runs of messages over an edge, and of local moves.


EdgeWay = tuple[int, int]
"""An edge, and which of several messages of a chunk over it."""


@dataclass(frozen=True, slots=True)
class ChunkRun:
    """Chunks from one span to another, copied or added."""

    source: Span
    target: Span
    adds: bool

    def then(self, other: ChunkRun) -> ChunkRun | None:
        """This run and the chunks right behind it as one run, if they are that."""
        count = self.source.count + other.source.count
        if self.adds != other.adds or count > MAX_RUN:
            return None
        for span, more in ((self.source, other.source), (self.target, other.target)):
            if more != replace(span, start=span.start + span.count, count=more.count):
                return None
        return ChunkRun(
            replace(self.source, count=count), replace(self.target, count=count), self.adds
        )


SentChunk = Sequence[tuple[EdgeWay, ChunkRun]]
"""A chunk's messages in a step."""

SentTogether = dict[EdgeWay, ChunkRun]
"""Messages that are all sent before any is received."""


def joined(runs: Iterable[ChunkRun]) -> list[ChunkRun]:
    """Runs, each with those right behind it."""
    found: list[ChunkRun] = []
    for run in runs:
        longer = found[-1].then(run) if found else None
        if longer is None:
            found.append(run)
        else:
            found[-1] = longer
    return found


def in_turns(chunks: Sequence[SentChunk]) -> list[SentTogether]:
    """The messages of a step by turns: as long runs as there are, at most one for a way in each.

    For messages none of which arrives where another of the step is sent from.
    """
    by_way: dict[EdgeWay, list[ChunkRun]] = defaultdict(list)
    for messages in chunks:
        for way, run in messages:
            by_way[way].append(run)
    turns: list[SentTogether] = []
    for way in sorted(by_way):
        for turn, run in enumerate(joined(by_way[way])):
            if turn == len(turns):
                turns.append({})
            turns[turn][way] = run
    return turns


def in_groups(chunks: Sequence[SentChunk]) -> list[SentTogether]:
    """The messages of a step in groups of neighbouring chunks, one run for a way in each.

    What arrives may be stored where the same chunk is sent from, so all messages of a chunk are
    of one group: they are sent before any of them is received.
    """
    groups: list[SentTogether] = []
    for messages in chunks:
        longer = _with(groups[-1], messages) if groups else None
        if longer is None:
            groups.append(dict(messages))
        else:
            groups[-1] = longer
    return [group for group in groups if group]


def _with(group: SentTogether, messages: SentChunk) -> SentTogether | None:
    """A group with a chunk's messages; None if some way had then two runs."""
    longer = dict(group)
    for way, run in messages:
        one = group[way].then(run) if way in group else run
        if one is None:
            return None
        longer[way] = one
    return longer


# Channels of messages, so that no thread block and no channel has more than a runtime takes.
# A block runs one end of a connection.  An edge that carries too much for a block gets several
# connections, over which its messages are dealt out in turn.


BLOCK_STEPS, RANK_BLOCKS = 256, 216
"""What MSCCL has room for (microsoft/msccl, src/include/msccl.h)."""
CHANNEL_BLOCKS = 31
"""MSCCL has room for 32 on a channel of a gpu; one is for local moves."""

WorkerSlots = Mapping[EdgeWay, int]
"""How many connections each way has."""


@dataclass(frozen=True, slots=True)
class WayChannels:
    """The channels of every way, one for each of its connections."""

    of: Mapping[EdgeWay, tuple[int, ...]]

    def channel(self, way: EdgeWay, number: int) -> int:
        """That of a way's message by its number."""
        known = self.of[way]
        return known[number % len(known)]


def channels_of(edges: Sequence[EdgeRow], lanes: WorkerSlots) -> WayChannels:
    """The lowest channels on which the ranks at both ends have room."""
    used: dict[int, Counter[int]] = defaultdict(Counter)
    taken: set[Connection] = set()
    found: dict[EdgeWay, tuple[int, ...]] = dict.fromkeys(lanes, ())
    for lane in range(max(lanes.values(), default=0)):
        for way, count in lanes.items():
            if lane < count:
                source, target, _ = edges[way[0]]
                channel = 0
                while (
                    Connection(source, target, channel) in taken
                    or max(used[source][channel], used[target][channel]) >= CHANNEL_BLOCKS
                ):
                    channel += 1
                taken.add(Connection(source, target, channel))
                for rank in (source, target):
                    used[rank][channel] += 1
                found[way] += (channel,)
    return WayChannels(found)


def more_lanes(
    schedule: Schedule, edges: Sequence[EdgeRow], channels: WayChannels, block_steps: int
) -> WorkerSlots | None:
    """How many connections each way needs; None: no more than it has, or no rank has room."""
    sizes = _sizes(schedule)
    found: dict[EdgeWay, int] = {}
    for way, own in channels.of.items():
        source, target, _ = edges[way[0]]
        most = max(sizes[Connection(source, target, channel)] for channel in own)
        if most > block_steps:
            found[way] = max(len(own) + 1, -(-most * len(own) // block_steps))
        else:
            found[way] = len(own)
    blocks = Counter(end for way, count in found.items() for end in edges[way[0]][:2] * count)
    grown = any(count > len(channels.of[way]) for way, count in found.items())
    return found if grown and max(blocks.values()) < RANK_BLOCKS else None


def _sizes(schedule: Schedule) -> Counter[Connection]:
    """Lines of the longer end of each connection as MSCCL XML has them: one for each wait."""
    ends: Counter[tuple[Connection, int]] = Counter()
    for step in schedule.steps:
        for connection in (step.send, step.receive):
            if connection is not None:
                ends[connection, step.rank] += max(1, len(step.waits))
    found: Counter[Connection] = Counter()
    for (connection, _), size in ends.items():
        found[connection] = max(found[connection], size)
    return found


_TRIES = 4


def lowered(
    schedule: SumSchedule,
    *,
    edges: Sequence[EdgeRow],
    ranks: int,
    collective: str,
    chunks: int,
    root: int = 0,
    name: str,
    in_place: bool | None = None,
    block_steps: int = BLOCK_STEPS,
) -> Schedule:
    """The schedule as thread blocks and messages.

    A message goes as soon as its data is there: steps order nothing else.  Chunks of a rank, of a
    pair or of all are renumbered among themselves, so that neighbours travel together.  Messages
    that no result needs are left out.

    Args:
        schedule: chunks numbered as by :func:`p2smt.synthesis.schedule_replay.spreads`.
        edges: of the fabric: source, target, loaded capacities.
        collective: by its name in schedules ("allreduce").
        chunks: of each rank, of each pair, or in all.
        in_place: whether input and output share memory; None: unless it is an all-to-all.
        block_steps: the steps for which a runtime has room in a block.

    Raises:
        InputError: it is no schedule of that collective, as far as what is sent and asked for
            goes, or an all-to-all is to run in place.
    """
    if ranks < 2 or chunks < 1:
        raise InputError(f"{ranks} ranks with {chunks} chunks", "must be 2 and 1 at least")
    rule = rule_of(collective)
    if in_place is None:
        in_place = not (rule.input_parts and rule.output_parts)
    asked = AskedChunks(collective, ranks, chunks, root, in_place)
    rooms = asked.rooms()
    _check_numbers(schedule, len(rooms.classes) * chunks, len(edges))
    ways = placed(needed(schedule, edges), edges, rooms)
    order = numbered(ways, chunks)
    layout = layout_of(asked, rooms, ways, order, edges)
    grouping = in_turns if _comes_once(ways, edges, rooms) else in_groups
    emission = _Emission(layout, [ways[old] for old in order], edges, grouping)
    return emission.fitting(name, block_steps)


def _comes_once(ways: Sequence[PlacedChunk], edges: Sequence[EdgeRow], rooms: ChunkRooms) -> bool:
    """Whether no rank has two values of a chunk, so that nothing it holds is ever overwritten."""
    for chunk, way in enumerate(ways):
        has = list(rooms.classes[chunk // rooms.chunks].givers)
        has += [edges[message.edge][1] for step in way.messages for message in step]
        if len(set(has)) < len(has):
            return False
    return True


def _check_numbers(schedule: SumSchedule, chunks: int, edges: int) -> None:
    for step in schedule.steps:
        for send in step.sends:
            if not (0 <= send.chunk < chunks and 0 <= send.edge < edges):
                given = f"a message of chunk {send.chunk} over edge {send.edge}"
                raise InputError(given, f"there are {chunks} chunks and {edges} edges")


_Grouping = Callable[[Sequence[SentChunk]], list[SentTogether]]


@dataclass(frozen=True, slots=True)
class _Emission:
    """Says everything to a builder, in an order that runs one by one; chunks by new numbers."""

    layout: ChunkLayout
    chunks: Sequence[PlacedChunk]
    edges: Sequence[EdgeRow]
    grouping: _Grouping

    def fitting(self, name: str, block_steps: int) -> Schedule:
        """The schedule, with more channels where a block has too many steps."""
        steps = [self.grouping(self._messages(n)) for n in range(len(self.chunks[0].messages))]
        ways = sorted({way for step in steps for group in step for way in group})
        lanes = dict.fromkeys(ways, 1)
        for _ in range(_TRIES):
            channels = channels_of(self.edges, lanes)
            found = self._schedule(name, steps, channels)
            more = more_lanes(found, self.edges, channels, block_steps)
            if more is None:
                break
            lanes = dict(more)
        return found

    def _schedule(
        self, name: str, steps: Sequence[Sequence[SentTogether]], channels: WayChannels
    ) -> Schedule:
        b = Builder(self.layout.asked.contract, *self.layout.asked.buffers)
        sent: Counter[EdgeWay] = Counter()
        for number, step in enumerate(steps):
            self._moves(b, number)
            for group in step:
                messages: list[Message] = []
                for way, run in sorted(group.items()):
                    channel = channels.channel(way, sent[way])
                    messages.append(Message(run.source, run.target, run.adds, channel))
                    sent[way] += 1
                b.together(messages)
        self._moves(b, len(steps))
        copy_home(b, self.layout, MAX_RUN)
        return b.schedule(name)

    def _messages(self, step: int) -> list[SentChunk]:
        """By chunk, its messages in a step."""
        return [
            [
                (
                    (message.edge, message.slot),
                    ChunkRun(
                        self.layout.span(number, self.edges[message.edge][0], message.source),
                        self.layout.span(number, self.edges[message.edge][1], message.target),
                        message.adds,
                    ),
                )
                for message in chunk.messages[step]
            ]
            for number, chunk in enumerate(self.chunks)
        ]

    def _moves(self, b: Builder, time: int) -> None:
        """What ranks copy and add up before the sends of a step: first moves first."""
        turns: dict[tuple[int, int], list[ChunkRun]] = defaultdict(list)
        for number, chunk in enumerate(self.chunks):
            for rank, moves in chunk.moves:
                now = [move for move in moves if move.time == time]
                for turn, move in enumerate(now):
                    source = self.layout.span(number, rank, move.source)
                    target = self.layout.span(number, rank, move.target)
                    turns[turn, rank].append(ChunkRun(source, target, move.adds))
        for at in sorted(turns):
            for run in joined(turns[at]):
                b.copy(run.source, run.target, reduce=run.adds)
