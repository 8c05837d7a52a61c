"""Runs a schedule on exact values, one whole step at a time in a random order: slow and obvious."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Buffer, Connection, Schedule, Span, Step

Value = Counter[Contribution]
Cell = tuple[int, str, int]


def cell(schedule: Schedule, rank: int, buffer: Buffer, chunk: int) -> Cell:
    """In place, input and output are one buffer: a chunk by its place there."""
    if buffer is Buffer.SCRATCH or not schedule.in_place:
        return rank, buffer.value, chunk
    shift = schedule.contract.shift[rank]
    return rank, "io", chunk + max(0, shift if buffer is Buffer.INPUT else -shift)


class GreedyRun:
    """``done`` and ``memory`` when nothing more can start; connections hold ``depth``."""

    def __init__(self, schedule: Schedule, depth: int, seed: int = 0) -> None:
        self.schedule, self.depth = schedule, depth
        self.memory: dict[Cell, Value] = {}
        self.queues: dict[Connection, deque[list[Value]]] = defaultdict(deque)
        self.done: set[tuple[int, int, int]] = set()
        for rank, starts in enumerate(schedule.contract.starts):
            for chunk, start in enumerate(starts):
                if start is not None:
                    self.memory[cell(schedule, rank, Buffer.INPUT, chunk)] = Counter([start])
        blocks: dict[tuple[int, int], deque[Step]] = defaultdict(deque)
        for step in schedule.steps:
            blocks[step.rank, step.block].append(step)
        self.run(list(blocks.values()), random.Random(seed))

    def run(self, blocks: list[deque[Step]], choice: random.Random) -> None:
        while ready := [steps for steps in blocks if steps and self.can_start(steps[0])]:
            self.do(choice.choice(ready).popleft())

    def can_start(self, step: Step) -> bool:
        waited = all((step.rank, ref.block, ref.index) in self.done for ref in step.waits)
        there = step.receive is None or bool(self.queues[step.receive])
        return waited and there and (step.send is None or len(self.queues[step.send]) < self.depth)

    def do(self, step: Step) -> None:
        values: list[Value] = [Counter() for _ in range(step.count)]
        if step.receive:
            values = self.queues[step.receive].popleft()
            assert len(values) == step.count
        for span in step.reads:
            assert span.rank == step.rank
            values = [
                v + self.memory.get(at, Counter())
                for v, at in zip(values, self.cells(span), strict=True)
            ]
        for span in step.writes:
            assert span.rank == step.rank
            self.memory.update(zip(self.cells(span), values, strict=True))
        if step.send:
            self.queues[step.send].append(values)
        self.done.add((step.rank, step.block, step.index))

    def cells(self, span: Span) -> list[Cell]:
        chunks = range(span.start, span.start + span.count)
        return [cell(self.schedule, span.rank, span.buffer, chunk) for chunk in chunks]

    @property
    def right(self) -> bool:
        """Whether all steps were done, no message is left, and every goal is reached."""
        finished = len(self.done) == len(self.schedule.steps) and not any(self.queues.values())
        return finished and all(
            self.memory.get(cell(self.schedule, goal.rank, Buffer.OUTPUT, goal.chunk))
            == goal.multiset()
            for goal in self.schedule.contract.goals
        )
