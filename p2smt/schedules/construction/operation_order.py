"""Turns operations in one global order into the thread blocks of a schedule.

A builder's operations stand in an order in which they could run one by one.  Every block keeps
that order, every wait points back in it, and each pair of conflicting accesses is ordered: so the
schedule cannot deadlock, and in every interleaving it does what the operations do one by one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.model import Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.schedules.memory import Memory
    from p2smt.schedules.model import Connection, Span


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
