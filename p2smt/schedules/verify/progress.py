"""Runs a schedule without data: does every step get its turn, and if not, who waits for whom?

All synchronisation except competing waits is confluent: a step that can start stays able to
start until it does, and which of several goes first does not change what can run in the end.
So one greedy run decides deadlock for every interleaving.  Where several blocks take from one
counter, :mod:`p2smt.schedules.verify.competing` tries every outcome.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from p2smt.schedules.index import Index


@dataclass(frozen=True, slots=True)
class LocalOrder:
    """Order inside the ranks: successors of each step, how many steps it comes after, and the
    meeting that a barrier step belongs to."""

    after: Sequence[Sequence[int]]
    before: Sequence[int]
    meeting: Mapping[int, Sequence[int]]


def local_order(index: Index) -> LocalOrder:
    """The order inside ranks as adjacency lists."""
    after: list[list[int]] = [[] for _ in index.schedule.steps]
    before = [0] * len(after)
    for number in range(len(after)):
        for earlier in index.before(number):
            after[earlier].append(number)
            before[number] += 1
    meeting = {number: steps for steps in index.barriers for number in steps}
    return LocalOrder(after, before, meeting)


@dataclass(slots=True)
class Progress:
    """A run that is under way; ``order`` holds the steps done so far.

    depth: messages that a connection holds; None: any number.
    held: counters that :meth:`run` must not take from (competing ones).
    """

    index: Index
    local: LocalOrder
    depth: int | None
    held: frozenset[str] = frozenset()
    order: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    tokens: dict[Hashable, int] = field(default_factory=lambda: defaultdict(int))
    blocked: dict[Hashable, list[int]] = field(default_factory=lambda: defaultdict(list))
    arrived: set[int] = field(default_factory=set)
    ready: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if not self.missing:
            self.missing = list(self.local.before)
            self.ready.extend(n for n, count in enumerate(self.missing) if count == 0)
            for counter, value in self.index.schedule.initial:
                self.tokens[counter] = value

    def run(self) -> None:
        """Goes on until nothing more can start."""
        while self.ready:
            step = self.ready.popleft()
            lack = self.lacks(step)
            if lack is not None:
                self.blocked[lack].append(step)
            else:
                self.do(step)

    def lacks(self, step: int) -> Hashable | None:
        """What a step still waits for, or None."""
        this = self.index.schedule.steps[step]
        if this.receive and self.tokens[this.receive] == 0:
            return this.receive
        if this.send and self.depth is not None and self.tokens[this.send] >= self.depth:
            return (this.send, "room")
        for counter, many in Counter(this.awaits).items():
            if counter in self.held or self.tokens[counter] < many:
                return counter
        for span in this.reads:
            if span.packet:
                cells = self.index.memory.cells(span)
                lack = next((c for c in cells if not self.tokens[c]), None)
                if lack is not None:
                    return lack
        return None

    def do(self, step: int) -> None:
        """Takes what a step needs and, unless it waits at a barrier, completes it."""
        this = self.index.schedule.steps[step]
        if this.receive:
            self.tokens[this.receive] -= 1
            self._wake((this.receive, "room"))
        for counter in this.awaits:
            self.tokens[counter] -= 1
        self.arrived.add(step)
        meeting = self.local.meeting.get(step, (step,))
        if all(member in self.arrived for member in meeting):
            for member in meeting:
                self._complete(member)

    def _complete(self, step: int) -> None:
        self.order.append(step)
        this = self.index.schedule.steps[step]
        gained: list[Hashable] = [this.send] if this.send else []
        gained += this.posts
        for span in this.writes:
            if span.packet:
                gained += self.index.memory.cells(span)
        for what in gained:
            self.tokens[what] += 1
            self._wake(what)
        for later in self.local.after[step]:
            self.missing[later] -= 1
            if self.missing[later] == 0:
                self.ready.append(later)

    def _wake(self, what: Hashable) -> None:
        if what in self.blocked:
            self.ready.extend(self.blocked.pop(what))

    @property
    def finished(self) -> bool:
        """Whether every step was done."""
        return len(self.order) == len(self.missing)

    def waiting(self) -> Iterable[int]:
        """Steps whose turn it is but that lack something, and those that wait at a barrier."""
        done = set(self.order)
        stuck = [step for steps in self.blocked.values() for step in steps]
        return sorted({*stuck, *(self.arrived - done)})


def run(index: Index, local: LocalOrder, depth: int | None) -> Progress:
    """A greedy run with connections of this depth."""
    progress = Progress(index, local, depth)
    progress.run()
    return progress
