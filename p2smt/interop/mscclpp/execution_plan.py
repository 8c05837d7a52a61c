"""An MSCCL++ execution plan with its indirections resolved, still in the plan's own chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.interop.mscclpp.checked_json import JsonValue
    from p2smt.schedules.model import Buffer


@dataclass(frozen=True, slots=True)
class Channel:
    """One end of a channel: ``number`` counts those of its kind between the two ranks."""

    kind: str
    rank: int
    peer: int
    number: int

    def out(self) -> str:
        """The counter that this end raises."""
        return channel_counter(self.kind, self.rank, self.peer, self.number)

    def into(self) -> str:
        """The counter that this end waits for."""
        return channel_counter(self.kind, self.peer, self.rank, self.number)


def channel_counter(kind: str, source: int, target: int, number: int) -> str:
    """The counter of a channel in one direction."""
    return f"{kind} channel {source}->{target} #{number}"


def semaphore_counter(rank: int, number: int) -> str:
    """The counter of a semaphore of a rank."""
    return f"semaphore {number} of rank {rank}"


@dataclass(frozen=True, slots=True)
class Operand:
    """Chunks ``index .. index + size - 1`` of a buffer.

    where: "local", "remote", or "switch": the same chunks on every rank of a group.
    """

    where: str
    ranks: tuple[int, ...]
    buffer: Buffer
    index: int
    size: int


@dataclass(frozen=True, slots=True)
class Op:
    """An operation; what its kind does not use is empty.

    part: which part of how many of the data is this block's, in a thread block group.
    unit, chunks, inner: of a pipeline: bytes per iteration, chunks it runs over, operations.
    """

    name: str
    value: JsonValue
    sources: tuple[Operand, ...] = ()
    targets: tuple[Operand, ...] = ()
    kind: str = "none"
    channels: tuple[Channel, ...] = ()
    semaphores: tuple[int, ...] = ()
    barrier: tuple[int, int] | None = None
    part: tuple[int, int] = (0, 1)
    unit: int = 0
    chunks: int = 0
    inner: tuple[Op, ...] = ()
    reduce_op: str = "sum"


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """A thread block.

    nested: its operations as they are run, those of a pipeline inside it.
    operations: all of them in the order of the file, a pipeline before those inside it.
    """

    nested: tuple[Op, ...]
    operations: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A rank: buffer sizes in chunks, initial values of semaphores, thread blocks."""

    rank: int
    sizes: tuple[int, int, int]
    semaphores: tuple[int, ...]
    blocks: tuple[ThreadBlock, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A whole file."""

    value: JsonValue
    name: str
    collective: str
    protocol: str
    in_place: bool
    reuse: bool
    double_scratch: bool
    alignment: int
    gpus: tuple[Gpu, ...]

    def operations(self) -> Iterator[Op]:
        """All operations of all gpus and blocks."""
        return (op for gpu in self.gpus for block in gpu.blocks for op in block.operations)
