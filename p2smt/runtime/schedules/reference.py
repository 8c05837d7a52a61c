"""Runs a schedule on the reference executor: one process, one interleaving, exact integers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.collectives.contract import Goal
from p2smt.errors import InputError
from p2smt.runtime.schedules.events import AtomicEvent, MessageError, RunState, What
from p2smt.runtime.schedules.rows import check_steps
from p2smt.runtime.schedules.values import WIDTH, Values
from p2smt.schedules.model import DEFAULT_DEPTH, Connection, Schedule

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
