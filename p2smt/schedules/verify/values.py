"""What every chunk holds after a run: exact multisets of contributions.

Values are numbered as they are found, so that equal ones are one number and each sum is worked out
once.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution, Goal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index

Part = Contribution | str
"""What a sum is made of: a contribution, or the name of a cell that was read before any write."""


@dataclass(slots=True)
class Table:
    """Values by number; equal values have one number."""

    found: list[Mapping[Part, int]] = field(default_factory=list)
    numbers: dict[frozenset[tuple[Part, int]], int] = field(default_factory=dict)
    sums: dict[tuple[int, int], int] = field(default_factory=dict)

    def number(self, value: Mapping[Part, int]) -> int:
        """The number of a value."""
        key = frozenset(value.items())
        if key not in self.numbers:
            self.numbers[key] = len(self.found)
            self.found.append(value)
        return self.numbers[key]

    def add(self, a: int, b: int) -> int:
        """The number of the sum of two values."""
        key = (a, b) if a < b else (b, a)
        if key not in self.sums:
            total = Counter(self.found[a])
            total.update(self.found[b])
            self.sums[key] = self.number(total)
        return self.sums[key]


@dataclass(slots=True)
class State:
    """Memory and messages under way; values by number, -1 for what was never written."""

    index: Index
    table: Table = field(default_factory=Table)
    cells: list[int] = field(default_factory=list)
    messages: dict[object, deque[list[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        memory = self.index.memory
        self.cells = [-1] * memory.total
        for rank, chunks in enumerate(self.index.schedule.contract.starts):
            for chunk, given in enumerate(chunks):
                if given is not None:
                    self.cells[memory.input_cell(rank, chunk)] = self.table.number({given: 1})
        self.messages = {connection: deque() for connection in self.index.sends}

    def read(self, cell: int) -> int:
        """What a cell holds; one never written holds its own name as undefined data."""
        if self.cells[cell] < 0:
            return self.table.number({self.index.memory.name(cell): 1})
        return self.cells[cell]

    def do(self, number: int) -> None:
        """Performs a step as a whole."""
        step = self.index.schedule.steps[number]
        parts: list[Sequence[int]] = []
        if step.receive:
            parts.append(self.messages[step.receive].popleft())
        for span in step.reads:
            parts.append([self.read(cell) for cell in self.index.memory.cells(span)])
        value = list(parts[0]) if parts else []
        for more in parts[1:]:
            value = [self.table.add(a, b) for a, b in zip(value, more, strict=True)]
        for span in step.writes:
            first = self.index.memory.cells(span).start
            self.cells[first : first + span.count] = value
        if step.send:
            self.messages[step.send].append(value)


def run_values(index: Index, order: Sequence[int]) -> State:
    """Memory after the steps in this order, each as a whole."""
    state = State(index)
    for number in order:
        state.do(number)
    return state


def wrong_goals(state: State) -> Iterator[tuple[Goal, Mapping[Part, int]]]:
    """Goals that are not met, with what is there instead."""
    wanted: dict[tuple[Contribution, ...], int] = {}
    for goal in state.index.schedule.contract.goals:
        if goal.parts not in wanted:
            wanted[goal.parts] = state.table.number(Counter(goal.parts))
        got = state.read(state.index.memory.output_cell(goal.rank, goal.chunk))
        if got != wanted[goal.parts]:
            yield goal, state.table.found[got]
