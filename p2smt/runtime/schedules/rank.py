"""One rank of a job that is a schedule: runs it, checks its results and times it."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.errors import ExecutionError
from p2smt.runtime.payload import (
    PERIOD,
    Array,
    DataType,
    Floats,
    Numbers,
    RankReport,
    RequestRun,
    RunOptions,
    in_short,
)
from p2smt.runtime.process_groups import Site, Tell, machine
from p2smt.runtime.schedules.rows import Chain, RankRows, chains_of, order_in_ranks, rows_of
from p2smt.runtime.schedules.schedule_job import ScheduleJob
from p2smt.runtime.schedules.values import contributions_of, goals_of
from p2smt.runtime.unwritten import fill_unwritten, is_unwritten
from p2smt.schedules.model import Buffer, Connection, Schedule, Step
from p2smt.units import plain


def run_schedule_rank(job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run a schedule's part of a rank; the default process group must exist."""
    torch.set_num_threads(1)  # the chains of a rank run side by side already
    runner = _Runner(job, options, site, tell)
    runner.check_exact()
    if options.data_type.unit_roundoff:
        runner.check_random()
    for repetition in options.repetitions:
        runner.time(repetition)
    return RankReport(site.rank, [runner.run], machine(site))


class _Runner:
    """``right`` is what every timed repetition must leave, made by the first check (None: it found
    a mistake, or was not made yet).
    """

    def __init__(self, job: ScheduleJob, options: RunOptions, site: Site, tell: Tell) -> None:
        tell("preparation")
        rows = rows_of(job.schedule, site.rank)
        data_type: torch.dtype = getattr(torch, options.data_type.value)
        memory = torch.empty((rows.total, job.width(options.data_type)), dtype=data_type)
        self.site, self.options, self.tell = site, options, tell
        self.run = RequestRun()
        self.right: list[torch.Tensor] | None = None
        self.program: RankSchedule = prepare_rank(job, site.rank, memory)
        self.values = RankValues.of_rank(
            job.schedule.contract, site.rank, rows, memory, options.data_type, options.seed
        )

    def check_exact(self) -> None:
        """Run on integers, and compare."""

        def look() -> None:
            self._compare(self.values.integers, exact=True)
            self.right = None if self.run.errors else self.values.kept()

        self._execute("check", self.values.integers, look)
        self.run.checked = True

    def check_random(self) -> None:
        """Run on random numbers, and compare within the bound on rounding errors."""
        self._execute(
            "check of random values",
            self.values.floats,
            lambda: self._compare(self.values.floats, exact=False),
        )
        self.run.float_checked = self.values.bounded

    def time(self, repetition: int) -> None:
        """Run once more, note how long it takes, and compare.

        Signs change from one repetition to the next: nothing old can pass for a result.
        """
        sign = 1 if repetition % 2 else -1

        def values(part: Contribution) -> Array:
            return sign * self.values.integers(part)

        def look() -> None:
            if self.right is not None and not self.values.holds(self.right, sign):
                self._compare(values, exact=True, where=f" (in {self.options.named(repetition)})")

        taken = self._execute("repetition", values, look)
        if repetition >= 0:
            self.run.total_s.append(taken)
            self.run.repetitions_checked += self.right is not None

    def _compare(self, values: PeriodOf, *, exact: bool, where: str = "") -> None:
        """Note the first wrong element, of the first run that has one."""
        found = "" if self.run.errors else self.values.wrong(values, exact=exact)
        if found:
            self.run.errors.append(f"{found}{where}")

    def _execute(self, name: str, values: PeriodOf, look: Callable[[], None]) -> float:
        """Run once; seconds.  ``look`` when all but background steps are complete."""
        self.values.load(values)
        self.program.forget()
        execution = self.program.start()
        self.tell(name)
        self.site.barrier()
        tell: Tell = lambda where: self.tell(f"{name}: {where}")  # noqa: E731
        taken = execution.run(tell)
        look()
        execution.finish(tell)
        return taken


# Payloads of a schedule on a rank, and the results it must end with.
# Every contribution of the contract has a sequence of small integers of its own
# (:class:`p2smt.runtime.payload.Numbers`), bounded so that the type holds every sum exactly.  What
# was never written is not a number, or far below all of them.


PeriodOf = Callable[[Contribution], Array]
"""One period of a contribution's payload."""


@dataclass(frozen=True, slots=True)
class RankValues:
    """What a rank is given and must produce; ``memory`` has a row per chunk."""

    contract: Contract
    rank: int
    rows: RankRows
    memory: torch.Tensor
    goals: list[Goal]
    known: dict[Contribution, int]
    numbers: Numbers

    @staticmethod
    def of_rank(
        contract: Contract,
        rank: int,
        rows: RankRows,
        memory: torch.Tensor,
        data_type: DataType,
        seed: int,
    ) -> RankValues:
        """The values of a rank."""
        known = contributions_of(contract)
        most = max((len(goal.parts) for goal in contract.goals), default=1)
        period = min(PERIOD, memory.shape[1])
        numbers = Numbers(data_type, max(most, 1), max(len(known), 1), seed, period)
        return RankValues(contract, rank, rows, memory, goals_of(contract)[rank], known, numbers)

    def integers(self, part: Contribution) -> Array:
        """One period of a contribution's exact payload."""
        return self.numbers.integers(self.known[part])

    def floats(self, part: Contribution) -> Array:
        """One period of its random payload, rounded to the type."""
        rounded = torch.from_numpy(self.numbers.floats(self.known[part])).to(self.memory.dtype)
        values: Array = rounded.to(torch.float64).numpy()
        return values

    def load(self, values: PeriodOf) -> None:
        """Give the memory its initial contents."""
        fill_unwritten(self.memory)
        for chunk, part in enumerate(self.contract.starts[self.rank]):
            if part is not None:
                row = self.memory[self.rows.row(Buffer.INPUT, chunk)]
                row.copy_(torch.from_numpy(np.resize(values(part), row.shape[0])))

    def wrong(self, values: PeriodOf, *, exact: bool) -> str:
        """The first element of a goal that is not as it must be, in words; "": none.

        Random values are compared within the bound on rounding errors of sums in any order.
        """
        for goal in self.goals:
            found = self._found(goal)
            parts = [values(part) for part in goal.parts]
            right = np.resize(np.sum(parts, axis=0), len(found))
            off = found != right if exact else ~(abs(found - right) <= self._bound(goal, parts))
            if off.any():
                place = int(np.flatnonzero(off)[0])
                what = "wrong value" if exact else "beyond the bound of rounding errors"
                where = f"rank {self.rank}, output chunk {goal.chunk}, element {place}"
                expected = plain(float(right[place]), 6)
                return f"{where}: {what}: expected {expected}, found {_shown(found[place])}"
        return ""

    def kept(self) -> list[torch.Tensor]:
        """A copy of the output, where there is a goal."""
        return [self._output(goal).clone() for goal in self.goals]

    def holds(self, right: list[torch.Tensor], sign: int) -> bool:
        """Whether the output is what was kept once, or its negative."""
        rows = zip(self.goals, right, strict=True)
        return all(torch.equal(self._output(goal), sign * row) for goal, row in rows)

    def _output(self, goal: Goal) -> torch.Tensor:
        return self.memory[self.rows.row(Buffer.OUTPUT, goal.chunk)]

    def _found(self, goal: Goal) -> Array:
        row = self._output(goal)
        wide = torch.float64 if row.dtype.is_floating_point else torch.int64
        found: Array = row.to(wide).numpy()
        return found

    def _bound(self, goal: Goal, parts: list[Array]) -> Floats:
        size: Floats = np.sum([abs(part) for part in parts], axis=0)
        if len(goal.parts) < 2:
            size = np.zeros_like(size)
        return np.resize(self.numbers.error_bound(size), self.memory.shape[1])

    @property
    def bounded(self) -> bool:
        """Whether the bound on rounding errors is finite."""
        return bool(np.isfinite(self.numbers.error_bound(np.ones(1))).all())


def _shown(value: float) -> str:
    if is_unwritten(value):
        return "what was never written"
    return plain(float(value), 6)


# One rank of a schedule on real processes: a thread for each chain of its steps.


_LOOK_S = 0.5
"""How often a rank that is not done notes where it is."""


@dataclass(frozen=True, slots=True)
class RankSchedule:
    """A rank's part of a schedule, ready to be run as often as wanted.

    ``meetings``: by step, a number for the barrier it meets others at, and how many meet there.
    """

    schedule: Schedule
    wiring: Wiring
    chains: list[Chain]
    moves: dict[int, StepMove]
    meetings: dict[int, tuple[int, int]]

    def start(self) -> Execution:
        """Threads that wait for the word to go."""
        return Execution(self)

    def forget(self) -> None:
        """Fill the room for steps' values with what is no result."""
        for move in self.moves.values():
            fill_unwritten(move.space)

    def drain(self) -> None:
        """Wait until all that was sent has been received."""
        for outgoing in self.wiring.outgoing.values():
            outgoing.drain()


def prepare_rank(job: ScheduleJob, rank: int, memory: torch.Tensor) -> RankSchedule:
    """A rank's part; ``memory`` has a row per chunk (``rows_of`` in ``rows.py`` says which)."""
    schedule, order = job.schedule, order_in_ranks(job.schedule)
    chains = chains_of(schedule, order, rank)
    own = [step for step in schedule.steps if step.rank == rank]
    ends = {end for step in schedule.steps for end in (step.send, step.receive) if end}
    wiring = wire(own, sorted(ends), (rows_of(schedule, rank), memory), job.fifo_depth)
    moves = {}
    for chain in chains:
        largest = max(schedule.steps[number].count for number in chain.steps)
        space = memory.new_empty((largest, memory.shape[1]))
        for number in chain.steps:
            moves[number] = wiring.move(schedule.steps[number], space)
    meetings = {n: (min(m), len(m)) for n, m in order.meeting.items() if n in moves}
    return RankSchedule(schedule, wiring, chains, moves, meetings)


class Execution:
    """One run of a rank's part: all its threads, and what they tell each other.

    Counters are taken before room is made and a message is waited for.
    """

    def __init__(self, program: RankSchedule) -> None:
        self.program = program
        awaited = {n for chain in program.chains for waits in chain.waits for n in waits}
        self.done = {number: threading.Event() for number in awaited}
        self.barriers = {k: threading.Barrier(n) for k, n in program.meetings.values()}
        self.counters = defaultdict(int, program.schedule.initial)
        self.changed = threading.Condition()
        self.go = threading.Event()
        self.foreground = threading.Semaphore(0)
        self.errors: list[BaseException] = []
        self.at: list[int | None] = [chain.steps[0] for chain in program.chains]
        self.threads = [
            threading.Thread(target=self._run, args=(place, chain), daemon=True)
            for place, chain in enumerate(program.chains)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, tell: Tell) -> float:
        """Let all threads go; seconds until all but background steps are complete.

        Raises:
            ExecutionError: a call failed.
        """
        begin = time.perf_counter()
        self.go.set()
        for _ in self.threads:
            while not self.foreground.acquire(timeout=_LOOK_S):
                tell(self.where())
            self._check()
        return time.perf_counter() - begin

    def finish(self, tell: Tell) -> None:
        """Wait for background steps, and until all that was sent has been received."""
        for thread in self.threads:
            while thread.is_alive():
                thread.join(_LOOK_S)
                if thread.is_alive():
                    tell(self.where())
        self._check()
        self.program.drain()

    def where(self) -> str:
        """The steps that threads are at."""
        steps = self.program.schedule.steps
        shown = []
        for number in self.at:
            if number is not None:
                step = steps[number]
                line = "" if step.line is None else f" (line {step.line})"
                shown.append(f"block {step.block} at step {step.index} {step.kind}{line}")
        return ", ".join(shown)

    def _check(self) -> None:
        if self.errors:
            error = self.errors[0]
            raise ExecutionError(f"{type(error).__name__} in a step: {in_short(error)}")

    def _run(self, place: int, chain: Chain) -> None:
        try:
            self.go.wait()
            self._run_chain(place, chain)
        except Exception as error:  # told by the rank's main thread
            self.errors.append(error)
            self.foreground.release()

    def _run_chain(self, place: int, chain: Chain) -> None:
        if not chain.foreground:
            self.foreground.release()
        for count, (number, waits) in enumerate(zip(chain.steps, chain.waits, strict=True), 1):
            self.at[place] = number
            for other in waits:
                self.done[other].wait()
            self._run_step(number)
            if number in self.done:
                self.done[number].set()
            if count == chain.foreground:
                self.foreground.release()
        self.at[place] = None

    def _run_step(self, number: int) -> None:
        step = self.program.schedule.steps[number]
        if step.awaits:
            self._take(Counter(step.awaits))
        self.program.moves[number].run()
        if number in self.program.meetings:
            self.barriers[self.program.meetings[number][0]].wait()
        if step.posts:
            with self.changed:
                for counter in step.posts:
                    self.counters[counter] += 1
                self.changed.notify_all()

    def _take(self, wanted: Counter[str]) -> None:
        with self.changed:
            self.changed.wait_for(lambda: all(self.counters[c] >= n for c, n in wanted.items()))
            for counter, count in wanted.items():
                self.counters[counter] -= count


# One rank's steps as point-to-point calls of torch.distributed.
# Facts that this rests on (torch 2.13, Gloo): calls may come from several threads; messages between
# two ranks with the same tag arrive in the order in which they were sent; ``wait`` releases the
# interpreter lock; a send is complete once it was received (not before), so sends that are not
# complete are the messages that a connection holds.  ``is_completed`` does not tell before
# ``wait``.


_dist: Any = dist  # isend and irecv have no types of their own


@dataclass(slots=True)
class Outgoing:
    """The sending end of a connection: at most ``depth`` messages that were not received yet.

    Each message is copied to a buffer of its own, so that its sender may go on.
    """

    peer: int
    tag: int
    depth: int
    make_buffer: Callable[[], torch.Tensor]
    waiting: deque[tuple[Any, torch.Tensor]] = field(default_factory=deque)
    free: list[torch.Tensor] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def make_room(self) -> None:
        """Wait until there is room for a message."""
        with self.lock:
            if len(self.waiting) >= self.depth:
                self._wait_for_oldest()

    def send(self, value: torch.Tensor) -> None:
        """Put a message on the connection; there should be room."""
        with self.lock:
            buffer = self.free.pop() if self.free else self.make_buffer()
            message = buffer[: len(value)]
            message.copy_(value)
            self.waiting.append((_dist.isend(message, self.peer, tag=self.tag), buffer))

    def drain(self) -> None:
        """Wait until all messages were received."""
        with self.lock:
            while self.waiting:
                self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        work, buffer = self.waiting.popleft()
        work.wait()
        self.free.append(buffer)


@dataclass(frozen=True, slots=True)
class StepMove:
    """A step ready to run: views of the rank's memory, and where its message comes from.

    ``space``: room for the step's value, unless the value can be built in place.
    """

    sources: tuple[torch.Tensor, ...]
    targets: tuple[torch.Tensor, ...]
    space: torch.Tensor
    receive: tuple[int, int] | None
    outgoing: Outgoing | None
    direct: bool

    def run(self) -> None:
        """Carry the step out; it returns once the step is complete."""
        if self.outgoing is not None:
            self.outgoing.make_room()
        value = self._value()
        for target in self.targets:
            if target is not value:
                target.copy_(value)
        if self.outgoing is not None:
            self.outgoing.send(value)

    def _value(self) -> torch.Tensor:
        if self.receive is not None:
            peer, tag = self.receive
            value = self.targets[0] if self.direct else self.space
            _dist.irecv(value, peer, tag=tag).wait()
            rest = self.sources
        elif self.direct:
            return self.sources[0]
        else:
            value, rest = self.space, self.sources[1:]
            if self.sources:
                value.copy_(self.sources[0])
            else:
                value.zero_()
        for source in rest:
            value.add_(source)
        return value


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the steps of a rank share: its memory, and the tags and ends of its connections."""

    rows: RankRows
    memory: torch.Tensor
    tags: Mapping[Connection, int]
    outgoing: Mapping[Connection, Outgoing]

    def move(self, step: Step, space: torch.Tensor) -> StepMove:
        """A step made ready; ``space`` has at least as many rows as the step has chunks."""
        sources = [self.rows.of(span) for span in step.reads]
        targets = [self.rows.of(span) for span in step.writes]
        receive = None
        if step.receive is not None:
            receive = (step.receive.source, self.tags[step.receive])
        return StepMove(
            tuple(self.memory[rows] for rows in sources),
            tuple(self.memory[rows] for rows in targets),
            space[: step.count],
            receive,
            None if step.send is None else self.outgoing[step.send],
            _in_place(step, sources, targets),
        )


def _in_place(step: Step, sources: list[slice], targets: list[slice]) -> bool:
    """Whether a message can be received where it is stored, or a chunk be taken from where it is.

    Not where a sum is built: others may look at the target until it is complete.
    """
    if step.receive is not None:
        return not sources and len(targets) == 1 and step.send is None
    if len(sources) != 1:
        return False
    own = sources[0]
    return all(own.stop <= rows.start or rows.stop <= own.start for rows in targets)


def wire(
    steps: list[Step],
    every: list[Connection],
    memory: tuple[RankRows, torch.Tensor],
    depth: int,
) -> Wiring:
    """The ends of a rank's connections; ``every``: the connections of all ranks, in one order."""
    rows, tensor = memory
    tags = {connection: tag for tag, connection in enumerate(every)}
    largest: dict[Connection, int] = {}
    for step in steps:
        if step.send is not None:
            largest[step.send] = max(step.count, largest.get(step.send, 1))
    outgoing = {
        connection: Outgoing(connection.target, tags[connection], depth, _maker(tensor, count))
        for connection, count in largest.items()
    }
    return Wiring(rows, tensor, tags, outgoing)


def _maker(like: torch.Tensor, count: int) -> Callable[[], torch.Tensor]:
    return lambda: like.new_empty((count, like.shape[1]))
