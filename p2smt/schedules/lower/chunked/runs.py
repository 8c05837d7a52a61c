"""Chunks side by side move as one: runs of messages over an edge, and of local moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from p2smt.schedules.construction.builder import MAX_RUN
from p2smt.schedules.model import Span

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
