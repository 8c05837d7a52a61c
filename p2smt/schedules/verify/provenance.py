"""Where the data of every step comes from, along one run.

A *part* is one chunk position of one step.  Its sources are the message's part at the sender and,
for every chunk it reads, the part that wrote that chunk last (none: it was there at the start).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.verify.values import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.verify.values import Part


class Piece(NamedTuple):
    """Chunk position ``place`` of step ``step``."""

    step: int
    place: int


class Source(NamedTuple):
    """Something that a piece adds up: where it comes from, and its value's number.

    cell: the cell that was read; None for a message.
    origin: the piece that made it; None if it was there at the start.
    """

    cell: int | None
    origin: Piece | None
    value: int


@dataclass(slots=True)
class Provenance:
    """Sources and values of all pieces; ``last`` is the piece that wrote each cell."""

    state: State
    sources: dict[Piece, list[Source]] = field(default_factory=dict)
    values: dict[Piece, int] = field(default_factory=dict)
    last: dict[int, Piece] = field(default_factory=dict)
    overwritten: list[tuple[int, int, Piece]] = field(default_factory=list)

    def contains(self, value: int, part: Part) -> int:
        """How often a contribution is in a value."""
        return self.state.table.found[value].get(part, 0)

    def do(self, number: int, inbox: dict[object, deque[int]]) -> None:
        """Performs a step and notes its sources; ``inbox`` holds the senders of messages."""
        step = self.state.index.schedule.steps[number]
        sender = inbox[step.receive].popleft() if step.receive else None
        message = self.state.messages[step.receive][0] if step.receive else []
        for place in range(step.count):
            found = list(self._reads(number, place))
            if sender is not None:
                found.insert(0, Source(None, Piece(sender, place), message[place]))
            self.sources[Piece(number, place)] = found
        old = {
            c: self.state.cells[c] for s in step.writes for c in self.state.index.memory.cells(s)
        }
        self.state.do(number)
        self._store(number, old)
        if step.send:
            inbox.setdefault(step.send, deque()).append(number)

    def _reads(self, number: int, place: int) -> Iterator[Source]:
        memory = self.state.index.memory
        for span in self.state.index.schedule.steps[number].reads:
            cell = memory.cells(span)[place]
            yield Source(cell, self.last.get(cell), self.state.read(cell))

    def _store(self, number: int, old: dict[int, int]) -> None:
        for place in range(self.state.index.schedule.steps[number].count):
            piece = Piece(number, place)
            values = [source.value for source in self.sources[piece]]
            if values:
                self.values[piece] = self._sum(values)
        for span in self.state.index.schedule.steps[number].writes:
            for place, cell in enumerate(self.state.index.memory.cells(span)):
                if old[cell] >= 0:
                    self.overwritten.append((cell, old[cell], Piece(number, place)))
                self.last[cell] = Piece(number, place)

    def _sum(self, values: Sequence[int]) -> int:
        total = values[0]
        for value in values[1:]:
            total = self.state.table.add(total, value)
        return total


def trace_values(index: Index, order: Sequence[int]) -> Provenance:
    """The provenance of everything along a run."""
    provenance = Provenance(State(index))
    inbox: dict[object, deque[int]] = {}
    for number in order:
        provenance.do(number, inbox)
    return provenance
