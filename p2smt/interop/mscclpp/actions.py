"""What the threads of a block do, operation by operation, as the execution kernel does it.

All threads of a block run its operations in order; one operation is one of these actions, or
several: one for every source and destination pair, or channel.

- Data: every thread handles the elements of its own number (element e is thread e modulo the
  number of threads), for each pair in turn.  Operations of one *lane* cut data into elements of
  the same size, so that the same thread handles the same element of each.
- Single: one thread alone; the i-th channel or semaphore of a list is thread i's.
- Push: one thread hands a transfer or signal to the proxy, and does not wait for it.
- Sync: all threads wait for each other, perhaps also for other blocks.

``path`` is the operation's position in the list of its block, in a pipeline followed by that in the
pipeline's list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from p2smt.interop.mscclpp.execution_plan import PAIRED, letters, semaphore_counter
from p2smt.interop.mscclpp.grid import Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.interop.mscclpp.execution_plan import Channel, Gpu, Op, Operand, ThreadBlock
    from p2smt.interop.mscclpp.grid import Grid
    from p2smt.schedules.model import Span


@dataclass(frozen=True, slots=True)
class Data:
    """All threads move or reduce chunks; ``lane`` names the size of elements."""

    name: str
    line: int
    lane: str
    count: int
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Single:
    """A thread signals, waits, acquires, releases, or waits until a channel is flushed."""

    name: str
    line: int
    thread: int
    posts: tuple[str, ...] = ()
    awaits: tuple[str, ...] = ()
    relaxed: bool = False
    flushes: Channel | None = None
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Push:
    """A thread asks the proxy for a transfer, a signal, or both."""

    name: str
    line: int
    thread: int
    channel: Channel
    count: int = 0
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    posts: tuple[str, ...] = ()
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """A block-wide synchronisation; with a barrier, one of several blocks.

    never: a counter that nothing raises: the barrier's number of blocks cannot be reached.
    """

    name: str
    line: int
    barrier: str | None = None
    never: tuple[str, ...] = ()
    path: tuple[int, ...] = ()


Action: TypeAlias = "Data | Single | Push | Sync"


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one rank's blocks do; ``meeting`` counts the blocks that name each barrier."""

    gpu: Gpu
    grid: Grid
    meeting: Mapping[int, int]

    def block(self, block: ThreadBlock) -> Iterator[Action]:
        """The actions of a block, pipelines unrolled."""
        for place, op in enumerate(block.nested):
            if op.name != "pipeline":
                for action in self._actions(op, None):
                    yield replace(action, path=(place,))
            elif op.inner:
                for inner, action in self._unrolled(op):
                    yield replace(action, path=(place, inner))

    def _unrolled(self, op: Op) -> Iterator[tuple[int, Action]]:
        """The actions of a pipeline, each with its operation's position in it."""
        size = self.grid.iteration(op)
        for k in range(op.chunks * self.grid.per_chunk // size):
            for place, inner in enumerate(op.inner):
                for action in self._actions(inner, Window(k * size, size)):
                    yield place, action

    def _actions(self, op: Op, window: Window | None) -> Iterator[Action]:
        name, line = op.name, op.value.line
        match name:
            case "nop":
                yield Sync(name, line)
            case "barrier":
                yield self._barrier(op)
            case "signal" | "rlxsignal" | "wait" | "rlxwait" | "flush":
                yield from _control(op)
            case "sem_acquire" | "sem_release":
                for thread, number in enumerate(op.semaphores):
                    counter = (semaphore_counter(self.gpu.rank, number),)
                    posts, awaits = (counter, ()) if name == "sem_release" else ((), counter)
                    yield Single(name, line, thread, posts, awaits)
            case _:
                # The kernel gives the offset of an iteration to no operation on packets.
                yield from self._data(op, None if name.endswith("pkt") else window)

    def _barrier(self, op: Op) -> Sync:
        number, blocks = op.barrier or (0, 1)
        if blocks == 1:
            return Sync(op.name, op.value.line)
        never: tuple[str, ...] = ()
        if blocks != self.meeting[number]:
            never = (
                f"barrier {number} of rank {self.gpu.rank} for {blocks} blocks, though "
                f"{self.meeting[number]} name it,",
            )
        return Sync(op.name, op.value.line, f"{number}", never)

    def _data(self, op: Op, window: Window | None) -> Iterator[Action]:
        if op.kind == "port" and op.name in ("put", "pws", "pwsf", "ppkt", "rppkt"):
            yield from self._pushes(op, window)
            return
        if op.kind not in ("none", "memory", "switch"):
            rule = f"{op.name} does not run over {op.kind} channels"
            raise op.value.error(rule, "use memory channels")
        lane = "packet" if op.name.endswith("pkt") else "plain"
        lane = "switch" if op.name == "glres" else lane
        for count, reads, writes in self._pairs(op, window):
            yield Data(op.name, op.value.line, lane, count, reads, writes)

    def _pairs(
        self, op: Op, window: Window | None
    ) -> Iterator[tuple[int, tuple[Span, ...], tuple[Span, ...]]]:
        """Count, sources and destinations of each transfer that has anything to do."""
        views = letters(op)
        sources = list(zip(op.sources, views, strict=False))
        targets = list(zip(op.targets, views[len(sources) :], strict=True))
        groups = [(sources, targets)]
        if op.name in PAIRED:
            _same_length(op)
            groups = [([s], [t]) for s, t in zip(sources, targets, strict=True)]
        for group_sources, group_targets in groups:
            by_target = op.name in ("put", "pws", "pwsf")
            sized = (group_targets if by_target else group_sources)[0][0]
            count = self.grid.handled(op, sized, window)
            if count:
                yield (
                    count,
                    self._spans(op, group_sources, window, count),
                    self._spans(op, group_targets, window, count),
                )

    def _spans(
        self, op: Op, operands: Sequence[tuple[Operand, str]], window: Window | None, count: int
    ) -> tuple[Span, ...]:
        rank = self.gpu.rank
        return tuple(
            span
            for operand, view in operands
            for span in self.grid.spans(rank, op, operand, window, count, view)
        )

    def _pushes(self, op: Op, window: Window | None) -> Iterator[Action]:
        line, found = op.value.line, list(self._pairs(op, window))
        if op.name == "rppkt":
            for count, reads, _ in found:
                yield Data(op.name, line, "packet", count, reads, ())
            yield Sync(op.name, line)
            found = [
                (count, (_as_is(reads[0]),), (write,))
                for count, reads, writes in found
                for write in writes
            ]
        if len(op.channels) < len(found):
            rule = f"{op.name} has {len(op.channels)} channel_ids for {len(found)} transfers"
            raise op.value.error(rule, "give one for each")
        for thread, (channel, (count, reads, writes)) in enumerate(
            zip(op.channels, found, strict=False)
        ):
            if writes[0].rank != channel.peer:
                rule = f"{op.name} writes to rank {writes[0].rank} over a channel to {channel.peer}"
                raise op.value.error(rule, "channel and remote buffer must be of the same rank")
            posts = (channel.out(),) if op.name in ("pws", "pwsf") else ()
            yield Push(op.name, line, thread, channel, count, reads, writes, posts)
        if op.name == "pwsf":
            for thread, channel in enumerate(op.channels[: len(found)]):
                yield Single("flush", line, thread, flushes=channel)


def _control(op: Op) -> Iterator[Action]:
    """Signals, waits and flushes: thread i has channel i."""
    name, line = op.name, op.value.line
    if op.kind not in ("memory", "port") or (name == "flush" and op.kind != "port"):
        rule = f"{name} does not run over {op.kind} channels"
        raise op.value.error(rule, "give channel_type and channel_ids")
    memory = op.kind == "memory"
    relaxed = name.startswith("rlx") and memory
    for thread, channel in enumerate(op.channels):
        if name == "flush":
            yield Single(name, line, thread, flushes=channel)
        elif name.endswith("wait"):
            yield Single(name, line, thread, awaits=(channel.into(),), relaxed=relaxed)
        elif memory:
            yield Single(name, line, thread, posts=(channel.out(),), relaxed=relaxed)
        else:
            yield Push(name, line, thread, channel, posts=(channel.out(),))


def _same_length(op: Op) -> None:
    if len(op.sources) != len(op.targets):
        rule = f"{op.name} has {len(op.sources)} sources and {len(op.targets)} destinations"
        raise op.value.error(rule, "give as many of both")


def _as_is(span: Span) -> Span:
    """Memory that holds packets, moved without waiting for them."""
    return type(span)(span.rank, span.buffer, span.start, span.count)
