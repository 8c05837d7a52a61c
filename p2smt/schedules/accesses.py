"""Conflicting accesses that nothing orders.

Walking along one run, each cell remembers its last writer and who has read it since.  If every
access comes surely after the last conflicting ones, then all conflicting accesses of the cell are
ordered, and all interleavings give what this run gives.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.order import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.graph import Edges
    from p2smt.schedules.index import Index


@dataclass(frozen=True, slots=True)
class Race:
    """Two nodes that access a cell in no certain order, at least one of them writing.

    Nodes as in :class:`p2smt.schedules.graph.Nodes`; equal ones are two positions of one step.
    """

    cell: int
    first: int
    second: int


@dataclass(slots=True)
class _Cell:
    """Who wrote a cell last, and who has read it since."""

    writer: int | None = None
    readers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Scan:
    """Questions collected along a run: (cell, earlier node, later node)."""

    index: Index
    edges: Edges
    cells: dict[int, _Cell] = field(default_factory=lambda: defaultdict(_Cell))
    asked: list[tuple[int, int, int]] = field(default_factory=list)
    clashes: list[Race] = field(default_factory=list)

    def read(self, cell: int, node: int) -> None:
        state = self.cells[cell]
        if state.writer is not None and state.writer != node:
            self.asked.append((cell, state.writer, node))
        if node not in state.readers:
            state.readers.append(node)

    def write(self, cell: int, node: int) -> None:
        state = self.cells[cell]
        if state.writer is not None and state.writer != node:
            self.asked.append((cell, state.writer, node))
        self.asked += [(cell, reader, node) for reader in state.readers if reader != node]
        self.cells[cell] = _Cell(node)

    def step(self, number: int) -> None:
        """All accesses of a step: the reads of every position, then the writes."""
        step, memory = self.index.schedule.steps[number], self.index.memory
        reads = [memory.cells(span) for span in step.reads]
        writes = [memory.cells(span) for span in step.writes]
        for cells in reads:
            for cell in cells:
                self.read(cell, number)
        for cells in writes:
            for cell in cells:
                self.write(cell, number)
        if step.count > 1 or len(writes) > 1:
            self.clashes += [Race(cell, number, number) for cell in _clashes(reads, writes)]


def _clashes(reads: Sequence[range], writes: Sequence[range]) -> Iterator[int]:
    """Cells that two positions of one step access, one of them writing."""
    for k, out in enumerate(writes):
        for other in (*reads, *writes[k + 1 :]):
            same_place = out.start == other.start
            if not same_place or any(other is w for w in writes[k + 1 :]):
                yield from range(max(out.start, other.start), min(out.stop, other.stop))


def find_races(index: Index, edges: Edges, run: Sequence[int]) -> list[Race]:
    """Races next to each other along a run, at least one for every cell that has any."""
    scan = _Scan(index, edges)
    _starts(scan)
    for number in run:
        scan.step(number)
    for goal in index.schedule.contract.goals:
        place = index.memory.output_cell(goal.rank, goal.chunk)
        scan.read(place, edges.nodes.end(goal.rank))
    return [*scan.clashes, *_unordered(scan)]


def _starts(scan: _Scan) -> None:
    """The input is there from the start of its rank on."""
    for rank, chunks in enumerate(scan.index.schedule.contract.starts):
        for chunk, contribution in enumerate(chunks):
            if contribution is not None:
                cell = scan.index.memory.input_cell(rank, chunk)
                scan.cells[cell].writer = scan.edges.nodes.start(rank)


def _unordered(scan: _Scan) -> Iterator[Race]:
    """The questions that the order answers with no.

    The start of a rank also comes before what only relaxed signals order after it: its input was
    there before the rank began to run.
    """
    nodes, edges = scan.edges.nodes, scan.edges
    from_start = [q for q in scan.asked if nodes.steps <= q[1] < nodes.steps + nodes.ranks]
    others = [q for q in scan.asked if not nodes.steps <= q[1] < nodes.steps + nodes.ranks]
    from_start = [q for q in from_start if not _own_rank(scan, q[1], q[2])]
    for questions, used in (
        (others, edges.visible),
        (from_start, [*edges.visible, *edges.relaxed]),
    ):
        order = order_of(nodes.total, used) if questions else None
        if order is not None:
            answers = order.before([(a, b) for _, a, b in questions])
            yield from (Race(*q) for q, sure in zip(questions, answers, strict=True) if not sure)


def _own_rank(scan: _Scan, start: int, node: int) -> bool:
    nodes = scan.edges.nodes
    rank = start - nodes.steps
    return node < nodes.steps and scan.index.schedule.steps[node].rank == rank
