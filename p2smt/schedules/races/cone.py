"""The cone of influence of goals: the reads that they depend on, the writes that each may see.

A read is *settled* if all that it may see is equal: then its value needs no order.  Settled reads
are found by assuming that all are and giving up those that contradict it, which is sound because
in any execution a read sees something that was computed before it.  A read of a packet sees one,
never a place that nothing was written to.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.schedules.memory_cells import memory_of
from p2smt.schedules.multisets import NOTHING, Multisets
from p2smt.schedules.order.happens_before import linear
from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from p2smt.collectives.contract import Goal
    from p2smt.result import StopWatch
    from p2smt.schedules.model import Schedule, Span
    from p2smt.schedules.order.happens_before import Edges, Nodes, OrderedRun


MAX_COMPARED = 10_000_000
"""Pairs of accesses of one cell whose order is looked up."""

_REMEDY = "order more of the accesses, or verify a smaller instance"

VARIES = -1
"""The value of a read that is not settled."""


class SourceValue(NamedTuple):
    """What a read may see: a write and its value; no write: nothing was written."""

    write: OrderItem | None
    value: int


def surely(order: HappensBefore, a: OrderItem, b: OrderItem) -> bool:
    """Whether access a comes before access b in every order."""
    if a.step != b.step:
        return order.ordered(a.step, b.step)
    reads_first = a.kind is ItemKind.READ and b.kind is ItemKind.WRITE
    return reads_first and a.position == b.position


@dataclass(slots=True)
class SourceFinder:
    """Finds what a read may see."""

    flow: Flow
    order: HappensBefore
    compared: int = 0
    _before: dict[int, list[int]] = field(default_factory=dict)

    def of(self, read: int) -> list[SourceValue]:
        """The writes that may be the last before a read, and nothing at all if that may be."""
        read_access, cell, _ = self.flow.reads[read]
        writes = self.flow.writes[cell]
        self.compared += len(writes) * (1 if cell in self._before else 1 + len(writes))
        masks = self._masks(cell, writes)
        sure = [i for i, w in enumerate(writes) if surely(self.order, w.access, read_access)]
        hidden = 0
        for i in sure:
            hidden |= masks[i]
        found = [
            SourceValue(w.access, w.value)
            for i, w in enumerate(writes)
            if not hidden >> i & 1 and not surely(self.order, read_access, w.access)
        ]
        return found if sure else [*found, SourceValue(None, self.flow.table.single(UNDEFINED))]

    def _masks(self, cell: int, writes: Sequence[SharedWrite]) -> list[int]:
        """For each write of a cell, the writes surely before it."""
        if cell not in self._before:
            accesses = [w.access for w in writes]
            self._before[cell] = [
                sum(1 << i for i, other in enumerate(accesses) if surely(self.order, other, access))
                for access in accesses
            ]
        return self._before[cell]


@dataclass(slots=True)
class Cone:
    """The reads that goals depend on, with their sources; values are folded where settled."""

    flow: Flow
    sources: Mapping[int, Sequence[SourceValue]]
    settled: Mapping[int, int]
    _folded: dict[int, int] = field(default_factory=dict)

    def fold(self, value: int) -> int:
        """The value with settled reads replaced by what they see."""
        if value not in self._folded:
            table = self.flow.table
            whole = table.known[value]
            varying = {r: n for r, n in whole.reads.items() if self.varies(r)}
            total = value if varying == whole.reads else table.number(whole.parts, varying)
            for read, times in whole.reads.items():
                if not self.varies(read):
                    total = table.add(total, table.scaled(self.settled[read], times))
            self._folded[value] = total
        return self._folded[value]

    def varies(self, read: int) -> bool:
        """Whether a read is not settled."""
        return self.settled[read] == VARIES

    def reads_under(self, value: int) -> list[int]:
        """The reads that are not settled on which a folded value depends, in order."""
        found = dict.fromkeys(self.flow.table.known[value].reads)
        todo = list(found)
        while todo:
            for source in self.sources[todo.pop()]:
                for read in self.flow.table.known[self.fold(source.value)].reads:
                    if read not in found:
                        found[read] = None
                        todo.append(read)
        return sorted(found)


def cone_of(flow: Flow, order: HappensBefore, values: Iterable[int], watch: StopWatch) -> Cone:
    """The reads under some values.

    Raises:
        OutOfTimeError: the time is up.
        TooLarge: too many accesses of the same cells have to be compared.
    """
    finder, sources = SourceFinder(flow, order), dict[int, list[SourceValue]]()
    todo = [read for value in values for read in flow.table.known[value].reads]
    while todo:
        read = todo.pop()
        if read not in sources:
            if watch.expired():
                raise OutOfTimeError
            sources[read] = finder.of(read)
            if finder.compared > MAX_COMPARED:
                rule = f"are more than {MAX_COMPARED}, all told"
                raise TooLarge("the pairs of accesses in no certain order", rule, _REMEDY)
            for source in sources[read]:
                todo += flow.table.known[source.value].reads
    return Cone(flow, sources, _settled(flow, sources))


def _settled(flow: Flow, sources: Mapping[int, Sequence[SourceValue]]) -> dict[int, int]:
    """The value of every read, or VARIES."""
    state: dict[int, int] = {}
    users: dict[int, set[int]] = defaultdict(set)
    for read, seen in sources.items():
        for source in seen:
            for used in flow.table.known[source.value].reads:
                users[used].add(read)
    todo = list(sources)
    while todo:
        read = todo.pop()
        seen = [s for s in sources[read] if s.write is not None or not flow.reads[read].packet]
        values = {v for s in seen if (v := _value(flow, state, s.value)) is not None}
        now = None if not values else values.pop() if len(values) == 1 else VARIES
        if now is not None and state.get(read) != now and state.get(read) != VARIES:
            state[read] = VARIES if read in state else now
            todo += users[read]
    return {read: state.get(read, VARIES) for read in sources}


def _value(flow: Flow, state: Mapping[int, int], value: int) -> int | None:
    """A value under what is assumed about reads; None: nothing is known yet."""
    whole = flow.table.known[value]
    if not whole.reads:
        return value
    seen = [state.get(read) for read in whole.reads]
    if VARIES in seen:
        return VARIES
    if None in seen:
        return None
    total = flow.table.number(whole.parts, {})
    for read, times in whole.reads.items():
        total = flow.table.add(total, flow.table.scaled(state[read], times))
    return total


def accesses_under(cone: Cone, reads: Iterable[int]) -> Iterator[OrderItem]:
    """The accesses that decide what reads see."""
    for read in reads:
        yield cone.flow.reads[read].access
        yield from (s.write for s in cone.sources[read] if s.write is not None)


# The flow of data: every value as fixed parts plus what reads of shared cells see.
# Only cells that are accessed in no certain order are shared.  All others have, for every read, one
# certain last writer, so that walking along any run settles them; messages and copies pass values
# on, sums add them.


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


# The happens-before graph, and its order of the few nodes that a question is about.


MAX_MASK_BITS = 4_000_000_000
"""Bits that the masks of reachability may have together, one for each key and node."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The happens-before graph of a schedule, as predecessors.

    topological: all nodes in an order that keeps all edges.
    before: predecessors of each node by all edges but relaxed ones; ``relaxed``: by those.
    """

    nodes: Nodes
    topological: Sequence[int]
    before: Sequence[Sequence[int]]
    relaxed: Mapping[int, Sequence[int]]

    def all_before(self, node: int) -> Iterator[int]:
        """Direct predecessors in execution, by any edge."""
        yield from self.before[node]
        yield from self.relaxed.get(node, ())

    def closure(self, nodes: Iterable[int]) -> set[int]:
        """The nodes and all that must have been executed before them."""
        found = set(nodes)
        todo = list(found)
        while todo:
            for earlier in self.all_before(todo.pop()):
                if earlier not in found:
                    found.add(earlier)
                    todo.append(earlier)
        return found

    def size(self, nodes: Iterable[int]) -> int:
        """How many of the nodes are steps."""
        return sum(map(self.nodes.is_step, nodes))


def graph_of(edges: Edges) -> Graph:
    """The graph that edges make."""
    before: list[list[int]] = [[] for _ in range(edges.nodes.total)]
    relaxed: dict[int, list[int]] = defaultdict(list)
    for a, b in edges.done:
        before[b].append(a)
    for a, b in edges.relaxed:
        relaxed[b].append(a)
    return Graph(edges.nodes, _sorted(before, relaxed), before, relaxed)


def _sorted(before: Sequence[Sequence[int]], relaxed: Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes, each after those before it, by ``relaxed`` edges too."""
    every = [(*earlier, *relaxed.get(node, ())) for node, earlier in enumerate(before)]
    after: list[list[int]] = [[] for _ in before]
    for node, earlier in enumerate(every):
        for a in earlier:
            after[a].append(node)
    return linear(every, after)


@dataclass(frozen=True, slots=True)
class HappensBefore:
    """Which of some nodes, the keys, are before which in every order.

    number: the number of each key.
    before: for each key by number, the bit mask of the keys before it.
    """

    number: Mapping[int, int]
    before: Sequence[int]

    def bit(self, key: int) -> int:
        """The mask of a key."""
        return 1 << self.number[key]

    def until(self, key: int) -> int:
        """The mask of a key and of all before it."""
        return self.before[self.number[key]] | self.bit(key)

    def ordered(self, a: int, b: int) -> bool:
        """Whether key a is done before key b starts in every order."""
        return bool(self.before[self.number[b]] >> self.number[a] & 1)


def happens_before(graph: Graph, keys: Iterable[int]) -> HappensBefore:
    """The order among keys.

    The contents that a rank starts with are there before its start: for the start of a rank
    relaxed edges count.

    Raises:
        TooLarge: the masks of so many keys would need more than ``MAX_MASK_BITS``.
    """
    number = {key: k for k, key in enumerate(sorted(set(keys)))}
    total = len(graph.before)
    if len(number) * total > MAX_MASK_BITS:
        raise TooLarge(
            f"the order of {len(number)} among {total} nodes",
            f"it would take more than {MAX_MASK_BITS} bits",
            "order more of the accesses, or verify a smaller instance",
        )
    data, starts = [0] * total, [0] * total
    for node in graph.topological:
        for a in graph.before[node]:
            data[node] |= data[a]
        for a in graph.all_before(node):
            starts[node] |= starts[a]
        # From here on the masks include the node itself.
        if node in number:
            masks = starts if graph.nodes.is_start(node) else data
            masks[node] |= 1 << number[node]
    both = [(data[key] | starts[key]) & ~(1 << k) for key, k in number.items()]
    return HappensBefore(number, both)


def groups_of(
    graph: Graph, keys: Sequence[int]
) -> tuple[list[int], list[int], set[tuple[int, int]]]:
    """Nodes by which keys they must be executed before: groups, as they are executed together.

    Returns the number of steps of each group, the group of each key, and the pairs (a, b) such
    that group b is executed only if group a is.
    """
    needed = [0] * len(graph.before)
    for k, key in enumerate(keys):
        needed[key] = 1 << k
    for node in reversed(graph.topological):
        if needed[node]:
            for a in graph.all_before(node):
                needed[a] |= needed[node]
    group = {mask: g for g, mask in enumerate(dict.fromkeys(m for m in needed if m))}
    weights, closed = [0] * len(group), set[tuple[int, int]]()
    for node, mask in enumerate(needed):
        if mask:
            weights[group[mask]] += graph.nodes.is_step(node)
            for a in graph.all_before(node):
                if needed[a] != mask:
                    closed.add((group[needed[a]], group[mask]))
    return weights, [group[needed[key]] for key in keys], closed
