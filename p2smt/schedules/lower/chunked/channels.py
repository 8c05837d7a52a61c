"""Channels of messages, so that no thread block and no channel has more than a runtime takes.

A block runs one end of a connection.  An edge that carries too much for a block gets several
connections, over which its messages are dealt out in turn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2smt.problems.edge_ways import EdgeRow
from p2smt.schedules.lower.chunked.runs import EdgeWay
from p2smt.schedules.model import Connection, Schedule

BLOCK_STEPS, RANK_BLOCKS = 256, 216
"""What MSCCL has room for (microsoft/msccl, src/include/msccl.h)."""
CHANNEL_BLOCKS = 31
"""MSCCL has room for 32 on a channel of a gpu; one is for local moves."""

Lanes = Mapping[EdgeWay, int]
"""How many connections each way has."""


@dataclass(frozen=True, slots=True)
class WayChannels:
    """The channels of every way, one for each of its connections."""

    of: Mapping[EdgeWay, tuple[int, ...]]

    def channel(self, way: EdgeWay, number: int) -> int:
        """That of a way's message by its number."""
        known = self.of[way]
        return known[number % len(known)]


def channels_of(edges: Sequence[EdgeRow], lanes: Lanes) -> WayChannels:
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
) -> Lanes | None:
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
