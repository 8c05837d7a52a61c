"""Schedules of messages as schedules of writes to other ranks, signals and waits.

A message becomes a write into the receiver's memory (where, is said below), a signal after it, and
a wait of the receiver.  Before the first message of a connection the sender waits until the
receiver has started.  So no write is held up for lack of room, and what came before what in the
schedule of messages does so here.

Blocks stay what they are; a dependency on another block becomes a semaphore.  A block with more
operations than the runtime has room for goes on in a further one, which a semaphore lets start.

Between ranks that share no memory, writes and signals go by way of a *port*: a proxy makes them
beside the block, which waits until its write has been made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.schedules.index import index_of
from p2smt.schedules.model import Buffer, Schedule, Sizes, Span, Step, StepRef
from p2smt.schedules.order.happens_before import edges_of, order_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index


Apart = Callable[[int, int], bool]
"""Whether two ranks share no memory, so that data goes by way of a port."""

_CHAIN = 2
"""Operations that the semaphore between two parts of a block takes in each: it, and a nop."""


def one_sided(schedule: Schedule, room: int, apart: Apart | None = None) -> Schedule:
    """The schedule with writes and signals for messages.

    room: operations of a block that the runtime has room for.
    apart: None: all ranks share memory.

    Raises:
        InputError: a step is one-sided already, or the schedule is broken: messages without
            another end, memory that does not exist, steps that wait for each other.
    """
    for step in schedule.steps:
        _check(step)
    index = index_of(schedule)
    check_sound(index)
    landings = landings_of(index)
    ranks = _Emission(index, landings, apart or (lambda _source, _target: False))
    blocks = {where: list(ranks.block(*where)) for where in sorted(index.blocks)}
    parts = {where: _cut(actions, room) for where, actions in blocks.items()}
    steps = _Numbering(parts).steps()
    return Schedule(schedule.name, schedule.contract, landings.sizes, tuple(steps), form="program")


def _check(step: Step) -> None:
    """Only messages and waits order the steps."""
    far = any(span.rank != step.rank for span in (*step.reads, *step.writes))
    other = step.posts or step.awaits or step.barrier is not None or step.after is not None
    if far or other or step.background:
        rule = "is one-sided (signals, barriers, other ranks' memory) beside steps with messages"
        raise InputError(f"{step}", rule, "use either messages or one-sided steps throughout")


@dataclass(frozen=True, slots=True)
class _Event:
    """A signal: ``sort`` and what else tells its counter apart; ``number`` tells it apart."""

    sort: Hashable
    number: int


@dataclass(frozen=True, slots=True)
class _Action:
    """One operation of a block: memory, a signal or a wait; a write by a port also signals."""

    kind: str
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    posts: _Event | None = None
    awaits: _Event | None = None
    port: bool = False

    @property
    def lane(self) -> str:
        """All threads move data, one thread does the rest."""
        return "data" if self.writes and not self.port else "control"


@dataclass(slots=True)
class _Emission:
    """Writes out the operations of each block."""

    index: Index
    landings: Landings
    apart: Apart
    numbers: Iterator[int] = field(default_factory=count)
    posted: dict[int, list[_Event]] = field(default_factory=lambda: defaultdict(list))
    awaited: dict[int, list[_Event]] = field(default_factory=lambda: defaultdict(list))
    first: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """The semaphores that dependencies on other blocks take, and first messages."""
        steps, number = self.index.schedule.steps, self.index.number
        self.first = {sends[0] for sends in self.index.sends.values()}
        for (rank, block), waiters in self.index.blocks.items():
            reached: dict[int, int] = {block: len(waiters)}
            for waiter in waiters:
                for ref in steps[waiter].waits:
                    target = number(rank, ref)
                    if target is None or reached.get(ref.block, -1) >= ref.index:
                        continue
                    reached[ref.block] = ref.index
                    event = _Event(("block", rank, ref.block, block), next(self.numbers))
                    self.posted[target].append(event)
                    self.awaited[waiter].append(event)

    def block(self, rank: int, block: int) -> Iterator[_Action]:
        """The operations of a block."""
        yield from self._readiness(rank, block)
        for number in self.index.blocks[rank, block]:
            step = self.index.schedule.steps[number]
            for event in self.awaited[number]:
                yield _Action("sem_acquire", awaits=event)
            if step.receive:
                yield _Action("wait", awaits=_Event(("data", step.receive), number))
            if step.send and number in self.first:
                yield _Action("wait", awaits=_Event(("ready", step.send), 0))
            yield from self._data(number, step)
            for event in self.posted[number]:
                yield _Action("sem_release", posts=event)

    def _readiness(self, rank: int, block: int) -> Iterator[_Action]:
        """Tells the senders of what the block receives that its rank has started."""
        steps = [self.index.schedule.steps[n] for n in self.index.blocks[rank, block]]
        sources = list(dict.fromkeys(step.receive for step in steps if step.receive))
        ports = [self.apart(rank, connection.source) for connection in sources]
        if any(ports):
            yield _Action("nop")
        for connection, port in zip(sources, ports, strict=True):
            yield _Action("signal", posts=_Event(("ready", connection), 0), port=port)

    def _data(self, number: int, step: Step) -> Iterator[_Action]:
        """The value of the step, stored here, and written to the receiver."""
        brought, sent = self.landings.received.get(number), self.landings.sent.get(number)
        sources, targets = [*step.reads], [*step.writes]
        if brought and brought.scratch:
            sources.append(brought.place)
        elif brought:
            sources, targets = [brought.place], []
        if not sources:
            return
        port = sent is not None and self.apart(step.rank, sent.place.rank)
        if len(sources) > 1:
            if not targets:
                targets = [self._room(step, sources)]
            here, *targets = targets
            both = sent is not None and not port
            far = (sent.place,) if sent and both else ()
            yield _Action("res" if both else "re", tuple(sources), (here, *far))
            sources = [here]
        else:
            both = False
        for target in targets:
            yield _Action("copy", tuple(sources), (target,))
        if sent is None:
            return
        event = _Event(("data", step.send), sent.receive)
        if port:
            yield _Action("pwsf", tuple(sources), (sent.place,), posts=event, port=True)
            return
        if not both:
            yield _Action("put", tuple(sources), (sent.place,))
        yield _Action("signal", posts=event)

    def _room(self, step: Step, sources: Sequence[Span]) -> Span:
        """Where a sum is kept that is only sent on: where the message lies."""
        if sources[-1].buffer is Buffer.SCRATCH and step.receive:
            return sources[-1]
        rule = "adds up chunks only to send them, which takes memory for the sum"
        raise InputError(f"{step}", rule, "store the sum in scratch, and send it from there")


def _cut(actions: Sequence[_Action], room: int) -> list[list[_Action]]:
    """The parts of a block with at most so many operations each, with those that chain them."""
    parts: list[list[_Action]] = [[]]
    used, lane = 0, ""
    for action in actions:
        cost = 1 if action.lane == lane == "control" or not parts[-1] else 2
        if used + cost + _CHAIN > room:
            parts.append([])
            used, cost = _CHAIN, 1
        parts[-1].append(action)
        used, lane = used + cost, action.lane
    return parts


@dataclass(slots=True)
class _Numbering:
    """Turns the parts of blocks into blocks, and names the counters.

    A counter is raised in one part and awaited in one, in the same order.
    """

    parts: dict[tuple[int, int], list[list[_Action]]]
    homes: dict[tuple[int, int, int], int] = field(default_factory=dict)
    ends: dict[_Event, list[tuple[int, int] | None]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    proxies: dict[tuple[int, str], list[Step]] = field(default_factory=dict)
    background: dict[int, list[list[Step]]] = field(default_factory=lambda: defaultdict(list))

    def steps(self) -> Iterator[Step]:
        """All steps, by rank and block, those of the proxies last."""
        for (rank, block), parts in self.parts.items():
            for number, part in enumerate(parts):
                home = self.homes[rank, block, number] = self.sizes[rank]
                self.sizes[rank] += 1
                for action in part:
                    self._note(action, (rank, home))
        made: dict[int, list[Step]] = defaultdict(list)
        for (rank, block), parts in self.parts.items():
            for number in range(len(parts)):
                made[rank] += self._part(rank, block, number)
        for rank in sorted(made):
            yield from made[rank]
            for done in self.background[rank]:
                yield from done

    def _note(self, action: _Action, where: tuple[int, int]) -> None:
        for end, event in enumerate((action.posts, action.awaits)):
            if event is not None:
                self.ends.setdefault(event, [None, None])[end] = where

    def _counter(self, event: _Event) -> str:
        posts, awaits = self.ends[event]
        return f"{event.sort} {posts}->{awaits}"

    def _part(self, rank: int, block: int, number: int) -> Iterator[Step]:
        home, size = self.homes[rank, block, number], 0
        actions = self.parts[rank, block][number]
        chain = f"chain of rank {rank} block {block}"
        before = (f"{chain} {number}",) if number else ()
        after = (f"{chain} {number + 1}",) if number + 1 < len(self.parts[rank, block]) else ()
        if before:
            yield Step(rank, home, size, "sem_acquire", awaits=before)
            size += 1
        for action in actions:
            step = self._step(rank, home, size, action)
            if not action.port:
                yield step
                size += 1
            elif (flush := self._pushed(step)) is not None:
                yield flush
                size += 1
        if after:
            yield Step(rank, home, size, "sem_release", posts=after)

    def _step(self, rank: int, home: int, index: int, action: _Action) -> Step:
        posts = () if action.posts is None else (self._counter(action.posts),)
        awaits = () if action.awaits is None else (self._counter(action.awaits),)
        moved = action.writes[0].count if action.writes else 0
        spans = action.reads, action.writes
        return Step(rank, home, index, action.kind, moved, *spans, posts=posts, awaits=awaits)

    def _pushed(self, step: Step) -> Step | None:
        """Hands a step to the proxy of its channel; what waits for it to be done, if it writes."""
        key = step.rank, step.posts[0]
        if key not in self.proxies:
            self.proxies[key] = []
            self.background[step.rank].append(self.proxies[key])
        done = self.proxies[key]
        block = self.sizes[step.rank] + self._place(step.rank, done)
        last = (StepRef(step.block, step.index - 1),) if step.index else ()
        earlier = (StepRef(block, len(done) - 1),) if done else ()
        ref = StepRef(block, len(done))
        push = replace(step, block=block, index=len(done), after=(*last, *earlier))
        done.append(replace(push, background=True))
        if not step.writes:
            return None
        return Step(step.rank, step.block, step.index, step.kind, after=(*last, ref))

    def _place(self, rank: int, wanted: list[Step]) -> int:
        return next(n for n, done in enumerate(self.background[rank]) if done is wanted)


# Where the messages of a schedule land when their senders write them into the receiver's memory.
# A message that is only stored can be written to its destination at once, if whoever else accesses
# those chunks on the receiver, and is done before the receive, is also done before the send.  Any
# other message gets scratch of its own, in which nothing else is ever written.


@dataclass(frozen=True, slots=True)
class Landing:
    """A message: the steps that send and receive it, and the memory that it is written to.

    scratch: it is memory of its own, from which the receiver takes it.
    """

    send: int
    receive: int
    place: Span
    scratch: bool


@dataclass(frozen=True, slots=True)
class Landings:
    """All messages by their sending and by their receiving step, and the buffers they need."""

    sent: Mapping[int, Landing]
    received: Mapping[int, Landing]
    sizes: tuple[Sizes, ...]


def landings_of(index: Index) -> Landings:
    """Where every message of a schedule that is sound lands.

    Raises:
        InputError: steps wait for each other.
    """
    steps = index.schedule.steps
    straight = _straight(index)
    used = [sizes.scratch for sizes in index.schedule.sizes]
    found = []
    for send, receive in _messages(index):
        step = steps[receive]
        if receive in straight:
            found.append(Landing(send, receive, step.writes[0], scratch=False))
        else:
            place = Span(step.rank, Buffer.SCRATCH, used[step.rank], step.count)
            used[step.rank] += step.count
            found.append(Landing(send, receive, place, scratch=True))
    sizes = zip(index.schedule.sizes, used, strict=True)
    return Landings(
        {landing.send: landing for landing in found},
        {landing.receive: landing for landing in found},
        tuple(size._replace(scratch=scratch) for size, scratch in sizes),
    )


def check_sound(index: Index) -> None:
    """Raise InputError unless messages have two ends of one length, and memory and steps exist."""
    steps = index.schedule.steps
    for step in steps:
        if not all(map(index.memory.contains, (*step.reads, *step.writes))):
            raise _broken(f"{step}", "uses memory that does not exist")
        if any(index.number(step.rank, ref) is None for ref in step.waits):
            raise _broken(f"{step}", "waits for a step that does not exist")
    for connection in dict.fromkeys((*index.sends, *index.receives)):
        ends = [which.get(connection, ()) for which in (index.sends, index.receives)]
        sent, taken = ([steps[number].count for number in end] for end in ends)
        if sent != taken:
            raise _broken(f"connection {connection}", "has messages that are not received as sent")


def _broken(given: str, rule: str) -> InputError:
    return InputError(given, rule, "verify the schedule first")


def _messages(index: Index) -> Iterator[tuple[int, int]]:
    for connection, sends in index.sends.items():
        yield from zip(sends, index.receives[connection], strict=True)


def _straight(index: Index) -> set[int]:
    """The receives whose messages may be written to their destination by the sender."""
    steps = index.schedule.steps
    accesses = _accesses(index)
    asked: list[tuple[int, int]] = []
    owner: list[int] = []
    plain = [
        (send, receive)
        for send, receive in _messages(index)
        if len(steps[receive].writes) == 1 and not steps[receive].reads
    ]
    for send, receive in plain:
        cells = index.memory.cells(steps[receive].writes[0])
        others = {other for cell in cells for other in accesses[cell]} - {receive}
        for other in sorted(others):
            asked += [(receive, other), (other, send)]
            owner.append(receive)
    answers = _before(index, asked)
    late = {
        receive
        for place, receive in enumerate(owner)
        if not (answers[2 * place] or answers[2 * place + 1])
    }
    return {receive for _, receive in plain} - late


def _accesses(index: Index) -> dict[int, list[int]]:
    """The steps that read or write each cell."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, step in enumerate(index.schedule.steps):
        for span in (*step.reads, *step.writes):
            for cell in index.memory.cells(span):
                found[cell].append(number)
    return found


def _before(index: Index, pairs: Sequence[tuple[int, int]]) -> Sequence[bool]:
    """For each pair of steps: is the first surely complete before the second starts?"""
    edges = edges_of(index)
    try:
        order = order_of(edges.nodes.total, edges.visible)
    except ValueError:
        given = f"schedule {index.schedule.name[:60]!r}"
        raise _broken(given, "has steps that wait for each other") from None
    answers: list[bool] = order.before(pairs).tolist()
    return answers
