"""The memory that a schedule is said to need is what its ranks allocate."""

from __future__ import annotations

import queue
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from p2smt.runtime.payload import PERIOD, DataType
from p2smt.runtime.schedules import rank as moves
from p2smt.runtime.schedules.rank import RankSchedule, RankValues, prepare_rank
from p2smt.runtime.schedules.reference import run_reference
from p2smt.runtime.schedules.rows import rows_of
from p2smt.runtime.schedules.schedule_job import (
    ScheduleJob,
    compared_bytes,
    held_rows,
    ranks_bytes,
    reference_bytes,
    schedule_job,
)
from p2smt.schedules.classics import classic
from p2smt.schedules.model import Buffer, Schedule
from tests.runtime.schedules.tools import all_pairs, ring, sum_at_0
from tests.schedules.building import Blocks
from tests.schedules.small_schedules import exchange, meeting, put

FLOAT = DataType.FLOAT32
LIMIT_S = 600.0


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As on ranks; torch's threads would wait for each other where cores are few."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class _Mail:
    """Messages between threads that are ranks; a send is complete once it was received."""

    def __init__(self, connections: int) -> None:
        self.queues: list[queue.Queue[Any]] = [queue.Queue() for _ in range(connections)]

    def isend(self, message: torch.Tensor, peer: int, tag: int) -> _Work:  # noqa: ARG002 - as torch has it
        received = threading.Event()
        self.queues[tag].put((message, received))
        return _Work(lambda: received.wait(LIMIT_S))

    def irecv(self, value: torch.Tensor, peer: int, tag: int) -> _Work:  # noqa: ARG002 - as torch has it
        def take() -> None:
            message, received = self.queues[tag].get(timeout=LIMIT_S)
            value.copy_(message)
            received.set()

        return _Work(take)


class _Work:
    def __init__(self, wait: Callable[[], object]) -> None:
        self.wait = wait


def _values(job: ScheduleJob, rank: int, data_type: DataType) -> RankValues:
    kind: torch.dtype = getattr(torch, data_type.value)
    rows = rows_of(job.schedule, rank)
    memory = torch.zeros((rows.total, job.width(data_type)), dtype=kind)
    return RankValues.of_rank(job.schedule.contract, rank, rows, memory, data_type, 0)


class Ranks:
    """All ranks of a schedule as threads of this process."""

    def __init__(self, job: ScheduleJob) -> None:
        self.values = [_values(job, rank, FLOAT) for rank in range(job.ranks)]
        self.programs = [
            prepare_rank(job, rank, values.memory) for rank, values in enumerate(self.values)
        ]

    def run(self) -> None:
        """Run once on integers."""
        for values in self.values:
            values.load(values.integers)
        threads = [threading.Thread(target=_run, args=(program,)) for program in self.programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert not any(thread.is_alive() for thread in threads)

    def held_bytes(self, rank: int) -> int:
        """Size of all tensors that a rank has made."""
        program = self.programs[rank]
        own = [program.wiring.memory, *(move.space for move in program.moves.values())]
        own += [buffer for outgoing in program.wiring.outgoing.values() for buffer in outgoing.free]
        storages = {one.untyped_storage().data_ptr(): one.untyped_storage() for one in own}
        return sum(storage.nbytes() for storage in storages.values())


def _run(program: RankSchedule) -> None:
    execution = program.start()
    execution.run(lambda _: None)
    execution.finish(lambda _: None)


@contextmanager
def peak_bytes() -> Iterator[list[int]]:
    """The most that was allocated at a time inside, beyond what there was before."""
    found: list[int] = []
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _pairs_of_chunks() -> Schedule:
    """Steps of several chunks in one block, so that values and messages have several rows."""
    schedule = exchange(4)
    blocks = Blocks()
    for rank in (0, 1):
        blocks.send(rank, 0, 1 - rank, "i0", count=3)
        blocks.copy(rank, 0, "i0", f"o{4 * rank}", count=4)
        blocks.send(rank, 0, 1 - rank, "i3")
        blocks.receive("r", rank, 0, 1 - rank, f"o{4 * (1 - rank)}", count=3)
        blocks.receive("r", rank, 0, 1 - rank, f"o{4 * (1 - rank) + 3}")
    return blocks.schedule("pairs of chunks", schedule.contract)


@pytest.mark.parametrize("depth", [3, 8])
@pytest.mark.parametrize(
    "schedule",
    [
        *(ring(4), all_pairs(3), sum_at_0(), meeting(), exchange(3), _pairs_of_chunks()),
        *(classic("binomial-all-reduce", 3), classic("bruck-all-gather", 3)),
    ],
    ids=lambda schedule: schedule.name,
)
def test_rows_are_those_that_a_rank_makes(
    monkeypatch: pytest.MonkeyPatch, schedule: Schedule, depth: int
) -> None:
    monkeypatch.setattr(moves, "_dist", _Mail(len(schedule.steps)))
    job = schedule_job(schedule, 6000, depth)
    here = Ranks(job)
    here.run()
    for rank, values in enumerate(here.values):
        assert values.wrong(values.integers, exact=True) == ""
        assert here.held_bytes(rank) == held_rows(job, [rank]) * job.width(FLOAT) * 4


@pytest.mark.parametrize("data_type", [FLOAT, DataType.BFLOAT16, DataType.INT64])
@pytest.mark.parametrize("width", [3000, PERIOD + 1, 3 * PERIOD - 1])
@pytest.mark.parametrize("count", [2, 5])
def test_comparing_needs_no_more(data_type: DataType, width: int, count: int) -> None:
    job = schedule_job(ring(count), width * count * data_type.item_bytes)
    assert job.width(data_type) == width
    limit, values = compared_bytes(job, width, 1), _values(job, 1, data_type)
    for exact in (True, False) if data_type.unit_roundoff else (True,):
        period = values.integers if exact else values.floats
        with peak_bytes() as loading:
            values.load(period)
        for goal in values.goals:
            right = np.sum([period(part) for part in goal.parts], axis=0)
            row = values.rows.row(Buffer.OUTPUT, goal.chunk)
            values.memory[row].copy_(torch.from_numpy(np.resize(right, width)))
        with peak_bytes() as comparing:
            assert values.wrong(period, exact=exact) == ""
        # What is found, in this chunk and the one before, is torch's: it is not traced.
        found = 2 * 8 * width
        assert loading[0] <= limit
        assert comparing[0] + found <= limit
        assert limit <= 3 * (comparing[0] + found)


def test_more_chains_at_one_connection_may_each_send() -> None:
    """Two blocks that find the only place of a connection free each make a message."""
    blocks = Blocks()
    for block in (0, 1):
        for _ in range(5):
            blocks.send(0, block, 1, "i0")
    for _ in range(10):
        blocks.receive("r", 1, 0, 0, "o0")
    two = schedule_job(blocks.schedule("two senders", put().contract), 6000, 1)
    assert held_rows(two, [0]) == 2 + 2 + 2
    assert held_rows(replace(two, fifo_depth=10**9), [0]) == 2 + 2 + 10


def test_ranks_are_added_up() -> None:
    job = schedule_job(sum_at_0(), 1 << 20)
    each = [ranks_bytes(job, FLOAT, [rank]) for rank in range(3)]
    assert each[0] > each[1] == each[2]
    assert ranks_bytes(job, FLOAT, range(3)) == sum(each)


@pytest.mark.parametrize(
    "schedule", [ring(3), exchange(3), put(), meeting(), classic("bruck-all-gather", 4)]
)
def test_reference_executor(schedule: Schedule) -> None:
    job = schedule_job(schedule, 8 << 20)
    with peak_bytes() as peak:
        assert run_reference(schedule, 0, job.fifo_depth, width=job.reference_width).ok
    assert peak[0] <= reference_bytes(job) + (1 << 20)  # objects that are not numbers
    assert reference_bytes(job) <= 3 * peak[0]
