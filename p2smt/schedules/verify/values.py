"""What every chunk holds after a run: exact multisets of contributions."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.multisets import Multisets, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Contribution, Goal
    from p2smt.schedules.index import Index


@dataclass(slots=True)
class DataState:
    """Memory and messages under way; values by number, -1 for what was never written.

    instead: what single reads see whatever is there, by node (as in order.happens_before) and cell.
    """

    index: Index
    table: Multisets = field(default_factory=Multisets)
    cells: list[int] = field(default_factory=list)
    messages: dict[object, deque[list[int]]] = field(default_factory=dict)
    instead: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        memory = self.index.memory
        self.cells = [-1] * memory.total
        for rank, chunks in enumerate(self.index.schedule.contract.starts):
            for chunk, given in enumerate(chunks):
                if given is not None:
                    self.cells[memory.input_cell(rank, chunk)] = self.table.single(given)
        self.messages = {connection: deque() for connection in self.index.sends}

    def read(self, cell: int, node: int = -1) -> int:
        """What a cell holds; one never written holds its own name as undefined data."""
        if (node, cell) in self.instead:
            return self.instead[node, cell]
        if self.cells[cell] < 0:
            return self.table.single(self.index.memory.name(cell))
        return self.cells[cell]

    def do(self, number: int) -> None:
        """Performs a step as a whole."""
        step = self.index.schedule.steps[number]
        parts: list[Sequence[int]] = []
        if step.receive:
            parts.append(self.messages[step.receive].popleft())
        for span in step.reads:
            parts.append([self.read(cell, number) for cell in self.index.memory.cells(span)])
        value = list(parts[0]) if parts else []
        for more in parts[1:]:
            value = [self.table.add(a, b) for a, b in zip(value, more, strict=True)]
        for span in step.writes:
            first = self.index.memory.cells(span).start
            self.cells[first : first + span.count] = value
        if step.send:
            self.messages[step.send].append(value)


def run_values(index: Index, order: Sequence[int]) -> DataState:
    """Memory after the steps in this order, each as a whole."""
    state = DataState(index)
    for number in order:
        state.do(number)
    return state


def wrong_goals(state: DataState) -> Iterator[tuple[Goal, Mapping[Part, int]]]:
    """Goals that are not met, with what is there instead."""
    wanted: dict[tuple[Contribution, ...], int] = {}
    schedule = state.index.schedule
    for goal in schedule.contract.goals:
        if goal.parts not in wanted:
            wanted[goal.parts] = state.table.number(Counter[Part](goal.parts), {})
        end = len(schedule.steps) + schedule.ranks + goal.rank
        got = state.read(state.index.memory.output_cell(goal.rank, goal.chunk), end)
        if got != wanted[goal.parts]:
            yield goal, state.table.known[got].parts
