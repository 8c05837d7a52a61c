"""Random small schedules, most of them with races; the goals are what one run of them gives.

Such a schedule is right exactly if every interleaving gives what that run gave.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from tests.schedules.oracles.events import Wrong, enabled, happen, initial_state
from tests.schedules.oracles.machine import Machine, compile_schedule
from tests.schedules.oracles.relaxed import relax

RANKS, CHUNKS, BLOCKS = 2, 2, 2


def random_schedule(seed: int, steps: int = 8, depth: int = 8) -> Schedule:
    """A schedule of about ``steps`` steps on two ranks, whatever it computes."""
    random = Random(seed)
    maker = _Maker(random)
    while len(maker.steps) < steps:
        random.choice([maker.local, maker.local, maker.message, maker.put, maker.signal])()
    if random.random() < 0.2:
        maker.barrier()
    starts = tuple(
        tuple(Contribution(r, c) if random.random() < 0.9 else None for c in range(CHUNKS))
        for r in range(RANKS)
    )
    in_place = random.random() < 0.4
    shift = tuple(random.choice((0, 0, 1, -1)) for _ in range(RANKS)) if in_place else ()
    contract = Contract("custom", starts, (), in_place, shift)
    sizes = (Sizes(CHUNKS, CHUNKS, CHUNKS),) * RANKS
    initial = (("semaphore 0", 1),) if random.random() < 0.2 else ()
    schedule = Schedule(f"random {seed}", contract, sizes, tuple(maker.steps), initial=initial)
    goals = _outcome(schedule, random, depth)
    return replace(schedule, contract=replace(contract, goals=goals))


class _Maker:
    """Adds random steps, those that belong together together."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.steps: list[Step] = []
        self._next: Counter[tuple[int, int]] = Counter()
        self._signals = 0

    def _add(self, rank: int, block: int, kind: str, **fields: Any) -> None:
        index = self._next[rank, block]
        self._next[rank, block] += 1
        others = [s for s in self.steps if s.rank == rank and s.block != block]
        waits: tuple[StepRef, ...] = ()
        if others and self.random.random() < 0.5:
            other = self.random.choice(others)
            waits = (StepRef(other.block, other.index),)
        step = Step(rank, block, index, kind, waits=waits, **{"count": 1, **fields})
        self.steps.append(self._loosened(step))

    def _loosened(self, step: Step) -> Step:
        """Sometimes with an order of its own, in the background, or relaxed."""
        mine = [StepRef(s.block, s.index) for s in self.steps if s.rank == step.rank]
        if self.random.random() < 0.1:
            step = replace(step, after=tuple(ref for ref in mine if self.random.random() < 0.4))
        if self.random.random() < 0.1:
            step = replace(step, background=True)
        own = any(name.startswith("signal") for name in step.posts + step.awaits)
        if own and self.random.random() < 0.1:  # the oracle is too strict on shared relaxed ones
            step = replace(step, relaxed=True)
        return step

    def _where(self) -> tuple[int, int]:
        return self.random.randrange(RANKS), self.random.randrange(BLOCKS)

    def _span(self, rank: int, count: int, *, packet: bool = False) -> Span:
        buffer = self.random.choice(list(Buffer))
        return Span(rank, buffer, self.random.randrange(CHUNKS + 1 - count), count, packet)

    def local(self) -> None:
        """A copy or a reduction."""
        rank, block = self._where()
        count = self.random.choice((1, 1, 2))
        source, target = self._span(rank, count), self._span(rank, count)
        if self.random.random() < 0.5:
            self._add(rank, block, "cpy", reads=(source,), writes=(target,), count=count)
        else:
            self._add(rank, block, "re", reads=(target, source), writes=(target,), count=count)

    def message(self) -> None:
        """A send and one of the receives; block 0 sends, block 1 receives."""
        rank = self.random.randrange(RANKS)
        way = Connection(rank, 1 - rank, 0)
        self._add(rank, 0, "s", reads=(self._span(rank, 1),), send=way)
        here = (self._span(1 - rank, 1),)
        reads = here if self.random.random() < 0.5 else ()
        self._add(1 - rank, 1, "rrc" if reads else "r", reads=reads, writes=here, receive=way)

    def put(self) -> None:
        """A remote write or read, perhaps of packets, perhaps with a signal and its wait."""
        rank, block = self._where()
        there = self._span(1 - rank, 1, packet=self.random.random() < 0.3)
        here = self._span(rank, 1)
        name = f"signal {self._signals}"
        posts: tuple[str, ...] = ()
        if self.random.random() < 0.7:
            posts = (name,)
            self._signals += 1
        if there.packet or self.random.random() < 0.6:
            self._add(rank, block, "put", reads=(here,), writes=(there,), posts=posts)
        else:
            self._add(rank, block, "get", reads=(there,), writes=(here,), posts=posts)
        back = self.random.randrange(BLOCKS)
        if posts:
            self._add(1 - rank, back, "wait", count=0, awaits=posts)
        if there.packet:
            target = self._span(1 - rank, 1)
            self._add(1 - rank, back, "upkt", reads=(there,), writes=(target,))

    def signal(self) -> None:
        """A semaphore that may be shared, raised and taken on one rank."""
        rank = self.random.randrange(RANKS)
        name = f"semaphore {self.random.randrange(2)}"
        first, second = self.random.sample(range(BLOCKS), 2)
        self._add(rank, first, "sem_release", count=0, posts=(name,))
        self._add(rank, second, "sem_acquire", count=0, awaits=(name,))

    def barrier(self) -> None:
        """All blocks of a rank meet."""
        rank = self.random.randrange(RANKS)
        for block in range(BLOCKS):
            self._add(rank, block, "barrier", count=0, barrier="all")


def _outcome(schedule: Schedule, random: Random, depth: int) -> tuple[Goal, ...]:
    """What one run leaves in the output chunks that have a value; nothing if there is no run."""
    machine = compile_schedule(schedule)
    if machine.broken:
        return ()
    if any(step.relaxed for step in schedule.steps):
        relax(machine, schedule)
    state = initial_state(machine)
    try:
        while events := list(enabled(machine, state, depth)):
            state = happen(machine, state, random.choice(events))
    except Wrong:
        return ()
    return tuple(
        Goal(rank, chunk, parts)
        for rank in range(RANKS)
        for chunk in range(CHUNKS)
        if (parts := _content(machine, schedule, rank, chunk, state.cells))
    )


def _content(
    machine: Machine, schedule: Schedule, rank: int, chunk: int, cells: tuple[int, ...]
) -> tuple[Contribution, ...]:
    cell = machine.cell_of(schedule.contract, rank, Buffer.OUTPUT, chunk)
    return machine.values.parts(cells[cell]) if cell is not None else ()
