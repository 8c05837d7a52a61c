"""Runs a schedule on the links of a cluster, event by event; docs/schedule-cost.md has the rules.

Events at the same time are handled in a fixed order, so that a run can be repeated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from p2smt.schedules.cost.sharing import FAIR_WORK, MOST_WORK, Sharing
from p2smt.schedules.cost.tokens import Token, TokenStore
from p2smt.schedules.cost.transfers import parts_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from p2smt.schedules.cost.links import Route, Routes
    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Connection, Step
    from p2smt.schedules.verify.progress import LocalOrder

# Events within this relative distance share links anew together: symmetric schedules stay cheap.
_SAME_TIME = 1e-10


class EventKind(IntEnum):
    """Kinds of events, in the order in which they are handled at the same time."""

    TRANSFERRED = 0
    ARRIVED = 1
    LEAVES = 2
    TRY = 3


@dataclass(slots=True)
class SimulatedRun:
    """A run, by step number.

    started: steps in the order in which they start.
    starts_s, works_s, ends_s: start, end of the own work, end (later only at a barrier).
    after: what each step waited for, the last of which let it start.
    tails_s, alone_s: see :class:`p2smt.schedules.cost.transfers.Parts`.
    """

    index: Index
    local: LocalOrder
    routes: Routes
    chunk_bytes: float
    tokens: TokenStore
    sharing: Sharing
    started: list[int]
    starts_s: list[float]
    works_s: list[float]
    ends_s: list[float]
    after: list[list[Token]]
    tails_s: list[float]
    alone_s: list[float]
    _missing: list[int]
    _pending: list[int]
    _homes: dict[str, int]
    _events: list[tuple[float, int, int, int]] = field(default_factory=list)
    _blocked: defaultdict[Hashable, list[int]] = field(default_factory=lambda: defaultdict(list))
    _met: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    _transfers: list[tuple[int, float]] = field(default_factory=list)
    _complete: int = 0

    @property
    def finished(self) -> bool:
        """Whether every step was done."""
        return self._complete == len(self.starts_s)

    def run(self) -> None:
        """Goes on until nothing more happens."""
        for step, count in enumerate(self._missing):
            if count == 0:
                self._at(0.0, EventKind.TRY, step)
        now = 0.0
        while self._events or self.sharing.changed:
            later = not self._events or self._events[0][0] > now * (1 + _SAME_TIME)
            if later and self.sharing.changed:
                for end in self.sharing.settle(now):
                    self._at(end.time_s, EventKind.TRANSFERRED, end.transfer, end.version)
            else:
                now, *event = heappop(self._events)
                self._handle(now, *event)

    def _at(self, time: float, event: EventKind, number: int, version: int = 0) -> None:
        heappush(self._events, (time, event.value, number, version))

    def _handle(self, now: float, event: int, number: int, version: int) -> None:
        match event:
            case EventKind.TRANSFERRED:
                transfer = self.sharing.transfers.get(number)
                if transfer is not None and transfer.version == version:
                    self.sharing.end(number)
                    self._transferred(now, *self._transfers[number])
            case EventKind.ARRIVED:
                self._part_done(now, number)
            case EventKind.LEAVES:
                step = self.index.schedule.steps[number]
                self._leave(now, number, step, parts_of(step, self.routes).outs)
            case EventKind.TRY:
                self._try(now, number)

    # Starts -------------------------------------------------------------------------------

    def _try(self, now: float, number: int) -> None:
        """Starts a step whose turn it is, or waits for what it lacks."""
        step = self.index.schedule.steps[number]
        keys, cells = _keys(step), self._packets(step)
        lack = self.tokens.lack(keys, cells)
        if lack is not None:
            self._blocked[lack].append(number)
        elif (ready := self.tokens.ready_s(keys, cells)) > now:
            self._at(ready, EventKind.TRY, number)
        else:
            self.after[number] += self.tokens.take(keys, cells)
            self._start(now, number, step)

    def _packets(self, step: Step) -> list[int]:
        spans = [span for span in step.reads if span.packet]
        return [cell for span in spans for cell in self.index.memory.cells(span)]

    def _start(self, now: float, number: int, step: Step) -> None:
        self.started.append(number)
        self.starts_s[number] = now
        if step.receive:
            lag = self._lag(step.rank, step.receive.source)
            self._make(now, _room(step.receive), Token(now + lag, number, lag, from_start=True))
        parts = parts_of(step, self.routes)
        size = self.chunk_bytes * step.count
        self.alone_s[number], self.tails_s[number] = parts.alone_s(size), parts.tail_s
        self._pending[number] = len(parts.reads) + bool(parts.outs)
        for route in parts.reads:
            self._transfer(now, number, route, size, route.latency_s)
        if not self._pending[number]:
            self._work_done(now, number)
        elif not parts.reads:
            self._leave(now, number, step, parts.outs)
        elif parts.outs:
            self._at(now + parts.read_latency_s, EventKind.LEAVES, number)

    def _leave(self, now: float, number: int, step: Step, outs: Sequence[Route]) -> None:
        """What a step writes and sends sets out."""
        self._pending[number] += len(outs) - 1
        for route in outs:
            self._transfer(now, number, route, self.chunk_bytes * step.count, 0.0)

    def _transfer(self, now: float, number: int, route: Route, size: float, lag: float) -> None:
        if size > 0 and route.links:
            self.sharing.begin(len(self._transfers), route, size, now)
            self._transfers.append((number, lag))
        else:
            self._at(now + lag, EventKind.ARRIVED, number)

    # Ends ---------------------------------------------------------------------------------

    def _transferred(self, now: float, number: int, lag: float) -> None:
        if lag:
            self._at(now + lag, EventKind.ARRIVED, number)
        else:
            self._part_done(now, number)

    def _part_done(self, now: float, number: int) -> None:
        self._pending[number] -= 1
        if not self._pending[number]:
            self._work_done(now, number)

    def _work_done(self, now: float, number: int) -> None:
        self.works_s[number] = now
        meeting = self.local.meeting.get(number, (number,))
        self._met[meeting[0]] += 1
        if self._met[meeting[0]] == len(meeting):
            for member in meeting:
                self._end(now, member)

    def _end(self, now: float, number: int) -> None:
        self.ends_s[number] = now
        self._complete += 1
        step = self.index.schedule.steps[number]
        for key, lag in self._made(step):
            self._make(now, key, Token(now + lag, number, lag))
        for span in step.writes:
            if span.packet:
                lag = self._lag(step.rank, span.rank)
                for cell in self.index.memory.cells(span):
                    self.tokens.write(cell, Token(now + lag, number, lag))
                    self._wake(now + lag, cell)
        for later in self.local.after[number]:
            self.after[later].append(Token(now, number))
            self._missing[later] -= 1
            if self._missing[later] == 0:
                self._at(now, EventKind.TRY, later)

    def _made(self, step: Step) -> Iterator[tuple[Hashable, float]]:
        if step.send:
            yield step.send, self._lag(step.rank, step.send.target)
        for counter in step.posts:
            yield counter, self._lag(step.rank, self._homes.get(counter, step.rank))

    def _make(self, now: float, key: Hashable, token: Token) -> None:
        self.tokens.make(key, token)
        self._wake(now, key)

    def _wake(self, time: float, key: Hashable) -> None:
        for step in self._blocked.pop(key, ()):
            self._at(time, EventKind.TRY, step)

    def _lag(self, source: int, target: int) -> float:
        return self.routes.between(source, target).latency_s


def _room(connection: Connection) -> Hashable:
    return connection, "room"


def _keys(step: Step) -> Sequence[Hashable]:
    """What a step takes before it starts."""
    keys: list[Hashable] = [step.receive] if step.receive else []
    if step.send:
        keys.append(_room(step.send))
    return [*keys, *step.awaits] if step.awaits else keys


def run_on(
    index: Index,
    local: LocalOrder,
    routes: Routes,
    chunk_bytes: float,
    fifo_depth: int,
    *,
    fair_work: int = FAIR_WORK,
    most_work: int = MOST_WORK,
) -> SimulatedRun:
    """A run of a schedule whose connections hold ``fifo_depth`` messages.

    Raises:
        TooLarge: sharing the links takes more than ``most_work``.
    """
    total = len(index.schedule.steps)
    initial: dict[Hashable, int] = dict(index.schedule.initial)
    initial.update({_room(connection): fifo_depth for connection in index.sends})
    homes = {name: index.schedule.steps[steps[0]].rank for name, steps in index.awaits.items()}
    zeros = [0.0] * total
    run = SimulatedRun(
        index,
        local,
        routes,
        chunk_bytes,
        TokenStore(initial),
        Sharing(routes.links, fair_work=fair_work, most_work=most_work),
        started=[],
        starts_s=list(zeros),
        works_s=list(zeros),
        ends_s=list(zeros),
        after=[[] for _ in zeros],
        tails_s=list(zeros),
        alone_s=list(zeros),
        _missing=list(local.before),
        _pending=[0] * total,
        _homes=homes,
    )
    run.run()
    return run
