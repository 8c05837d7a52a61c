"""Conflicting accesses that nothing orders.

Walking along one run, each cell remembers its last writer and who has read it since.  If every
access comes surely after the last conflicting ones, then all conflicting accesses of the cell are
ordered, and all interleavings give what this run gives.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.order.clocks import order_of
from p2smt.schedules.order.happens_before import packet_pairs, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.happens_before import Edge, Edges


@dataclass(frozen=True, slots=True)
class Race:
    """Two nodes that access a cell in no certain order, at least one of them writing.

    Nodes as in :class:`p2smt.schedules.order.happens_before.Nodes`; equal ones are two positions of
    one step.
    """

    cell: int
    first: int
    second: int


OrderQuestion = tuple[int, int, int]
"""(cell, earlier node, later node): is the earlier surely before the later?"""


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
    asked: list[OrderQuestion] = field(default_factory=list)
    clashes: list[Race] = field(default_factory=list)

    def read(self, cell: int, node: int) -> None:
        state = self.cells[cell]
        if state.writer is not None and state.writer != node:
            self.asked.append((cell, state.writer, node))
        if state.readers[-1:] != [node]:
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
        for chunk in range(len(chunks)):
            cell = scan.index.memory.input_cell(rank, chunk)
            scan.cells[cell].writer = scan.edges.nodes.start(rank)


def _unordered(scan: _Scan) -> Iterator[Race]:
    """The questions that the order answers with no.

    The start of a rank also comes before what only relaxed signals order after it: its input was
    there before the rank began to run.
    """
    nodes, edges = scan.edges.nodes, scan.edges
    starts = nodes.starts
    ranks = ranks_of(scan.index, nodes)
    arrived = {(cell, *pair) for pair, cells in packet_pairs(scan.index).items() for cell in cells}
    others = [q for q in scan.asked if q[1] not in starts and q not in arrived]
    others = _open_locally(others, ranks, edges.visible)
    from_start = [q for q in scan.asked if q[1] in starts and ranks[q[1]] != ranks[q[2]]]
    yield from _open(others, edges.visible, nodes.total)
    yield from _open(from_start, [*edges.visible, *edges.relaxed], nodes.total)


def _open(questions: Sequence[OrderQuestion], edges: Sequence[Edge], total: int) -> list[Race]:
    """The questions that some edges over so many nodes do not answer with yes."""
    answers = order_of(total, edges).before([(a, b) for _, a, b in questions])
    return [Race(*q) for q, sure in zip(questions, answers, strict=True) if not sure]


def _open_locally(
    questions: Sequence[OrderQuestion], ranks: Sequence[int], edges: Sequence[Edge]
) -> list[OrderQuestion]:
    """The questions that the order inside single ranks does not answer with yes.

    Most are about one rank, and so few nodes are cheap to answer about.
    """
    inside: dict[int, list[Edge]] = defaultdict(list)
    asked: dict[int, list[OrderQuestion]] = defaultdict(list)
    for a, b in edges:
        if ranks[a] == ranks[b]:
            inside[ranks[a]].append((a, b))
    for question in questions:
        _, a, b = question
        asked[ranks[a] if ranks[a] == ranks[b] else -1].append(question)
    still = asked.pop(-1, [])
    count: Counter[int] = Counter()
    numbers = []
    for rank in ranks:
        numbers.append(count[rank])
        count[rank] += 1
    for rank, group in asked.items():
        order = order_of(count[rank], [(numbers[a], numbers[b]) for a, b in inside[rank]])
        answers = order.before([(numbers[a], numbers[b]) for _, a, b in group])
        still += [q for q, sure in zip(group, answers, strict=True) if not sure]
    return still
