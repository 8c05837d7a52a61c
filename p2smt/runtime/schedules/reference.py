"""Runs a schedule on the reference executor: one process, one interleaving, exact integers.

At its finest grain: single reads and writes of single chunks.  What can happen next is a bag of
events; a run picks one at a time, in any order: every interleaving of the schedule's definition
(:mod:`p2smt.schedules.model`) is one sequence of picks.  Signals are taken to order everything
(sequential consistency), relaxed ones too.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from p2smt.collectives.contract import Goal
from p2smt.errors import InputError
from p2smt.runtime.schedules.rows import (
    OrderInRanks,
    RankRows,
    check_steps,
    order_in_ranks,
    rows_of,
)
from p2smt.runtime.schedules.values import WIDTH, Values
from p2smt.schedules.model import DEFAULT_DEPTH, Buffer, Connection, Schedule

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from p2smt.schedules.model import Step

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


# How many events are compared by priority at each pick; a run draws one of these.  1 picks blindly;
# with many, what has a low priority waits as long as anything else can happen.
_CONTESTS = (1, 2, 4, 16, 64)


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """What one interleaving led to.

    wrong: goals that a rank did not hold at its end.
    order: steps in the order of their completion; ``total``: how many there are.
    stuck: steps whose turn it was, or that waited at a barrier, when nothing could go on.
    unreceived: connections with messages left, and how many.
    error: why the run was broken off ("": it was not).
    """

    seed: int
    wrong: tuple[Goal, ...]
    order: tuple[int, ...]
    total: int
    stuck: tuple[int, ...] = ()
    unreceived: tuple[tuple[Connection, int], ...] = ()
    error: str = ""

    @property
    def deadlock(self) -> bool:
        """Whether steps were left that could never start or complete."""
        return not self.error and len(self.order) < self.total

    @property
    def ok(self) -> bool:
        """Every step done, every goal met, no message left."""
        return not (self.error or self.deadlock or self.wrong or self.unreceived)


def run_reference(
    schedule: Schedule,
    seed: int = 0,
    fifo_depth: int = DEFAULT_DEPTH,
    *,
    width: int = WIDTH,
    order: Sequence[int] = (),
) -> ReferenceRun:
    """Run a schedule in an interleaving drawn from ``seed``.

    fifo_depth: messages that a connection holds.
    width: integers of 64 bits in each chunk.
    order: steps (by number) to begin with, each as a whole; one that is named more than once
        starts and reads at its first place, and writes at its last.  Behind the steps, the numbers
        n .. n+R-1 are the starts of the R ranks and n+R .. n+2R-1 their ends.  A rank starts by
        itself before its first step.

    Raises:
        InputError: the schedule cannot be carried out at all, a depth or width below 1, or an
            order that is no interleaving.
    """
    if fifo_depth < 1 or width < 1:
        raise InputError(
            f"depth {fifo_depth}, width {width}", "must be at least 1", "give larger ones"
        )
    check_steps(schedule)
    state = RunState(schedule, Values.of_contract(schedule.contract, seed, width), fifo_depth)
    error = ""
    try:
        _follow_all(state, order)
        _run_on(state, random.Random(seed))
    except MessageError as broken:
        error = str(broken)
    return _result(state, seed, error)


def _run_on(state: RunState, draw: random.Random) -> None:
    """Let events happen until none can."""
    contest, chooser = draw.choice(_CONTESTS), _Priorities(state.schedule, draw)
    ready = state.ready
    while ready:
        chosen = draw.randrange(len(ready))
        for _ in range(min(contest, len(ready)) - 1):
            other = draw.randrange(len(ready))
            if chooser.of(ready[other]) > chooser.of(ready[chosen]):
                chosen = other
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        state.happen(ready.pop())


class _Priorities:
    """Random priorities of steps, or of whole blocks, and of the starts and ends of ranks.

    Some runs then starve a block, a rank's end or single steps: mistakes that need a long delay
    somewhere are rarely found by picking blindly.
    """

    def __init__(self, schedule: Schedule, draw: random.Random) -> None:
        whole = draw.random() < 0.5
        blocks = {(step.rank, step.block): draw.random() for step in schedule.steps}
        self.steps = [
            blocks[step.rank, step.block] if whole else draw.random() for step in schedule.steps
        ]
        self.begins = [draw.random() for _ in range(schedule.ranks)]
        self.ends = [draw.random() for _ in range(schedule.ranks)]

    def of(self, event: AtomicEvent) -> float:
        if event.what is What.BEGIN:
            return self.begins[event.number]
        return (self.ends if event.what is What.END else self.steps)[event.number]


def _follow_all(state: RunState, order: Sequence[int]) -> None:
    steps, ranks = len(state.schedule.steps), state.schedule.ranks
    last = {number: place for place, number in enumerate(order)}
    for place, number in enumerate(order):
        if not 0 <= number < steps + 2 * ranks:
            raise InputError(f"step {number} in the order", f"there are {steps} steps")
        if number >= steps:
            what = What.BEGIN if number < steps + ranks else What.END
            _take(state, AtomicEvent(what, (number - steps) % ranks), "cannot happen yet")
        else:
            _follow(state, number, whole=place == last[number])


def _follow(state: RunState, number: int, *, whole: bool) -> None:
    """Let a step of an order happen, up to its reads or as a whole."""
    step = state.schedule.steps[number]
    begin = AtomicEvent(What.BEGIN, step.rank)
    if begin in state.ready:
        _take(state, begin, "")
    if number not in state.active:
        _take(state, AtomicEvent(What.START, number), f"{step} cannot start there")
    _carry_on(state, number, {What.READ})
    if whole:
        _carry_on(state, number, {What.READ, What.WRITE, What.FINISH})


def _take(state: RunState, event: AtomicEvent, problem: str) -> None:
    if event not in state.ready or not _happened(state, event):
        raise InputError("the order", f"is no interleaving: {problem or event}")


def _happened(state: RunState, event: AtomicEvent) -> bool:
    state.ready.remove(event)
    return state.happen(event)


def _carry_on(state: RunState, number: int, kinds: set[What]) -> None:
    while own := [e for e in state.ready if e.number == number and e.what in kinds]:
        for event in own:
            _happened(state, event)


def _result(state: RunState, seed: int, error: str) -> ReferenceRun:
    aside = {event.number for events in state.aside.values() for event in events}
    waiting = state.reached - set(state.done)
    left = Counter({c: len(queue) for c, queue in state.messages.items() if queue})
    return ReferenceRun(
        seed,
        tuple(sorted(state.wrong)),
        tuple(state.done),
        len(state.schedule.steps),
        () if error else tuple(sorted(aside | waiting)),
        () if error else tuple(sorted(left.items())),
        error,
    )
