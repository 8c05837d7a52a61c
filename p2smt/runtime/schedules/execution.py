"""One rank of a schedule on real processes: a thread for each chain of its steps."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

import torch

from p2smt.errors import ExecutionError
from p2smt.runtime.options import in_short
from p2smt.runtime.schedules.chains import Chain, chains_of
from p2smt.runtime.schedules.job import ScheduleJob
from p2smt.runtime.schedules.moves import StepMove, Wiring, wire
from p2smt.runtime.schedules.rows import order_in_ranks, rows_of
from p2smt.runtime.site import Tell
from p2smt.runtime.unwritten import fill_unwritten
from p2smt.schedules.model import Schedule

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
