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
from p2smt.schedules.races.flow import UNDEFINED, SharedWrite
from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.result import StopWatch
    from p2smt.schedules.races.flow import Flow
    from p2smt.schedules.races.reach import HappensBefore

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
            parts, reads = table.known[value]
            total = table.number(parts, {r: n for r, n in reads.items() if self.varies(r)})
            for read, times in reads.items():
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
    parts, reads = flow.table.known[value]
    if not reads:
        return value
    seen = [state.get(read) for read in reads]
    if VARIES in seen:
        return VARIES
    if None in seen:
        return None
    total = flow.table.number(parts, {})
    for read, times in reads.items():
        total = flow.table.add(total, flow.table.scaled(state[read], times))
    return total


def accesses_under(cone: Cone, reads: Iterable[int]) -> Iterator[OrderItem]:
    """The accesses that decide what reads see."""
    for read in reads:
        yield cone.flow.reads[read].access
        yield from (s.write for s in cone.sources[read] if s.write is not None)
