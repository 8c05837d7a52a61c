"""Conflicting accesses that nothing orders.

Walking along one run, each cell remembers its last writer and who has read it since.  If every
access comes surely after the last conflicting ones, then all conflicting accesses of the cell are
ordered, and all interleavings give what this run gives.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.order.happens_before import order_of, packet_pairs, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


class OrderQuestion(NamedTuple):
    """Is the earlier access of a cell surely done before the later node?

    overwrites: whether the earlier is a read that the later one overwrites.
    """

    cell: int
    earlier: int
    later: int
    overwrites: bool = False


@dataclass(slots=True)
class AccessScan:
    """Questions collected along a run, but those that an edge or the order of a block answers.

    writers, readers: who wrote a cell last, and who has read it since.
    clashes: positions of one step that access one cell.
    """

    index: Index
    edges: Edges
    writers: dict[int, int] = field(default_factory=dict)
    readers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    asked: list[OrderQuestion] = field(default_factory=list)
    clashes: list[Race] = field(default_factory=list)
    known: frozenset[Edge] = frozenset()

    def __post_init__(self) -> None:
        self.known = frozenset(self.edges.visible)

    def read(self, cell: int, node: int) -> None:
        self.ask(cell, self.writers.get(cell, node), node)
        readers = self.readers[cell]
        if not readers or readers[-1] != node:
            readers.append(node)

    def write(self, cell: int, node: int) -> None:
        self.ask(cell, self.writers.get(cell, node), node)
        for reader in self.readers.pop(cell, ()):
            self.ask(cell, reader, node, overwrites=True)
        self.writers[cell] = node

    def ask(self, cell: int, earlier: int, later: int, *, overwrites: bool = False) -> None:
        if earlier == later or (earlier, later) in self.known or self._in_a_row(earlier, later):
            return
        self.asked.append(OrderQuestion(cell, earlier, later, overwrites))

    def _in_a_row(self, earlier: int, later: int) -> bool:
        """Whether the later is in the same block, which is in order, or the end of the rank."""
        steps, nodes = self.index.schedule.steps, self.edges.nodes
        if not nodes.is_step(earlier):
            return False
        one = steps[earlier]
        if not nodes.is_step(later):  # the end waits for all that does not run beside the rank
            return later == nodes.end(one.rank) and not one.background
        place = (one.rank, one.block)
        other = steps[later]
        ordered = earlier < later and place not in self.index.loose
        return ordered and place == (other.rank, other.block)

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


def scan_run(index: Index, edges: Edges, run: Sequence[int]) -> AccessScan:
    """The questions on whose answers the order of all conflicting accesses rests."""
    scan = AccessScan(index, edges)
    _starts(scan)
    for number in run:
        scan.step(number)
    for goal in index.schedule.contract.goals:
        place = index.memory.output_cell(goal.rank, goal.chunk)
        scan.read(place, edges.nodes.end(goal.rank))
    return scan


def find_races(index: Index, edges: Edges, run: Sequence[int]) -> list[Race]:
    """Races next to each other along a run, at least one for every cell that has any."""
    scan = scan_run(index, edges, run)
    return [*scan.clashes, *_unordered(scan)]


def _starts(scan: AccessScan) -> None:
    """The input is there from the start of its rank on."""
    for rank, chunks in enumerate(scan.index.schedule.contract.starts):
        for chunk in range(len(chunks)):
            cell = scan.index.memory.input_cell(rank, chunk)
            scan.writers[cell] = scan.edges.nodes.start(rank)


def _unordered(scan: AccessScan) -> Iterator[Race]:
    """The questions that the order answers with no.

    The start of a rank also comes before what only relaxed signals order after it: its input was
    there before the rank began to run.
    """
    nodes, edges = scan.edges.nodes, scan.edges
    starts = nodes.starts
    ranks = ranks_of(scan.index, nodes)
    others = [q for q in scan.asked if q.earlier not in starts]
    others = open_locally(others, ranks, edges.visible)
    others = open_questions(others, edges.done, nodes.total, edges.have_read)
    from_start = [
        q for q in scan.asked if q.earlier in starts and ranks[q.earlier] != ranks[q.later]
    ]
    from_start = open_questions(from_start, [*edges.done, *edges.relaxed], nodes.total)
    others = not_arrived(scan.index, others, edges.done, nodes.total)
    yield from (Race(q.cell, q.earlier, q.later) for q in (*others, *from_start))


def open_questions(
    questions: Sequence[OrderQuestion],
    edges: Sequence[Edge],
    total: int,
    have_read: Mapping[int, int] | None = None,
) -> list[OrderQuestion]:
    """The questions that some edges over so many nodes do not answer with yes.

    have_read: nodes of the reads of those that have one.
    """
    reads = have_read or {}
    pairs = [
        (reads.get(q.earlier, q.earlier) if q.overwrites else q.earlier, q.later) for q in questions
    ]
    answers = _sure(pairs, edges, total)
    return [q for q, sure in zip(questions, answers, strict=True) if not sure]


def _sure(pairs: Sequence[Edge], edges: Sequence[Edge], total: int) -> list[bool]:
    """For each pair, whether its first node comes before its second one."""
    return order_of(total, edges).before(pairs).tolist() if pairs else []


def not_arrived(
    index: Index, questions: Sequence[OrderQuestion], edges: Sequence[Edge], total: int
) -> list[OrderQuestion]:
    """The questions but those after packets that have been read: by the later node itself, or by
    one that comes before it, so that it finds what was read there or something newer."""
    readers: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (writer, reader), cells in packet_pairs(index).items():
        for cell in cells:
            readers[cell, writer].append(reader)
    asked = [
        (k, (reader, q.later))
        for k, q in enumerate(questions)
        if not q.overwrites
        for reader in readers.get((q.cell, q.earlier), ())
    ]
    others = [pair for _, pair in asked if pair[0] != pair[1]]
    answers = iter(_sure(others, edges, total))
    arrived = {k for k, (reader, later) in asked if reader == later or next(answers)}
    return [q for k, q in enumerate(questions) if k not in arrived]


def open_locally(
    questions: Sequence[OrderQuestion], ranks: Sequence[int], edges: Sequence[Edge]
) -> list[OrderQuestion]:
    """The questions that the order inside single ranks, each step whole, does not answer with yes.

    Most are about one rank, and so few nodes are cheap to answer about.
    """
    inside: dict[int, list[Edge]] = defaultdict(list)
    asked: dict[int, list[OrderQuestion]] = defaultdict(list)
    for question in questions:
        a, b = ranks[question.earlier], ranks[question.later]
        asked[a if a == b else -1].append(question)
    still = asked.pop(-1, [])
    if not asked:
        return still
    for a, b in edges:
        if ranks[a] == ranks[b]:
            inside[ranks[a]].append((a, b))
    count: Counter[int] = Counter()
    numbers = []
    for rank in ranks:
        numbers.append(count[rank])
        count[rank] += 1
    for rank, group in asked.items():
        order = order_of(count[rank], [(numbers[a], numbers[b]) for a, b in inside[rank]])
        answers = order.before([(numbers[q.earlier], numbers[q.later]) for q in group])
        still += [q for q, sure in zip(group, answers, strict=True) if not sure]
    return still


# Accesses that packets put in order without making one visible to the other.
# The memory rule: *a packet publishes its own words only*.  It is one store, of data and flag; who
# reads the flag has the data.  It is no release, and reading it is no acquire: what its writer
# stored plainly, in an earlier step or in the same one, need not be visible then.  Two things are
# certain beside its words: what they were computed from has been read, and its reader, which has
# waited, goes on later than its writer got so far.  docs/schedules.md has the sources.
#
# So a read or an overwriting of something written must be ordered by visible edges, or see packets
# that were read there.  The overwriting of something read may be ordered by packets too, if they
# were made from what was read.


def find_unpublished(
    index: Index, edges: Edges, run: Sequence[int], races: Sequence[Race]
) -> list[OrderQuestion]:
    """Pairs of accesses along a run that execution orders, but no publication.

    races: those that nothing orders, which are left out.
    """
    if not edges.packets:
        return []
    known = {(race.cell, race.first, race.second) for race in races}
    asked = [
        q
        for q in scan_run(index, edges, run).asked
        if q.earlier not in edges.nodes.starts and (q.cell, q.earlier, q.later) not in known
    ]
    asked = open_locally(asked, ranks_of(index, edges.nodes), edges.visible)
    written = [q for q in asked if not q.overwrites]
    written = open_questions(written, edges.visible, edges.nodes.total)
    read, sources, total = _dependencies(edges)
    overwritten = open_questions([q for q in asked if q.overwrites], read, total, sources)
    return [*not_arrived(index, written, edges.visible, edges.nodes.total), *overwritten]


def _dependencies(edges: Edges) -> tuple[list[Edge], Mapping[int, int], int]:
    """The order of reads: edges, the node of the reads of each packet writer, and how many nodes.

    Beside each node stands its *progress*: the moment in which it has waited for all that it waits
    for.  Progress follows every edge; what a packet was made from comes before its reader's.
    """
    total = edges.nodes.total
    step_of = {node: step for step, node in edges.have_read.items()}
    writers = list(dict.fromkeys(step_of.get(a, a) for a, _ in edges.packets))
    read = {step: 2 * total + k for k, step in enumerate(writers)}

    def found() -> Iterator[Edge]:
        yield from edges.visible
        yield from ((total + node, node) for node in range(total))
        for a, b in (*edges.visible, *edges.relaxed, *edges.packets):
            yield total + a, total + b
        yield from ((read[step_of.get(a, a)], total + b) for a, b in edges.packets)
        yield from ((node, step) for step, node in read.items())

    return list(found()), read, 2 * total + len(writers)
