"""Builds a schedule from messages of chunks between ranks, in an order that runs one by one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import InputError
from p2smt.schedules.memory_cells import memory_of
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Contract
    from p2smt.schedules.memory_cells import Memory
    from p2smt.schedules.model import Connection, Span


MAX_STEPS = 500_000
MAX_RUN = 64
"""Chunks of a message; MSCCL handles up to 71 in a step."""

Runs = tuple[tuple[int, int], ...]
"""Chunks as ascending, disjoint runs (first chunk, number of chunks)."""


def runs(chunks: Iterable[int]) -> Runs:
    """Distinct chunk numbers as runs, of at most ``MAX_RUN`` chunks."""
    found: list[tuple[int, int]] = []
    for chunk in sorted(chunks):
        if found and sum(found[-1]) == chunk and found[-1][1] < MAX_RUN:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((chunk, 1))
    return tuple(found)


class Message(NamedTuple):
    """A message from chunks of one rank to chunks of another; ``reduce``: added to them."""

    source: Span
    target: Span
    reduce: bool = False
    channel: int = 0


class Builder:
    """Collects steps; used only while a schedule is made.

    The order of the calls gives the meaning; :meth:`schedule` orders steps only as far as data
    and connections need it.  The result cannot deadlock, and unless steps are fused connections
    need to hold no more than one message.

    The *working buffer* is the larger of input and output, the output if they are equal.
    """

    def __init__(
        self, contract: Contract, inputs: int, outputs: int, places: Sequence[int] = ()
    ) -> None:
        """A builder for buffers of so many chunks on every rank.

        places: per rank, where its smaller buffer begins in the working buffer.  With them, out
            of place, the input is copied into a working output before all else, or the output
            out of a working input after it: algorithms need not care.
        """
        self.contract, self.inputs, self.outputs = contract, inputs, outputs
        self.ranks = range(contract.ranks)
        self.working = Buffer.OUTPUT if outputs >= inputs else Buffer.INPUT
        self._places = () if contract.in_place else places
        self._operations: list[BuiltStep] = []
        self._scratch = [0] * contract.ranks
        if self.working is Buffer.OUTPUT:
            for rank, place in enumerate(self._places):
                if any(start is not None for start in contract.starts[rank]):
                    self.copy(Span(rank, Buffer.INPUT, 0, inputs), self.at(rank, place, inputs))

    def at(self, rank: int, start: int, count: int = 1) -> Span:
        """Chunks of a rank's working buffer."""
        return Span(rank, self.working, start, count)

    def transfer(
        self, source: Span, target: Span, *, reduce: bool = False, channel: int = 0
    ) -> None:
        """One message."""
        self.together([Message(source, target, reduce, channel)])

    def together(self, messages: Iterable[Message]) -> None:
        """Messages that are all sent before any is received.

        For connections that hold one message, each connection must carry at most one of them.
        """
        messages = list(messages)
        for message in messages:
            self._add(message.source.rank, "s", (message.source,), (), send=_connection(message))
        for message in messages:
            kept = (message.target,) if message.reduce else ()
            kind = "rrc" if message.reduce else "r"
            self._add(
                message.target.rank, kind, kept, (message.target,), receive=_connection(message)
            )

    def exchange(
        self,
        pairs: Iterable[tuple[int, int, Runs]],
        *,
        reduce: bool = False,
        channel: int = 0,
    ) -> None:
        """Moves (source, target, chunks) to the same chunks of the working buffer, together.

        Every run is one message, the first runs of all pairs before the second ones: what a rank
        receives must not overlap what it sends in another run.
        """
        pairs = list(pairs)
        for turn in zip_longest(*(part for _, _, part in pairs)):
            self.together(
                Message(self.at(source, *run), self.at(target, *run), reduce, channel)
                for (source, target, _), run in zip(pairs, turn, strict=True)
                if run is not None
            )

    def copy(self, source: Span, target: Span, *, reduce: bool = False) -> None:
        """A copy inside a rank, added to the target's chunks with ``reduce``."""
        reads = (target, source) if reduce else (source,)
        self._add(source.rank, "re" if reduce else "cpy", reads, (target,))

    def schedule(self, name: str, *, fused: bool = False) -> Schedule:
        """The schedule; to be called once.

        fused: a receive and the later send of what it stored become one step, where the order
            of messages permits.
        """
        if self.working is Buffer.INPUT:
            for rank, place in enumerate(self._places):
                result = Span(rank, Buffer.OUTPUT, 0, self.outputs)
                self.copy(self.at(rank, place, self.outputs), result)
        sizes = tuple(Sizes(self.inputs, self.outputs, count) for count in self._scratch)
        memory = memory_of(Schedule(name, self.contract, sizes, ()))
        operations, fusion = self._operations, Fusion(memory)
        if fused:
            operations = fusion.fuse(operations)
        steps = ordered_steps(operations, memory, fusion.partners)
        return Schedule(name, self.contract, sizes, steps, form="program")

    def _add(
        self,
        rank: int,
        kind: str,
        reads: tuple[Span, ...],
        writes: tuple[Span, ...],
        *,
        receive: Connection | None = None,
        send: Connection | None = None,
    ) -> None:
        if len(self._operations) == MAX_STEPS:
            raise InputError("the schedule", f"has more than {MAX_STEPS} steps", "take fewer ranks")
        for span in (*reads, *writes):
            if span.buffer is Buffer.SCRATCH:
                self._scratch[rank] = max(self._scratch[rank], span.start + span.count)
        position = len(self._operations)
        self._operations.append(BuiltStep(position, rank, kind, reads, writes, receive, send))


def _connection(message: Message) -> Connection:
    return Connection(message.source.rank, message.target.rank, message.channel)


# Fuses a receive with the later send of exactly what it stored (rcs, rrcs).


class Fusion:
    """Moves sends forward to the receives that they belong to.

    ``partners``: connection -> the connection on which what it brings is sent on.  A block serves
    one connection in each direction, so a connection has one partner for good.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.partners: dict[Connection, Connection] = {}
        self._sources: dict[Connection, Connection] = {}
        self._writer: dict[int, BuiltStep] = {}
        self._last_send: dict[Connection, int] = {}

    def fuse(self, operations: Iterable[BuiltStep]) -> list[BuiltStep]:
        """The operations that are left."""
        return [op for op in operations if not self._taken(op)]

    def _taken(self, op: BuiltStep) -> bool:
        """Whether an operation became part of an earlier one."""
        source = self._source(op) if op.send else None
        if op.send and source and source.receive:
            self.partners[source.receive] = op.send
            self._sources[op.send] = source.receive
            source.send, source.kind = op.send, "rrcs" if source.reads else "rcs"
        elif op.send:
            source = None
        if op.send:
            self._last_send[op.send] = (source or op).position
        for span in op.writes:
            self._writer.update(dict.fromkeys(self.memory.cells(span), op))
        return source is not None

    def _source(self, send: BuiltStep) -> BuiltStep | None:
        """The receive that a send can be fused with: the send must not pass another one."""
        cells = [cell for span in send.reads for cell in self.memory.cells(span)]
        source = self._writer.get(cells[0])
        if source is None or source.receive is None or source.send or send.send is None:
            return None
        same = source.writes == send.reads and all(self._writer.get(c) is source for c in cells)
        first = self._last_send.get(send.send, -1) < source.position
        free = (
            self.partners.get(source.receive, send.send) == send.send
            and self._sources.get(send.send, source.receive) == source.receive
        )
        return source if same and first and free else None


# Turns operations in one global order into the thread blocks of a schedule.
# A builder's operations stand in an order in which they could run one by one.  Every block keeps
# that order, every wait points back in it, and each pair of conflicting accesses is ordered: so the
# schedule cannot deadlock, and in every interleaving it does what the operations do one by one.


@dataclass(eq=False, slots=True)
class BuiltStep:
    """A step under construction; ``position`` is its place in the global order."""

    position: int
    rank: int
    kind: str
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    receive: Connection | None = None
    send: Connection | None = None
    block: int = -1
    index: int = -1
    waits: list[StepRef] = field(default_factory=list)

    def step(self) -> Step:
        """The finished step."""
        return Step(
            rank=self.rank,
            block=self.block,
            index=self.index,
            kind=self.kind,
            count=(self.reads or self.writes)[0].count,
            reads=self.reads,
            writes=self.writes,
            receive=self.receive,
            send=self.send,
            waits=tuple(self.waits),
        )


def ordered_steps(
    operations: Iterable[BuiltStep], memory: Memory, fused: Mapping[Connection, Connection]
) -> tuple[Step, ...]:
    """The steps, by rank and block, with the waits that they need.

    fused: connections some of whose messages are sent on in the step that receives them, and
        the connection that they are sent on.
    """
    by_rank: dict[int, list[BuiltStep]] = defaultdict(list)
    for op in operations:
        by_rank[op.rank].append(op)
    steps = []
    for rank in sorted(by_rank):
        _place(by_rank[rank], fused)
        _Waits(memory, by_rank[rank]).add()
        steps += sorted(by_rank[rank], key=lambda op: (op.block, op.index))
    return tuple(op.step() for op in steps)


def _place(ops: Iterable[BuiltStep], fused: Mapping[Connection, Connection]) -> None:
    """One block for each end of a connection, shared by both ends of fused steps; one for copies.

    Sends and receives in one block would wait for each other without need.
    """
    sources = {after: before for before, after in fused.items()}
    blocks: dict[Connection | None, int] = {}
    sizes: dict[int, int] = defaultdict(int)
    for op in ops:
        end = op.receive if op.send is None else sources.get(op.send, op.send)
        op.block = blocks.setdefault(end, len(blocks))
        op.index = sizes[op.block]
        sizes[op.block] += 1


class _Waits:
    """Lets every operation of a rank wait for the earlier ones with which it conflicts.

    Waits that follow from others inside the rank are left out.
    """

    def __init__(self, memory: Memory, ops: Sequence[BuiltStep]) -> None:
        self.memory, self.ops = memory, ops
        self.writer: dict[int, BuiltStep] = {}
        self.readers: dict[int, list[BuiltStep]] = defaultdict(list)

    def add(self) -> None:
        """Fills in the waits; a clock says per block which step is the last that is complete."""
        blocks = 1 + max(op.block for op in self.ops)
        latest = [[-1] * blocks for _ in range(blocks)]
        clocks: dict[BuiltStep, list[int]] = {}
        for op in self.ops:
            clock = list(latest[op.block])
            conflicts = set(self._conflicts(op))
            for other in sorted(conflicts, key=lambda op: op.position, reverse=True):
                if clock[other.block] < other.index:
                    op.waits.append(StepRef(other.block, other.index))
                    clock = [max(pair) for pair in zip(clock, clocks[other], strict=True)]
            clock[op.block] = op.index
            clocks[op] = latest[op.block] = clock
            self._remember(op)

    def _cells(self, spans: Iterable[Span]) -> Iterator[int]:
        for span in spans:
            yield from self.memory.cells(span)

    def _conflicts(self, op: BuiltStep) -> Iterator[BuiltStep]:
        """Who last wrote what it accesses, and who has since read what it writes."""
        for cell in self._cells((*op.reads, *op.writes)):
            if cell in self.writer:
                yield self.writer[cell]
        for cell in self._cells(op.writes):
            yield from self.readers[cell]

    def _remember(self, op: BuiltStep) -> None:
        for cell in self._cells(op.reads):
            self.readers[cell].append(op)
        for cell in self._cells(op.writes):
            self.writer[cell] = op
            self.readers[cell] = []
