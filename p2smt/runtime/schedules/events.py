"""A schedule under execution at its finest grain: single reads and writes of single chunks.

All ranks are in this process.  What can happen next is a bag of events; whoever drives the run
picks one at a time, in any order: every interleaving of the schedule's definition
(:mod:`p2smt.schedules.model`) is one sequence of picks.  Signals are taken to order everything
(sequential consistency), relaxed ones too.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from p2smt.runtime.schedules.rows import OrderInRanks, RankRows, order_in_ranks, rows_of
from p2smt.schedules.model import Buffer, Connection

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from p2smt.collectives.contract import Goal
    from p2smt.runtime.schedules.values import Values
    from p2smt.schedules.model import Schedule, Step

    Words = NDArray[np.uint64]


class What(IntEnum):
    """Kinds of events; BEGIN and END are about a rank, the others about a step."""

    BEGIN = 0
    START = 1
    READ = 2
    WRITE = 3
    FINISH = 4
    END = 5


class AtomicEvent(NamedTuple):
    """What happens at once: about a rank or a step (``number``).

    ``chunk``: position in the step's spans; ``span``: which of them.
    """

    what: What
    number: int
    chunk: int = 0
    span: int = 0


class MessageError(Exception):
    """A message of another size than its receiver expects; nothing after it has a meaning."""


@dataclass(slots=True)
class _Active:
    """A step between its start and its end: sums per position, and events still to come."""

    sums: Words
    reads: list[int]
    accesses: int


@dataclass(slots=True)
class RunState:
    """A run under way: memory, messages, counters, and in the bag ``ready`` what can happen now.

    A START in the bag may turn out to lack something when it is picked; it is then put aside
    until that arrives, and nothing has happened.
    """

    schedule: Schedule
    values: Values
    depth: int
    order: OrderInRanks = field(init=False)
    rows: list[RankRows] = field(init=False)
    memory: list[Words] = field(init=False)
    ready: list[AtomicEvent] = field(init=False)
    active: dict[int, _Active] = field(default_factory=dict)
    messages: dict[Connection, deque[Words]] = field(default_factory=lambda: defaultdict(deque))
    room_taken: dict[Connection, int] = field(default_factory=lambda: defaultdict(int))
    counters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    packets: set[tuple[int, int]] = field(default_factory=set)
    aside: dict[Hashable, list[AtomicEvent]] = field(default_factory=lambda: defaultdict(list))
    begun: set[int] = field(default_factory=set)
    started: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    done: list[int] = field(default_factory=list)
    wrong: list[Goal] = field(default_factory=list)
    missing: list[int] = field(init=False)
    unended: list[int] = field(init=False)
    roots: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        schedule, ranks = self.schedule, range(self.schedule.ranks)
        self.order = order_in_ranks(schedule)
        self.rows = [rows_of(schedule, rank) for rank in ranks]
        self.memory = [self.values.garbage(rank, self.rows[rank].total) for rank in ranks]
        self.counters.update(schedule.initial)
        self.missing = [len(earlier) or 1 for earlier in self.order.before]
        self.unended = [0] * schedule.ranks
        self.roots = [[] for _ in ranks]
        for number, step in enumerate(schedule.steps):
            self.unended[step.rank] += not step.background
            if not self.order.before[number]:
                self.roots[step.rank].append(number)
        self.ready = [AtomicEvent(What.BEGIN, rank) for rank in ranks]

    def happen(self, event: AtomicEvent) -> bool:
        """Let an event from the bag happen; False: it was a START that had to be put aside.

        Raises:
            MessageError: a message has another size than its receiver expects.
        """
        match event.what:
            case What.BEGIN:
                self._begin(event.number)
            case What.START:
                return self._start(event)
            case What.READ:
                self._read(event)
            case What.WRITE:
                self._write(event)
            case What.FINISH:
                self._finish(event.number)
            case What.END:
                self._end(event.number)
        return True

    def _begin(self, rank: int) -> None:
        """The rank's input is there, and its first steps may start."""
        if rank in self.begun:
            return
        self.begun.add(rank)
        for chunk, given in enumerate(self.schedule.contract.starts[rank]):
            if given is not None:
                row = self.rows[rank].row(Buffer.INPUT, chunk)
                self.memory[rank][row] = self.values.of(given)
        for number in self.roots[rank]:
            self._one_less(number)
        if not self.unended[rank]:
            self.ready.append(AtomicEvent(What.END, rank))

    def _one_less(self, number: int) -> None:
        self.missing[number] -= 1
        if not self.missing[number]:
            self.ready.append(AtomicEvent(What.START, number))

    def lacks(self, number: int) -> Hashable | None:
        """What a step whose turn it is must still wait for; None: nothing."""
        step = self.schedule.steps[number]
        if step.receive is not None and not self.messages[step.receive]:
            return step.receive
        if step.send is not None and self.room_taken[step.send] >= self.depth:
            return "room", step.send
        for counter, many in Counter(step.awaits).items():
            if self.counters[counter] < many:
                return counter
        for span in step.reads:
            if span.packet:
                places = self.rows[span.rank].of(span)
                for row in range(places.start, places.stop):
                    if (span.rank, row) not in self.packets:
                        return span.rank, row
        return None

    def _start(self, event: AtomicEvent) -> bool:
        number = event.number
        if number in self.started:
            return True
        lack = self.lacks(number)
        if lack is not None:
            self.aside[lack].append(event)
            return False
        self.started.add(number)
        self._activate(number, self.schedule.steps[number])
        return True

    def _activate(self, number: int, step: Step) -> None:
        sums = np.zeros((step.count, self.values.width), np.uint64)
        if step.receive is not None:
            sums = self._take_message(step, step.receive)
        if step.send is not None:
            self.room_taken[step.send] += 1
        for counter in step.awaits:
            self.counters[counter] -= 1
        spans = len(step.reads) + len(step.writes)
        self.active[number] = _Active(sums, [len(step.reads)] * step.count, step.count * spans)
        for chunk in range(step.count):
            self.ready += [AtomicEvent(What.READ, number, chunk, k) for k in range(len(step.reads))]
            if not step.reads:
                self._allow_writes(number, chunk)
        if not step.count * spans:
            self.ready.append(AtomicEvent(What.FINISH, number))

    def _take_message(self, step: Step, connection: Connection) -> Words:
        message = self.messages[connection].popleft()
        if len(message) != step.count:
            text = f"{step} takes {step.count} chunks, but the message on {connection} has"
            raise MessageError(f"{text} {len(message)}")
        return message

    def _allow_writes(self, number: int, chunk: int) -> None:
        writes = self.schedule.steps[number].writes
        self.ready += [AtomicEvent(What.WRITE, number, chunk, k) for k in range(len(writes))]

    def _accessed(self, number: int, active: _Active) -> None:
        active.accesses -= 1
        if not active.accesses:
            self.ready.append(AtomicEvent(What.FINISH, number))

    def _read(self, event: AtomicEvent) -> None:
        active = self.active[event.number]
        span = self.schedule.steps[event.number].reads[event.span]
        row = self.rows[span.rank].row(span.buffer, span.start + event.chunk)
        active.sums[event.chunk] += self.memory[span.rank][row]
        active.reads[event.chunk] -= 1
        if not active.reads[event.chunk]:
            self._allow_writes(event.number, event.chunk)
        self._accessed(event.number, active)

    def _write(self, event: AtomicEvent) -> None:
        active = self.active[event.number]
        span = self.schedule.steps[event.number].writes[event.span]
        row = self.rows[span.rank].row(span.buffer, span.start + event.chunk)
        self.memory[span.rank][row] = active.sums[event.chunk]
        if span.packet:
            self.packets.add((span.rank, row))
            self._wake((span.rank, row))
        self._accessed(event.number, active)

    def _finish(self, number: int) -> None:
        self.reached.add(number)
        meeting = self.order.meeting.get(number, (number,))
        if all(member in self.reached for member in meeting):
            for member in meeting:
                self._complete(member)

    def _complete(self, number: int) -> None:
        step = self.schedule.steps[number]
        sums = self.active.pop(number).sums
        self.done.append(number)
        if step.receive is not None:
            self.room_taken[step.receive] -= 1
            self._wake(("room", step.receive))
        if step.send is not None:
            self.messages[step.send].append(sums)
            self._wake(step.send)
        for counter in step.posts:
            self.counters[counter] += 1
            self._wake(counter)
        for later in self.order.after[number]:
            self._one_less(later)
        if not step.background:
            self.unended[step.rank] -= 1
            if not self.unended[step.rank]:
                self.ready.append(AtomicEvent(What.END, step.rank))

    def _wake(self, what: Hashable) -> None:
        if what in self.aside:
            self.ready += self.aside.pop(what)

    def _end(self, rank: int) -> None:
        """The rank's results are read."""
        for goal in self.values.goals[rank]:
            found = self.memory[rank][self.rows[rank].row(Buffer.OUTPUT, goal.chunk)]
            if not np.array_equal(found, self.values.total(goal)):
                self.wrong.append(goal)
