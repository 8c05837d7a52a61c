"""Runs a schedule without data: does every step get its turn, and if not, who waits for whom?

All synchronisation except competing waits is confluent: a step that can start stays able to
start until it does, and which of several goes first does not change what can run in the end.
So one greedy run decides deadlock for every interleaving.  Where several blocks take from one
counter, every outcome is tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from p2smt.schedules.order.happens_before import sequences_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

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
    arrived: steps that have reached a barrier.
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
        for counter, many in Counter(this.awaits).items() if this.awaits else ():
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
        meeting = self.local.meeting.get(step)
        if meeting is None:
            self._complete(step)
            return
        self.arrived.add(step)
        if all(member in self.arrived for member in meeting):
            for member in meeting:
                self._complete(member)

    def _complete(self, step: int) -> None:
        self.order.append(step)
        this = self.index.schedule.steps[step]
        if this.send:
            self._gain(this.send)
        for counter in this.posts:
            self._gain(counter)
        for span in this.writes:
            if span.packet:
                for cell in self.index.memory.cells(span):
                    self._gain(cell)
        for later in self.local.after[step]:
            self.missing[later] -= 1
            if self.missing[later] == 0:
                self.ready.append(later)

    def _gain(self, what: Hashable) -> None:
        self.tokens[what] += 1
        self._wake(what)

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


# Deadlock where several blocks take from one counter: every outcome of every contest is tried.
# Only contests branch.  Everything else is run first: it stays able to start whoever wins, so a
# state in which nothing can start is reached with it done.


MAX_STATES = 5_000


class TooManyOutcomes(Exception):
    """Competing waits have more outcomes than could be tried; says whether it was their number
    or the time.  Never leaves the checker."""


def contested(index: Index) -> frozenset[str]:
    """Counters that steps take from in no certain order."""
    return frozenset(
        counter for counter, awaits in index.awaits.items() if len(sequences_of(index, awaits)) > 1
    )


def stuck_run(
    index: Index, local: LocalOrder, depth: int | None, time_limit_s: float | None
) -> Progress | None:
    """A run in which some step never gets its turn, or None if there is none.

    Raises:
        TooManyOutcomes: they could not all be tried, by number or in time.
    """
    end = inf if time_limit_s is None else monotonic() + time_limit_s
    progress = Progress(index, local, depth, contested(index))
    progress.run()
    todo, seen = [progress], {_done(progress)}
    while todo:
        state = todo.pop()
        nexts = [] if state.finished else list(_outcomes(state))
        if not state.finished and not nexts:
            return state
        for later in nexts:
            key = _done(later)
            if key not in seen:
                seen.add(key)
                todo.append(later)
        if len(seen) > MAX_STATES:
            raise TooManyOutcomes(f"more than {MAX_STATES} outcomes of competing waits")
        if monotonic() > end:
            raise TooManyOutcomes(
                "the time limit came before all outcomes of competing waits were tried"
            )
    return None


def _done(state: Progress) -> tuple[frozenset[int], frozenset[int]]:
    """What tells states apart: steps done, and steps that wait at a barrier."""
    return frozenset(state.order), frozenset(state.arrived)


def _outcomes(state: Progress) -> Iterator[Progress]:
    """The state after each of the contests that can be decided now, run on from there."""
    for step in state.waiting():
        if step in state.arrived or _lacks_more(state, step):
            continue
        later = _copy(state)
        for waiting in later.blocked.values():
            waiting[:] = [other for other in waiting if other != step]
        later.do(step)
        later.run()
        yield later


def _lacks_more(state: Progress, step: int) -> bool:
    return replace(state, held=frozenset()).lacks(step) is not None


def _copy(state: Progress) -> Progress:
    """An independent copy; the schedule's tables are shared."""
    return replace(
        state,
        order=state.order.copy(),
        missing=state.missing.copy(),
        tokens=state.tokens.copy(),
        blocked=defaultdict(list, {what: steps.copy() for what, steps in state.blocked.items()}),
        arrived=state.arrived.copy(),
        ready=state.ready.copy(),
    )
