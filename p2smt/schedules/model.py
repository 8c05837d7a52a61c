"""A collective schedule: what every thread block of every rank does, chunk by chunk.

A schedule is a flat tuple of :class:`Step` in document order.  Every step has one meaning::

    value := message received (if any)  +  chunks read (added up, chunk by chunk)
    value is stored to every span in ``writes`` and sent as one message (if ``send``)

so that the nine step types of MSCCL XML, the one-sided operations of MSCCL++ and plain copies
are the same thing with different fields filled in.  docs/schedules.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from p2smt.display import Displayed

if TYPE_CHECKING:
    from p2smt.collectives.contract import Contract

DEFAULT_DEPTH = 8


class Buffer(StrEnum):
    """The buffers of a rank; in place, input and output share memory (Contract.shift)."""

    INPUT = "i"
    OUTPUT = "o"
    SCRATCH = "s"


BUFFERS = "".join(Buffer)
"""Their letters, in which a buffer is found faster than in a tuple of them."""


@dataclass(frozen=True, slots=True)
class Span:
    """``count`` chunks of a buffer of a rank from chunk ``start`` on.

    ``packet``: accessed by a protocol that carries a flag with every word: a read waits until a
    packet has been written there, and needs no other synchronisation with its writer.
    """

    rank: int
    buffer: Buffer
    start: int
    count: int
    packet: bool = False

    def __str__(self) -> str:
        last = self.start + self.count - 1
        chunks = f"{self.start}" if self.count == 1 else f"{self.start}..{last}"
        return f"{self.buffer.value}[{chunks}] of rank {self.rank}"


class Connection(NamedTuple):
    """A first-in first-out channel of messages from one rank to another."""

    source: int
    target: int
    channel: int

    def __str__(self) -> str:
        return f"{self.source}->{self.target} channel {self.channel}"


@dataclass(frozen=True, slots=True)
class StepRef:
    """A step by its thread block and its position there (same rank as who refers to it)."""

    block: int
    index: int


class FilePlace(NamedTuple):
    """Where a file has what a step was made from.

    path: its position in the list of its block; inside what runs a list of its own, that list's
        position and the position there.
    """

    block: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a thread block; the module's docstring says what it does to data.

    rank, block, index: whose step it is; steps of a block are numbered 0, 1, .. in order.
    kind: the name it has in its format ("rrcs", "put"), for people.
    count: chunks handled; every span in ``reads`` and ``writes`` has as many.
    reads, writes: sources that are added up; destinations.  Chunk j of a destination is the sum
        of chunk j of the sources (and of the message).  Any rank's buffers may be named.
    receive, send: the connection a message of ``count`` chunks is taken from, or put on.  A step
        that does both waits until the message is there *and* there is room for the next one.  A
        message takes up room until the step that receives it is complete.
    waits: steps of the same rank that must be complete before this one starts.
    unannounced: those of ``waits`` that are never announced: it never starts.
    after: None: starts after the step before it in its block (program order).  Otherwise
        exactly these steps of the same rank come before it; empty: from the start of the rank.
    posts, awaits: counting semaphores that it raises by one when complete, and takes one from
        before it starts (a signal and its wait; release and acquire).
    relaxed: posts and awaits order control only: they do not publish what was written before.
    barrier: complete only when every step of its rank with the same barrier name and the same
        occurrence in its block has been reached.  All blocks that name a barrier must reach it
        equally often, and such a step may wait for other things, but does nothing else.
    background: runs beside its block, as a proxy's transfer does: the rank's end does not wait
        for it.
    lane: steps of a block with the same lane handle chunk k by the same threads: one that directly
        follows another comes after it chunk by chunk, and not as a whole (None: as a whole).
    line: line in the file it was read from.  place: where the file has it, if not at its block
        and index: a reader may make several steps of one operation, or blocks of its own.
    """

    rank: int
    block: int
    index: int
    kind: str
    count: int = 0
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    receive: Connection | None = None
    send: Connection | None = None
    waits: tuple[StepRef, ...] = ()
    unannounced: tuple[StepRef, ...] = ()
    after: tuple[StepRef, ...] | None = None
    posts: tuple[str, ...] = ()
    awaits: tuple[str, ...] = ()
    relaxed: bool = False
    barrier: str | None = None
    background: bool = False
    lane: str | None = None
    line: int | None = None
    place: FilePlace | None = None

    @property
    def in_file(self) -> FilePlace:
        """Where its file has it."""
        return self.place or FilePlace(self.block, (self.index,))

    @property
    def where(self) -> str:
        """Its place in the file, without the rank: ``block 1 step 3``, ``block 1 step 3.0``."""
        block, path = self.in_file
        return f"block {block} step {'.'.join(map(str, path))}"

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line is not None else ""
        return f"rank {self.rank} {self.where} {self.kind}{line}"


class Sizes(NamedTuple):
    """Chunks in each buffer of a rank."""

    input: int
    output: int
    scratch: int

    def of(self, buffer: Buffer) -> int:
        """Chunks of one buffer."""
        return self[BUFFERS.index(buffer)]


@dataclass(frozen=True, slots=True, repr=False)
class Schedule(Displayed):
    """A schedule of one collective.

    contract: what it is given and what it must produce; also says whether it runs in place.
    sizes: buffer sizes by rank, in chunks.
    steps: in document order; the steps of one block are consecutive indices 0, 1, ..
    initial: counting semaphores that do not start at 0.
    form: the format of the file that it was read from ("msccl-xml", "mscclpp-json", "yaml", or
        "program"); a YAML file names there what it was converted from.
    warnings: what a reader noticed that is not about correctness.
    refused: why the runtime of its format would not run the file that it was read from.
    payloads: the least and the most bytes that it is meant for, which files of runtimes say when
        they are written, and readers leave out; None: any.
    """

    name: str
    contract: Contract
    sizes: tuple[Sizes, ...]
    steps: tuple[Step, ...]
    form: str = "yaml"
    protocol: str = "Simple"
    initial: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    payloads: tuple[int, int] | None = None

    def summary(self) -> str:
        """Its name, collective and size."""
        size = f"{self.ranks} ranks, {len(self.steps)} steps"
        return f"{self.name!r}: {self.contract.collective}, {size}"

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return len(self.sizes)

    @property
    def in_place(self) -> bool:
        """Whether output and input share memory."""
        return self.contract.in_place


@dataclass(frozen=True, slots=True)
class Runnable:
    """Whether a runtime would run a schedule: it has no ``reasons`` not to.  Not about meaning.

    runtime, title: its name for options, and for people.  None: p2smt alone runs schedules of
        that format, and all of them.
    rewritten: whether it would have to be written in the runtime's format first.
    """

    runtime: str | None = None
    title: str = "p2smt"
    reasons: tuple[str, ...] = ()
    rewritten: bool = False

    def __bool__(self) -> bool:
        return not self.reasons
