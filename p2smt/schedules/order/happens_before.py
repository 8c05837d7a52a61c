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

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

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
    if not read:
        return Edges(nodes, visible, relaxed, packets)
    # What comes before a step comes before its reads.
    before, quietly, by_packet = (
        [(a, read.get(b, b)) for a, b in edges] for edges in (visible, relaxed, packets)
    )
    before += [(node, step) for step, node in read.items()]
    return Edges(nodes, before, quietly, by_packet, read)


def _local(index: Index, nodes: Nodes, done: dict[int, int]) -> Iterator[Edge]:
    """Program order, waits, barriers, starts and ends."""
    yield from done.items()
    followed = set[int]()
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


# Which steps surely come before which: vector clocks over chains, for many questions at once.
# The order is cut into chains (each node extends the chain of one predecessor, if it is that
# chain's last).  A node's clock says how far along each chain everything before it reaches; a is
# before b if b's clock for a's chain has reached a.  Clocks are computed only for the chains that
# the questions name, a block of chains at a time, one level of the graph at a time: memory stays
# bounded and the work is linear in edges times chains asked about.


# Entries of the clock table that is in memory at a time (4 bytes each).
_TABLE = 1 << 26


@dataclass(frozen=True, slots=True)
class Order:
    """A partial order given by edges along a linear one.

    levels: nodes by longest path from a root, each with the predecessors of its nodes, flattened,
        and where those of each node begin.
    chain, place: of every node; ``place`` counts from 1.
    """

    levels: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    chain: NDArray[np.int64]
    place: NDArray[np.int64]

    def before(self, pairs: Sequence[Edge]) -> NDArray[np.bool_]:
        """For each pair (a, b) of different nodes: is a before b in every linear extension?"""
        asked = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        first, second = asked[:, 0], asked[:, 1]
        answer = np.zeros(len(asked), dtype=np.bool_)
        same = self.chain[first] == self.chain[second]
        answer[same] = self.place[first[same]] < self.place[second[same]]
        rest = np.flatnonzero(~same)
        for chosen, clock, column in self._clocks(self.chain[first[rest]]):
            some = rest[chosen]
            reached = clock[second[some], column[self.chain[first[some]]]]
            answer[some] = reached >= self.place[first[some]]
        return answer

    def _clocks(
        self, chains: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]]:
        """Clock tables for some of the chains named at a time, and the questions they answer."""
        names = np.unique(chains)
        width = max(1, _TABLE // max(1, len(self.chain)))
        for start in range(0, len(names), width):
            block = names[start : start + width]
            column = np.full(int(self.chain.max()) + 1, -1, dtype=np.int64)
            column[block] = np.arange(len(block))
            yield np.flatnonzero(column[chains] >= 0), self._clock(column, len(block)), column

    def _clock(self, column: NDArray[np.int64], width: int) -> NDArray[np.int32]:
        """The clock of every node, for the chains that have a column."""
        clock = np.zeros((len(self.chain), width), dtype=np.int32)
        own = column[self.chain]
        for nodes, before, begins in self.levels:
            if len(before):
                clock[nodes] = np.maximum.reduceat(clock[before], begins, axis=0)
            mine = nodes[own[nodes] >= 0]
            clock[mine, own[mine]] = self.place[mine]
        return clock


def order_of(total: int, edges: Sequence[Edge]) -> Order:
    """The order that the edges over nodes 0 .. total-1 make.

    Raises:
        ValueError: they have a cycle.
    """
    before: list[list[int]] = [[] for _ in range(total)]
    after: list[list[int]] = [[] for _ in range(total)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    line = linear(before, after)
    chain, place = _chains(line, before)
    return Order(_levels(line, before), chain, place)


def linear(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> list[int]:
    """A linear extension of an order, given as what is next before and next after each node.

    Raises:
        ValueError: the order has a cycle.
    """
    missing = [len(nodes) for nodes in before]
    line = [node for node, count in enumerate(missing) if count == 0]
    for node in line:
        for later in after[node]:
            missing[later] -= 1
            if missing[later] == 0:
                line.append(later)
    if len(line) < len(before):
        raise ValueError(f"{len(before) - len(line)} nodes come before themselves")
    return line


def _chains(
    line: Sequence[int], before: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Greedy chains: a node goes on with a predecessor that nothing has gone on with yet."""
    chain, place = [0] * len(line), [0] * len(line)
    last: list[int] = []
    for node in line:
        tail = next((p for p in before[node] if last[chain[p]] == p), None)
        if tail is None:
            chain[node], place[node] = len(last), 1
            last.append(node)
        else:
            chain[node], place[node] = chain[tail], place[tail] + 1
            last[chain[tail]] = node
    return np.asarray(chain, dtype=np.int64), np.asarray(place, dtype=np.int64)


def _levels(
    line: Sequence[int], before: Sequence[Sequence[int]]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    level = [0] * len(line)
    rows: list[list[int]] = []
    for node in line:
        level[node] = 1 + max((level[p] for p in before[node]), default=-1)
        if level[node] == len(rows):
            rows.append([])
        rows[level[node]].append(node)
    return [_row(nodes, before) for nodes in rows]


def _row(
    nodes: Sequence[int], before: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    flat = [p for node in nodes for p in before[node]]
    counts = [len(before[node]) for node in nodes]
    begins = np.cumsum([0, *counts[:-1]], dtype=np.int64)
    return np.asarray(nodes, dtype=np.int64), np.asarray(flat, dtype=np.int64), begins
