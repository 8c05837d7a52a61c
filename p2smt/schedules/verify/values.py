"""What every chunk holds after a run, as exact multisets of contributions, and what is wrong."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Buffer, Span
from p2smt.schedules.multisets import Multisets, Part
from p2smt.schedules.verify.report import Kind, Violation, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Goal
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


def wrong_values(state: DataState, order: tuple[int, ...] = ()) -> Iterator[Violation]:
    """One violation for every goal that a run does not meet; ``order`` is kept with each."""
    for goal, got in wrong_goals(state):
        kind, what = classify(goal, got, _untouched(state, goal))
        text = f"o[{goal.chunk}] of rank {goal.rank} {what}"
        yield Violation(kind, text, (), goal.rank, goal.chunk, order)


def _untouched(state: DataState, goal: Goal) -> bool:
    """Whether no step of the schedule writes the chunk of a goal."""
    memory = state.index.memory
    cell = memory.output_cell(goal.rank, goal.chunk)
    spans = (span for step in state.index.schedule.steps for span in step.writes)
    return not any(span.rank == goal.rank and cell in memory.cells(span) for span in spans)


def classify(goal: Goal, got: Mapping[Part, int], untouched: bool) -> tuple[Kind, str]:
    """The kind of violation, and in words what the chunk holds instead of its goal."""
    wanted: Counter[Part] = Counter(goal.parts)
    undefined = [part for part in got if isinstance(part, str)]
    extra = {part: n for part, n in got.items() if n > wanted[part] and part not in undefined}
    missing = [part for part in wanted if got.get(part, 0) < wanted[part]]
    if untouched and undefined:
        return Kind.MISSING, f"is never written; it lacks {_names(missing)}"
    if undefined == [str(Span(goal.rank, Buffer.OUTPUT, goal.chunk, 1))]:
        return Kind.UNINITIALISED, "is read before anything was written there"
    if undefined:
        return (
            Kind.UNINITIALISED,
            f"contains {undefined[0]}, read before anything was written there",
        )
    if untouched:
        return Kind.STALE, f"still holds what was there at the start; it lacks {_names(missing)}"
    return _sums(wanted, extra, missing)


def _sums(
    wanted: Mapping[Part, int], extra: Mapping[Part, int], missing: list[Part]
) -> tuple[Kind, str]:
    doubled = [part for part in extra if wanted[part]]
    lacking = f", and lacks {_names(missing)}" if missing else ""
    if doubled:
        return Kind.DOUBLED, f"contains {_names(doubled, extra)}{lacking}"
    if extra:
        return Kind.FOREIGN, f"contains {_names(list(extra))}, which is not part of it{lacking}"
    return Kind.MISSING, f"lacks {_names(missing)}"


def _names(parts: list[Part], counts: Mapping[Part, int] | None = None, most: int = 4) -> str:
    shown = sorted(parts, key=lambda p: p if isinstance(p, Contribution) else (-1, -1))[:most]
    words = [f"{part} {times(counts[part])}" if counts else str(part) for part in shown]
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(words) + more
