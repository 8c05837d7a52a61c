"""Runs a schedule on the links of a cluster, event by event; docs/schedule-cost.md has the rules.

Events at the same time are handled in a fixed order, so that a run can be repeated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import TooLarge
from p2smt.schedules.cost.links import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from p2smt.schedules.cost.links import DirectedLink, Route, Routes
    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Connection, Step
    from p2smt.schedules.verify.deadlock import LocalOrder


# Transfers that share links, as fluids: every full link serves its transfers fairly.
# Rates are max-min fair: no transfer can go faster without slowing one that is not faster than it
# (Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2: progressive filling).  Where
# transfers begin or end, only those that are joined to them by shared links are shared out anew.
# Thousands at once that all end at different times take work that grows with their square; after a
# fixed amount of it, each link gives all its transfers equal parts, whether they can use them or
# not, which is quicker to keep up and never faster for the whole.


# Relative changes of a rate below this are rounding.
_ROUNDING = 1e-12
# Steps of work (a transfer on a link) for fair rates, and in all: about 10 and 60 seconds.
FAIR_WORK, MOST_WORK = 8_000_000, 40_000_000


@dataclass(slots=True)
class Transfer:
    """A transfer under way: ``left`` bytes at time ``since``, going at ``rate`` bytes/s.

    version: how often the rate has been changed; an end foretold before is void.
    """

    route: Route
    left: float
    since: float
    rate: float = 0.0
    version: int = 0

    def end_s(self) -> float:
        """When it ends, at this rate."""
        return self.since + self.left / self.rate


class Overridden(NamedTuple):
    """The end of a transfer, if its version is still this one."""

    time_s: float
    transfer: int
    version: int


@dataclass(slots=True)
class Sharing:
    """All transfers under way, by number; one may stand for several (``Route.times``).

    loads: bytes that each link (by number) has to carry in all.
    fair_work, most_work: how much to do for fair rates, and in all.
    rough: the former was not enough.
    """

    links: Sequence[DirectedLink]
    transfers: dict[int, Transfer] = field(default_factory=dict)
    loads: dict[int, float] = field(default_factory=dict)
    changed: dict[int, None] = field(default_factory=dict)
    fair_work: int = FAIR_WORK
    most_work: int = MOST_WORK
    rough: bool = False
    work: int = 0
    _on: dict[int, dict[int, int]] = field(default_factory=dict)
    _many: dict[int, int] = field(default_factory=dict)

    def begin(self, number: int, route: Route, size: float, now: float) -> None:
        """A transfer of ``size`` > 0 bytes begins; it moves once :meth:`settle` is called."""
        self.transfers[number] = Transfer(route, size, now)
        for link, times in zip(route.links, route.times or repeat(1), strict=False):
            self.loads[link] = self.loads.get(link, 0.0) + size * times
            self._on.setdefault(link, {})[number] = times
            self._many[link] = self._many.get(link, 0) + times
            self.changed[link] = None

    def end(self, number: int) -> None:
        """A transfer is over."""
        for link in self.transfers.pop(number).route.links:
            self._many[link] -= self._on[link].pop(number)
            if self._on[link]:
                self.changed[link] = None

    def settle(self, now: float) -> Iterator[Overridden]:
        """Shares out anew what has changed, and foretells the ends of what goes at a new rate."""
        if not self.rough and self.work > self.fair_work:
            self.rough = True
            self.changed.update((link, None) for link, numbers in self._on.items() if numbers)
        if self.work > self.most_work:
            raise TooLarge(
                f"{len(self.transfers)} transfers that share links at a time",
                "are too many to predict their times",
                "choose fewer chunks or ranks",
            )
        yield from self._rough(now) if self.rough else self._fairly(now)
        self.changed.clear()

    def _rough(self, now: float) -> Iterator[Overridden]:
        """Equal parts of each link for all who use it."""
        numbers = dict.fromkeys(n for link in self.changed for n in self._on[link])
        for number in numbers:
            links = self.transfers[number].route.links
            self.work += len(links)
            part = min(self.links[k].bandwidth_bytes_per_s / self._many[k] for k in links)
            yield from self._set(number, part, now)

    def _fairly(self, now: float) -> Iterator[Overridden]:
        seen: set[int] = set()
        for link in self.changed:
            if link not in seen and self._on[link]:
                for number, rate in self._share(self._joined(link, seen)).items():
                    yield from self._set(number, rate, now)

    def _set(self, number: int, rate: float, now: float) -> Iterator[Overridden]:
        transfer = self.transfers[number]
        if abs(rate - transfer.rate) > _ROUNDING * transfer.rate:
            transfer.left -= min(transfer.left, transfer.rate * (now - transfer.since))
            transfer.since, transfer.rate = now, rate
            transfer.version += 1
            yield Overridden(transfer.end_s(), number, transfer.version)

    def _joined(self, first: int, seen: set[int]) -> list[int]:
        """The links that shared transfers join to one, directly or not; adds them to seen."""
        seen.add(first)
        found, known = [first], set[int]()
        for link in found:
            for number in self._on[link]:
                if number not in known:
                    known.add(number)
                    new = [k for k in self.transfers[number].route.links if k not in seen]
                    seen.update(new)
                    found += new
        return found

    def _share(self, links: Sequence[int]) -> dict[int, float]:
        numbers = self._on[links[0]]
        if len(numbers) == 1 and all(len(self._on[link]) == 1 for link in links):
            (alone,) = numbers
            return {alone: self.transfers[alone].route.bandwidth_bytes_per_s}
        return self._fair(links)

    def _fair(self, links: Sequence[int]) -> dict[int, float]:
        """Fills the links: the one with the least to give to each fixes its transfers first."""
        free = {link: self.links[link].bandwidth_bytes_per_s for link in links}
        open_ = {link: self._many[link] for link in links}
        queue = [(free[link] / open_[link], link) for link in links]
        heapify(queue)
        rates: dict[int, float] = {}
        while queue:
            share, link = heappop(queue)
            if not open_[link] or share < free[link] / open_[link]:
                continue  # the share has grown since
            touched: dict[int, None] = {}
            for number in self._on[link]:
                if number not in rates:
                    rates[number] = share
                    self.work += len(self.transfers[number].route.links)
                    for other in self.transfers[number].route.links:
                        times = self._on[other][number]
                        free[other] -= share * times
                        open_[other] -= times
                        touched[other] = None
            for other in touched:
                if open_[other]:
                    heappush(queue, (max(share, free[other] / open_[other]), other))
        return rates


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
    tails_s, alone_s: see :class:`p2smt.schedules.cost.event_run.Parts`.
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


# What steps wait for, and since when it is there: messages, room, counters, packets.


class Token(NamedTuple):
    """Something that is there at ``time_s``: ``lag_s`` after a step's end, or after its start."""

    time_s: float
    step: int
    lag_s: float = 0.0
    from_start: bool = False


@dataclass(slots=True)
class TokenStore:
    """What has been made so far, earliest first; initial tokens come before all others.

    initial: tokens that are there from the start, by kind.
    first: packets stay when they are read: the first one written to each cell.
    """

    initial: dict[Hashable, int]
    made: defaultdict[Hashable, list[Token]] = field(default_factory=lambda: defaultdict(list))
    first: dict[int, Token] = field(default_factory=dict)

    def lack(self, keys: Sequence[Hashable], cells: Sequence[int]) -> Hashable | None:
        """The first of these that is not there, nor on its way."""
        for key, many in Counter(keys).items():
            if len(self.made[key]) + self.initial.get(key, 0) < many:
                return key
        return next((cell for cell in cells if cell not in self.first), None)

    def take(self, keys: Sequence[Hashable], cells: Sequence[int]) -> list[Token]:
        """Takes one of each, and looks at the packets; nothing may lack."""
        taken = [self.first[cell] for cell in cells]
        for key in keys:
            if self.initial.get(key, 0):
                self.initial[key] -= 1
            else:
                taken.append(heappop(self.made[key]))
        return taken

    def ready_s(self, keys: Sequence[Hashable], cells: Sequence[int]) -> float:
        """When all of these are there; nothing may lack."""
        times = [self.first[cell].time_s for cell in cells]
        for key, many in Counter(keys).items():
            missing = many - self.initial.get(key, 0)
            if missing > 0:
                made = self.made[key]
                times.append(made[0].time_s if missing == 1 else sorted(made)[missing - 1].time_s)
        return max(times, default=0.0)

    def make(self, key: Hashable, token: Token) -> None:
        """Adds one."""
        heappush(self.made[key], token)

    def write(self, cell: int, token: Token) -> None:
        """A packet is written to a cell."""
        if cell not in self.first or token.time_s < self.first[cell].time_s:
            self.first[cell] = token


# The transfers of one step between devices.


IN_SWITCH = ("glres", "gstore", "gstorepkt")
"""Steps whose reads are added up, or whose writes are multicast, by the switch."""


class Parts(NamedTuple):
    """The transfers of a step: what it reads from other devices, what it writes and sends."""

    reads: tuple[Route, ...]
    outs: tuple[Route, ...]

    @property
    def read_latency_s(self) -> float:
        """When the first of what it reads is there, and can go on."""
        return max((route.latency_s for route in self.reads), default=0.0)

    @property
    def tail_s(self) -> float:
        """From the end of the step to when all that it writes and sends has arrived."""
        return max((route.latency_s for route in self.outs), default=0.0)

    def alone_s(self, size: float) -> float:
        """Seconds that the step takes with all links to itself."""
        if not self.reads:
            return max([size / route.bandwidth_bytes_per_s for route in self.outs], default=0.0)
        first = self.read_latency_s
        reads = [r.latency_s + size / r.bandwidth_bytes_per_s for r in self.reads]
        return max([*reads, *(first + size / r.bandwidth_bytes_per_s for r in self.outs)] or [0.0])


def parts_of(step: Step, routes: Routes) -> Parts:
    """The transfers of a step between devices; what stays on a device is free."""
    reads = [routes.between(s.rank, step.rank) for s in step.reads if s.rank != step.rank]
    outs = [routes.between(step.rank, s.rank) for s in step.writes if s.rank != step.rank]
    if step.kind in IN_SWITCH:
        reads, outs = [routes.joined(reads)], [routes.joined(outs)]
    if step.send:
        outs.append(routes.between(step.rank, step.send.target))
    return Parts(
        tuple(route for route in reads if route != NOWHERE),
        tuple(route for route in outs if route != NOWHERE),
    )
