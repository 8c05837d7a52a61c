"""The flow of data: every value as fixed parts plus what reads of shared cells see.

Only cells that are accessed in no certain order are shared.  All others have, for every read, one
certain last writer, so that walking along any run settles them; messages and copies pass values
on, sums add them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.memory import memory_of
from p2smt.schedules.multisets import NOTHING, Multisets
from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.model import Schedule, Span
    from p2smt.schedules.order.happens_before import OrderedRun

UNDEFINED = "undefined"
"""The part that is in memory that nothing has written."""


class SharedWrite(NamedTuple):
    """A write of a shared cell and the number of what it leaves."""

    access: OrderItem
    value: int


class SharedRead(NamedTuple):
    """A read of a shared cell; ``packet``: it waits for a packet there."""

    access: OrderItem
    cell: int
    packet: bool = False


class GoalValue(NamedTuple):
    """A goal, the number of what its chunk holds, and how it is read.

    read: its read of a shared cell; otherwise ``writer``, the node that certainly wrote it last.
    """

    goal: Goal
    value: int
    read: int | None
    writer: int | None


@dataclass(slots=True)
class Flow:
    """All accesses of shared cells, the writes by cell, with values by number."""

    table: Multisets = field(default_factory=Multisets)
    reads: list[SharedRead] = field(default_factory=list)
    writes: dict[int, list[SharedWrite]] = field(default_factory=lambda: defaultdict(list))
    goals: list[GoalValue] = field(default_factory=list)


@dataclass(slots=True)
class _Walk:
    """The state of a walk along a run."""

    schedule: Schedule
    shared: Set[int]
    flow: Flow = field(default_factory=Flow)
    cells: dict[int, tuple[int, int]] = field(default_factory=dict)  # value, writer
    sent: dict[int, list[int]] = field(default_factory=dict)

    def read(self, access: OrderItem, cell: int, *, packet: bool = False) -> int:
        """What a read sees."""
        if cell in self.shared:
            self.flow.reads.append(SharedRead(access, cell, packet))
            return self.flow.table.seen_by(len(self.flow.reads) - 1)
        if cell not in self.cells:
            return self.flow.table.single(UNDEFINED)
        return self.cells[cell][0]

    def write(self, access: OrderItem, cell: int, value: int) -> None:
        """A write leaves a value."""
        if cell in self.shared:
            self.flow.writes[cell].append(SharedWrite(access, value))
        else:
            self.cells[cell] = value, access.step


def flow_of(schedule: Schedule, run: OrderedRun, shared: Set[int]) -> Flow:
    """Walks along a run of all steps.

    Args:
        shared: the cells that are accessed in no certain order.
    """
    walk, memory, nodes = _Walk(schedule, shared), memory_of(schedule), run.edges.nodes
    for rank, chunks in enumerate(schedule.contract.starts):
        for chunk, given in enumerate(chunks):
            cell = memory.input_cell(rank, chunk)
            part = memory.name(cell) if given is None else given
            access = OrderItem(nodes.start(rank), ItemKind.WRITE, chunk)
            walk.write(access, cell, walk.flow.table.single(part))
    spans = {span for step in schedule.steps for span in (*step.reads, *step.writes)}
    cells = {span: memory.cells(span) for span in spans}
    for number in run.steps:
        _step(walk, cells, number, run.sender_of.get(number))
    for goal in schedule.contract.goals:
        access = OrderItem(nodes.end(goal.rank), ItemKind.READ, goal.chunk)
        cell, reads = memory.output_cell(goal.rank, goal.chunk), len(walk.flow.reads)
        value = walk.read(access, cell)
        read = reads if cell in shared else None
        writer = walk.cells.get(cell, (NOTHING, None))[1]
        walk.flow.goals.append(GoalValue(goal, value, read, writer))
    return walk.flow


def _step(walk: _Walk, cells: Mapping[Span, range], number: int, sender: int | None) -> None:
    """All accesses of a step."""
    step, table = walk.schedule.steps[number], walk.flow.table
    value = [NOTHING] * step.count if sender is None else list(walk.sent[sender])
    for k, span in enumerate(step.reads):
        for j, cell in enumerate(cells[span]):
            access = OrderItem(number, ItemKind.READ, j, k)
            seen = walk.read(access, cell, packet=span.packet)
            value[j] = table.add(value[j], seen)
    for k, span in enumerate(step.writes):
        for j, cell in enumerate(cells[span]):
            walk.write(OrderItem(number, ItemKind.WRITE, j, k), cell, value[j])
    if step.send:
        walk.sent[number] = value
