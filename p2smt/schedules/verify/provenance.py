"""Where the data of every step comes from, along one run.

What a step makes at one of its positions is a chunk of its own.  It adds up the sender's chunk that
came as the message and, for every cell it reads, the chunk that was written there last (none: what
is there was there at the start).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.verify.values import DataState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.multisets import Part


class StepChunk(NamedTuple):
    """What step ``step`` makes at its position ``place``."""

    step: int
    place: int


class Addend(NamedTuple):
    """Something that is added up: where it comes from, and its value's number.

    cell: the cell that was read; None for a message.
    origin: the chunk that it is; None if it was there at the start.
    """

    cell: int | None
    origin: StepChunk | None
    value: int


@dataclass(slots=True)
class Provenance:
    """Addends and values of all chunks; ``last``: what was written last to each cell."""

    state: DataState
    addends: dict[StepChunk, list[Addend]] = field(default_factory=dict)
    values: dict[StepChunk, int] = field(default_factory=dict)
    last: dict[int, StepChunk] = field(default_factory=dict)
    overwritten: list[tuple[int, int, StepChunk]] = field(default_factory=list)

    def parts(self, value: int) -> Mapping[Part, int]:
        """What a value is made of."""
        return self.state.table.known[value].parts

    def contains(self, value: int, part: Part) -> int:
        """How often a contribution is in a value."""
        return self.parts(value).get(part, 0)

    def do(self, number: int, inbox: dict[object, deque[int]]) -> None:
        """Performs a step and notes its addends; ``inbox`` holds the senders of messages."""
        step = self.state.index.schedule.steps[number]
        sender = inbox[step.receive].popleft() if step.receive else None
        message = self.state.messages[step.receive][0] if step.receive else []
        for place in range(step.count):
            found = list(self._reads(number, place))
            if sender is not None:
                found.insert(0, Addend(None, StepChunk(sender, place), message[place]))
            self.addends[StepChunk(number, place)] = found
        old = {
            c: self.state.cells[c] for s in step.writes for c in self.state.index.memory.cells(s)
        }
        self.state.do(number)
        self._store(number, old)
        if step.send:
            inbox.setdefault(step.send, deque()).append(number)

    def _reads(self, number: int, place: int) -> Iterator[Addend]:
        memory = self.state.index.memory
        for span in self.state.index.schedule.steps[number].reads:
            cell = memory.cells(span)[place]
            yield Addend(cell, self.last.get(cell), self.state.read(cell))

    def _store(self, number: int, old: dict[int, int]) -> None:
        for place in range(self.state.index.schedule.steps[number].count):
            chunk = StepChunk(number, place)
            values = [addend.value for addend in self.addends[chunk]]
            if values:
                self.values[chunk] = self._sum(values)
        for span in self.state.index.schedule.steps[number].writes:
            for place, cell in enumerate(self.state.index.memory.cells(span)):
                if old[cell] >= 0:
                    self.overwritten.append((cell, old[cell], StepChunk(number, place)))
                self.last[cell] = StepChunk(number, place)

    def _sum(self, values: Sequence[int]) -> int:
        total = values[0]
        for value in values[1:]:
            total = self.state.table.add(total, value)
        return total


def trace_values(index: Index, order: Sequence[int]) -> Provenance:
    """The provenance of everything along a run."""
    provenance = Provenance(DataState(index))
    inbox: dict[object, deque[int]] = {}
    for number in order:
        provenance.do(number, inbox)
    return provenance
