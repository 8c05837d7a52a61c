"""One rank's steps as point-to-point calls of torch.distributed.

Facts that this rests on (torch 2.13, Gloo): calls may come from several threads; messages between
two ranks with the same tag arrive in the order in which they were sent; ``wait`` releases the
interpreter lock; a send is complete once it was received (not before), so sends that are not
complete are the messages that a connection holds.  ``is_completed`` does not tell before ``wait``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from p2smt.runtime.schedules.rows import RankRows
from p2smt.schedules.model import Connection, Step

_dist: Any = dist  # isend and irecv have no types of their own


@dataclass(slots=True)
class Outgoing:
    """The sending end of a connection: at most ``depth`` messages that were not received yet.

    Each message is copied to a buffer of its own, so that its sender may go on.
    """

    peer: int
    tag: int
    depth: int
    make_buffer: Callable[[], torch.Tensor]
    waiting: deque[tuple[Any, torch.Tensor]] = field(default_factory=deque)
    free: list[torch.Tensor] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def make_room(self) -> None:
        """Wait until there is room for a message."""
        with self.lock:
            if len(self.waiting) >= self.depth:
                self._wait_for_oldest()

    def send(self, value: torch.Tensor) -> None:
        """Put a message on the connection; there should be room."""
        with self.lock:
            buffer = self.free.pop() if self.free else self.make_buffer()
            message = buffer[: len(value)]
            message.copy_(value)
            self.waiting.append((_dist.isend(message, self.peer, tag=self.tag), buffer))

    def drain(self) -> None:
        """Wait until all messages were received."""
        with self.lock:
            while self.waiting:
                self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        work, buffer = self.waiting.popleft()
        work.wait()
        self.free.append(buffer)


@dataclass(frozen=True, slots=True)
class StepMove:
    """A step ready to run: views of the rank's memory, and where its message comes from.

    ``space``: room for the step's value, unless the value can be built in place.
    """

    sources: tuple[torch.Tensor, ...]
    targets: tuple[torch.Tensor, ...]
    space: torch.Tensor
    receive: tuple[int, int] | None
    outgoing: Outgoing | None
    direct: bool

    def run(self) -> None:
        """Carry the step out; it returns once the step is complete."""
        if self.outgoing is not None:
            self.outgoing.make_room()
        value = self._value()
        for target in self.targets:
            if target is not value:
                target.copy_(value)
        if self.outgoing is not None:
            self.outgoing.send(value)

    def _value(self) -> torch.Tensor:
        if self.receive is not None:
            peer, tag = self.receive
            value = self.targets[0] if self.direct else self.space
            _dist.irecv(value, peer, tag=tag).wait()
            rest = self.sources
        elif self.direct:
            return self.sources[0]
        else:
            value, rest = self.space, self.sources[1:]
            if self.sources:
                value.copy_(self.sources[0])
            else:
                value.zero_()
        for source in rest:
            value.add_(source)
        return value


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the steps of a rank share: its memory, and the tags and ends of its connections."""

    rows: RankRows
    memory: torch.Tensor
    tags: Mapping[Connection, int]
    outgoing: Mapping[Connection, Outgoing]

    def move(self, step: Step, space: torch.Tensor) -> StepMove:
        """A step made ready; ``space`` has at least as many rows as the step has chunks."""
        sources = [self.rows.of(span) for span in step.reads]
        targets = [self.rows.of(span) for span in step.writes]
        receive = None
        if step.receive is not None:
            receive = (step.receive.source, self.tags[step.receive])
        return StepMove(
            tuple(self.memory[rows] for rows in sources),
            tuple(self.memory[rows] for rows in targets),
            space[: step.count],
            receive,
            None if step.send is None else self.outgoing[step.send],
            _in_place(step, sources, targets),
        )


def _in_place(step: Step, sources: list[slice], targets: list[slice]) -> bool:
    """Whether a message can be received where it is stored, or a chunk be taken from where it is.

    Not where a sum is built: others may look at the target until it is complete.
    """
    if step.receive is not None:
        return not sources and len(targets) == 1 and step.send is None
    if len(sources) != 1:
        return False
    own = sources[0]
    return all(own.stop <= rows.start or rows.stop <= own.start for rows in targets)


def wire(
    steps: list[Step],
    every: list[Connection],
    memory: tuple[RankRows, torch.Tensor],
    depth: int,
) -> Wiring:
    """The ends of a rank's connections; ``every``: the connections of all ranks, in one order."""
    rows, tensor = memory
    tags = {connection: tag for tag, connection in enumerate(every)}
    largest: dict[Connection, int] = {}
    for step in steps:
        if step.send is not None:
            largest[step.send] = max(step.count, largest.get(step.send, 1))
    outgoing = {
        connection: Outgoing(connection.target, tags[connection], depth, _maker(tensor, count))
        for connection, count in largest.items()
    }
    return Wiring(rows, tensor, tags, outgoing)


def _maker(like: torch.Tensor, count: int) -> Callable[[], torch.Tensor]:
    return lambda: like.new_empty((count, like.shape[1]))
