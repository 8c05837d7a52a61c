"""Fuses a receive with the later send of exactly what it stored (rcs, rrcs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from p2smt.schedules.construction.operation_order import BuiltStep
    from p2smt.schedules.memory import Memory
    from p2smt.schedules.model import Connection


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
