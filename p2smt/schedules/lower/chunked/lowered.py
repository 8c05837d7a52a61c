"""Synthesized schedules as schedules of thread blocks and messages, right in every interleaving."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.sums import SumSchedule
from p2smt.schedules.construction.builder import MAX_RUN, Builder, Message
from p2smt.schedules.lower.chunked.channels import (
    BLOCK_STEPS,
    WayChannels,
    channels_of,
    more_lanes,
)
from p2smt.schedules.lower.chunked.demand import rule_of
from p2smt.schedules.lower.chunked.layout import AskedChunks, ChunkLayout, copy_home, layout_of
from p2smt.schedules.lower.chunked.needed import needed
from p2smt.schedules.lower.chunked.numbering import numbered
from p2smt.schedules.lower.chunked.placed import ChunkRooms, PlacedChunk, placed
from p2smt.schedules.lower.chunked.runs import (
    ChunkRun,
    EdgeWay,
    SentChunk,
    SentTogether,
    in_groups,
    in_turns,
    joined,
)
from p2smt.schedules.model import Schedule

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
        schedule: chunks numbered as by :func:`p2smt.search.schedule.dissemination.spreads`.
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
