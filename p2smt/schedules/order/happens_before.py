"""What must happen before what: the order of steps that every interleaving has.

Nodes: the steps; the start of each rank, the end of each rank, one node per meeting at a barrier,
and one for the reads of each step that others wait for only so far.  An edge a -> b says that a
is complete before b starts.  All edges order execution.  *Visible* ones also make what was written
before a visible after b; those of relaxed signals and of *packets* do not (see unpublished).

Sources of edges: program order (or ``after``), waits, barriers; the k-th message of a connection;
posts that an await cannot do without; the only packet writer of a cell that is read as a packet:
it has read what it sends, and is complete if the reader waits for all it writes.  With a depth,
also room: the (k - depth)-th receive comes before the k-th send.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Nodes:
    """Numbers of the nodes: steps from 0 on, then the others.

    readers: steps whose reads are a node.
    """

    steps: int
    ranks: int
    meetings: int
    readers: tuple[int, ...] = ()

    def start(self, rank: int) -> int:
        """The start of a rank: its input is there."""
        return self.steps + rank

    @property
    def starts(self) -> range:
        """The starts of all ranks."""
        return range(self.steps, self.steps + self.ranks)

    def end(self, rank: int) -> int:
        """The end of a rank: its output is read."""
        return self.steps + self.ranks + rank

    @property
    def ends(self) -> range:
        """The ends of all ranks."""
        return range(self.steps + self.ranks, self.steps + 2 * self.ranks)

    @property
    def accessing(self) -> range:
        """The nodes that access memory: steps, starts and ends."""
        return range(self.ends.stop)

    def is_step(self, node: int) -> bool:
        """Whether a node is a step."""
        return node < self.steps

    def is_start(self, node: int) -> bool:
        """Whether a node is the start of a rank."""
        return node in self.starts

    def is_end(self, node: int) -> bool:
        """Whether a node is the end of a rank."""
        return node in self.ends

    def rank(self, node: int) -> int:
        """The rank whose start or end a node is."""
        return (node - self.steps) % self.ranks

    def name(self, index: Index, node: int) -> str:
        """A step, or the start or end of a rank, for people."""
        if self.is_step(node):
            return str(index.schedule.steps[node])
        return f"the {'start' if self.is_start(node) else 'end'} of rank {self.rank(node)}"

    def meeting(self, number: int) -> int:
        """A meeting at a barrier."""
        return self.steps + 2 * self.ranks + number

    def reading(self, number: int) -> int:
        """The moment in which a step has read, where others wait for no more than that."""
        return self.steps + 2 * self.ranks + self.meetings + number

    @property
    def total(self) -> int:
        """How many nodes there are."""
        return self.steps + 2 * self.ranks + self.meetings + len(self.readers)


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a schedule; ``relaxed`` ones and ``packets`` order execution only.

    have_read: step -> the node of its reads, where it is not the step itself.
    """

    nodes: Nodes
    visible: Sequence[Edge]
    relaxed: Sequence[Edge]
    packets: Sequence[Edge] = ()
    have_read: Mapping[int, int] = field(default_factory=dict)

    @property
    def done(self) -> list[Edge]:
        """Those along which accesses take place one after the other."""
        return [*self.visible, *self.packets]


def ranks_of(index: Index, nodes: Nodes) -> list[int]:
    """The rank that each node belongs to."""
    steps = index.schedule.steps
    ends = [nodes.rank(node) for node in (*nodes.starts, *nodes.ends)]
    meetings = [steps[meeting[0]].rank for meeting in index.barriers]
    begun = [steps[number].rank for number in nodes.readers]
    return [*(step.rank for step in steps), *ends, *meetings, *begun]


def edges_of(index: Index, depth: int | None = None) -> Edges:
    """All edges; with a depth, also those that full connections cause."""
    steps = index.schedule.steps
    packets, partial = _packets(index)
    readers = tuple(dict.fromkeys(step for step, _ in partial))
    nodes = Nodes(len(steps), index.schedule.ranks, len(index.barriers), readers)
    done = {step: nodes.meeting(k) for k, members in enumerate(index.barriers) for step in members}
    read = {step: nodes.reading(k) for k, step in enumerate(readers)}
    visible = [*_local(index, nodes, done), *_messages(index, depth)]
    relaxed: list[Edge] = []
    for post, wait in _signals(index):
        quiet = steps[post].relaxed or steps[wait].relaxed
        (relaxed if quiet else visible).append((post, wait))
    packets += [(read[step], later) for step, later in partial]
    # What comes before a step comes before its reads.
    before, quietly, by_packet = (
        [(a, read.get(b, b)) for a, b in edges] for edges in (visible, relaxed, packets)
    )
    before += [(node, step) for step, node in read.items()]
    return Edges(nodes, before, quietly, by_packet, read)


def _local(index: Index, nodes: Nodes, done: dict[int, int]) -> Iterator[Edge]:
    """Program order, waits, barriers, starts and ends."""
    yield from done.items()
    followed = set()
    for number, step in enumerate(index.schedule.steps):
        earlier = index.before(number)
        yield from ((done.get(e, e), number) for e in earlier)
        if not earlier:
            yield nodes.start(step.rank), number
        if not step.background:
            followed.update(earlier)
    for number, step in enumerate(index.schedule.steps):
        if number not in followed and not step.background:
            yield done.get(number, number), nodes.end(step.rank)
    for rank in range(nodes.ranks):
        yield nodes.start(rank), nodes.end(rank)


def _messages(index: Index, depth: int | None) -> Iterator[Edge]:
    for connection, sends in index.sends.items():
        receives = index.receives.get(connection, ())
        yield from zip(sends, receives, strict=False)
        if depth is not None:
            yield from zip(receives, sends[depth:], strict=False)


def _signals(index: Index) -> Iterator[Edge]:
    """Posts that must come before an await, whoever else posts first.

    The k-th await of a block needs k values.  If all other posts of the counter together with
    what it held at the start are fewer, this block's first posts make up the rest.
    """
    for counter, awaits in index.awaits.items():
        groups = sequences_of(index, index.posts.get(counter, ()))
        there = index.initial(counter) + sum(map(len, groups))
        for waits in sequences_of(index, awaits):
            for k, wait in enumerate(waits, start=1):
                for posts in groups:
                    needed = k - (there - len(posts))
                    if 1 <= needed <= len(posts):
                        yield posts[needed - 1], wait


def sequences_of(index: Index, numbers: Sequence[int]) -> list[list[int]]:
    """Steps on one counter, grouped into runs that are certainly in order."""
    steps = index.schedule.steps
    runs: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for number in numbers:
        mine = runs[steps[number].rank, steps[number].block]
        fits = next((run for run in mine if index.follows(run[-1], number)), None)
        if fits is not None:
            fits.append(number)
        else:
            mine.append([number])
    return [run for group in runs.values() for run in group]


def packet_pairs(index: Index) -> dict[tuple[int, int], set[int]]:
    """(writer, reader) -> cells that are read as packets and have that one packet writer."""
    steps, cells = index.schedule.steps, index.memory.cells
    writers: dict[int, set[int]] = defaultdict(set)
    for number, step in enumerate(steps):
        for span in step.writes:
            for cell in cells(span) if span.packet else ():
                writers[cell].add(number)
    pairs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, step in enumerate(steps):
        for span in step.reads:
            for cell in cells(span) if span.packet else ():
                if len(writers[cell]) == 1 and number not in writers[cell]:
                    pairs[min(writers[cell]), number].add(cell)
    return pairs


def _packets(index: Index) -> tuple[list[Edge], list[Edge]]:
    """Pairs (writer, reader) in which the reader waits for all that the writer stores, and pairs
    in which it waits for all of one place, so that the writer has read everything."""
    whole: list[Edge] = []
    partial: list[Edge] = []
    for (writer, reader), read in packet_pairs(index).items():
        spans = [set(index.memory.cells(s)) for s in index.schedule.steps[writer].writes]
        if all(cells <= read for cells in spans):
            whole.append((writer, reader))
        elif any(cells <= read for cells in spans):
            partial.append((writer, reader))
    return whole, partial


@dataclass(frozen=True, slots=True)
class OrderedRun:
    """One run of all steps, and the order that it shares with all others.

    steps: in the order in which the run does them.
    sender_of: receiving step -> the step that sends its message.
    """

    steps: Sequence[int]
    sender_of: Mapping[int, int]
    edges: Edges


def ordered_run(index: Index, edges: Edges, steps: Sequence[int]) -> OrderedRun:
    """A run, given as its steps in order, of a schedule with these edges."""
    sender_of = {
        receive: send
        for connection, receives in index.receives.items()
        for send, receive in zip(index.sends[connection], receives, strict=True)
    }
    return OrderedRun(steps, sender_of, edges)
