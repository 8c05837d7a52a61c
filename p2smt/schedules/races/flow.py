"""Where data comes from: every value as fixed parts plus what reads of shared cells see.

Only cells that are accessed in no certain order are shared.  All others have, for every read, one
certain last writer, so that walking along any run settles them; messages and copies pass values
on, sums add them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.collectives.contract import Contribution
from p2smt.schedules.memory import memory_of
from p2smt.schedules.races.replay import OrderItem, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.model import Schedule, Span

Part = Contribution | str
UNDEFINED = "undefined"
"""The part that is in memory that nothing has written."""


class Value(NamedTuple):
    """A multiset: fixed parts, and how often the values of which reads."""

    parts: frozenset[tuple[Part, int]]
    reads: frozenset[tuple[int, int]]


@dataclass(slots=True)
class Table:
    """Values by number; equal ones have one number.  Number 0 is nothing."""

    values: list[Value] = field(default_factory=list)
    _numbers: dict[Value, int] = field(default_factory=dict)
    _sums: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number({}, {})

    def number(self, parts: Mapping[Part, int], reads: Mapping[int, int]) -> int:
        """The number of a value."""
        value = Value(frozenset(parts.items()), frozenset(reads.items()))
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]

    def add(self, a: int, b: int) -> int:
        """The number of a sum."""
        if not a or not b:
            return a or b
        key = (a, b) if a < b else (b, a)
        if key not in self._sums:
            x, y = self.values[a], self.values[b]
            parts, reads = Counter(dict(x.parts)), Counter(dict(x.reads))
            parts.update(dict(y.parts))
            reads.update(dict(y.reads))
            self._sums[key] = self.number(parts, reads)
        return self._sums[key]

    def scaled(self, a: int, times: int) -> int:
        """The number of a value taken several times."""
        parts, reads = self.values[a]
        return self.number({p: n * times for p, n in parts}, {r: n * times for r, n in reads})

    def single(self, part: Part) -> int:
        """The number of one part, once."""
        return self.number({part: 1}, {})


class Write(NamedTuple):
    """A write of a shared cell and the number of what it leaves."""

    event: OrderItem
    value: int
    packet: bool


class ReadOf(NamedTuple):
    """A read of a shared cell."""

    event: OrderItem
    cell: int


class GoalOf(NamedTuple):
    """A goal, the number of what its chunk holds, and how it is read.

    read: its read of a shared cell; otherwise ``writer``, the node that certainly wrote it last.
    """

    goal: Goal
    value: int
    read: int | None
    writer: int | None


@dataclass(slots=True)
class Flow:
    """All accesses of shared cells, with values."""

    table: Table = field(default_factory=Table)
    reads: list[ReadOf] = field(default_factory=list)
    writes: dict[int, list[Write]] = field(default_factory=lambda: defaultdict(list))
    goals: list[GoalOf] = field(default_factory=list)


@dataclass(slots=True)
class _Walk:
    """The state of a walk along a run."""

    schedule: Schedule
    shared: Set[int]
    flow: Flow = field(default_factory=Flow)
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)  # value, writer
    sent: dict[int, list[int]] = field(default_factory=dict)

    def read(self, event: OrderItem, cell: int) -> int:
        """What a read sees."""
        if cell in self.shared:
            self.flow.reads.append(ReadOf(event, cell))
            return self.flow.table.number({}, {len(self.flow.reads) - 1: 1})
        if cell not in self.cells:
            return self.flow.table.single(UNDEFINED)
        return self.cells[cell][0]

    def write(self, event: OrderItem, cell: int, value: int, packet: bool = False) -> None:
        """A write leaves a value."""
        if cell in self.shared:
            self.flow.writes[cell].append(Write(event, value, packet))
        else:
            self.cells[cell] = value, event.step


def flow_of(
    schedule: Schedule, run: Sequence[int], sender_of: Mapping[int, int], shared: Set[int]
) -> Flow:
    """Walks along a run of all steps.

    Args:
        sender_of: receiving step -> the step that sends its message.
        shared: the cells that are accessed in no certain order.
    """
    walk, memory = _Walk(schedule, shared), memory_of(schedule)
    n, ranks = len(schedule.steps), schedule.ranks
    for rank, chunks in enumerate(schedule.contract.starts):
        for chunk, given in enumerate(chunks):
            event, cell = OrderItem(n + rank, Phase.WRITE, chunk), memory.input_cell(rank, chunk)
            part = memory.name(cell) if given is None else given
            walk.write(event, cell, walk.flow.table.single(part))
    spans = {span for step in schedule.steps for span in (*step.reads, *step.writes)}
    cells = {span: memory.cells(span) for span in spans}
    for number in run:
        _step(walk, cells, number, sender_of.get(number))
    for goal in schedule.contract.goals:
        event = OrderItem(n + ranks + goal.rank, Phase.READ, goal.chunk)
        cell, reads = memory.output_cell(goal.rank, goal.chunk), len(walk.flow.reads)
        value = walk.read(event, cell)
        read = reads if cell in shared else None
        walk.flow.goals.append(GoalOf(goal, value, read, walk.cells.get(cell, (0, None))[1]))
    return walk.flow


def _step(walk: _Walk, cells: Mapping[Span, range], number: int, sender: int | None) -> None:
    """All accesses of a step."""
    step, table = walk.schedule.steps[number], walk.flow.table
    value = [0] * step.count if sender is None else list(walk.sent[sender])
    for k, span in enumerate(step.reads):
        for j, cell in enumerate(cells[span]):
            seen = walk.read(OrderItem(number, Phase.READ, j, k), cell)
            value[j] = table.add(value[j], seen)
    for k, span in enumerate(step.writes):
        for j, cell in enumerate(cells[span]):
            walk.write(OrderItem(number, Phase.WRITE, j, k), cell, value[j], span.packet)
    if step.send:
        walk.sent[number] = value
