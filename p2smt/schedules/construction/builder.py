"""Builds a schedule from messages of chunks between ranks, in an order that runs one by one."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import InputError
from p2smt.schedules.construction.fusion import Fusion
from p2smt.schedules.construction.operation_order import BuiltStep, ordered_steps
from p2smt.schedules.memory import memory_of
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.collectives.contract import Contract

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
