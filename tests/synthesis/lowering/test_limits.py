"""Long schedules: runs of chunks, and as many channels as a runtime's tables ask for."""

from __future__ import annotations

from collections import Counter

import pytest

from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.interop.schedule_files import runnable, written
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.schedules.model import Schedule
from p2smt.synthesis.lowering import lowered
from tests.synthesis.lowering.copies import right
from tests.synthesis.lowering.sums import Edge, edges_of
from tests.tiers import but_the_first


def relay(chunks: int, edges: tuple[Edge, ...]) -> SumSchedule:
    """A broadcast from rank 0 by rank 1 to rank 2, chunk by chunk, a chunk in each step."""
    first, second = (n for n, edge in enumerate(edges) if edge[:2] in ((0, 1), (1, 2)))
    steps: list[SumStep] = []
    for step in range(chunks + 1):
        sends = [SumSend(step, first, (None,))] if step < chunks else []
        if step:
            sends.insert(0, SumSend(step - 1, second, (Arrival(step - 1, first),)))
        steps.append(SumStep(1, tuple(sends)))
    results = [
        FinalSum(c, rank, (Arrival(c + late, edge),))
        for c in range(chunks)
        for late, (rank, edge) in enumerate(((1, first), (2, second)))
    ]
    return SumSchedule(tuple(steps), tuple(results))


def star(ranks: int) -> tuple[tuple[Edge, ...], SumSchedule]:
    """A broadcast of one chunk from rank 0 to all others in one step."""
    edges = tuple((0, rank, (rank - 1,)) for rank in range(1, ranks))
    sends = tuple(SumSend(0, edge, (None,)) for edge in range(ranks - 1))
    results = tuple(FinalSum(0, rank, (Arrival(0, rank - 1),)) for rank in range(1, ranks))
    return edges, SumSchedule((SumStep(1, sends),), results)


def broadcast(
    sums: SumSchedule, edges: tuple[Edge, ...], ranks: int, chunks: int, **more: int
) -> Schedule:
    return lowered(
        sums,
        edges=edges,
        ranks=ranks,
        collective="broadcast",
        chunks=chunks,
        name="long",
        block_steps=more.get("block_steps", 256),
    )


def most_steps(schedule: Schedule) -> int:
    """In a block."""
    return max(Counter((step.rank, step.block) for step in schedule.steps).values())


@pytest.mark.parametrize("case", but_the_first((257, 2), (256, 1), (600, 3)))
def test_what_no_block_can_hold_goes_over_several(case: tuple[int, int]) -> None:
    (chunks, channels), edges = case, edges_of(load_fabric("ring:3"))
    found = broadcast(relay(chunks, edges), edges, 3, chunks)
    right(found)
    assert {step.send.channel for step in found.steps if step.send} == set(range(channels))
    assert most_steps(found) <= 256
    assert runnable(found, "msccl")
    assert written(found, "long.xml")


def test_another_runtime_has_other_blocks() -> None:
    edges = edges_of(load_fabric("ring:3"))
    found = broadcast(relay(150, edges), edges, 3, 150, block_steps=64)
    assert most_steps(found) <= 64
    assert not any("steps per block" in reason for reason in runnable(found, "rccl").reasons)


def test_chunks_of_one_way_are_one_message() -> None:
    edges, _ = star(2)
    sends = tuple(SumSend(c, 0, (None,)) for c in range(200))
    results = tuple(FinalSum(c, 1, (Arrival(0, 0),)) for c in range(200))
    found = broadcast(SumSchedule((SumStep(200, sends),), results), edges, 2, 200)
    right(found)
    assert [step.count for step in found.steps if step.send] == [64, 64, 64, 8]


def test_chunks_that_travel_together_become_neighbours() -> None:
    """Even ones by rank 1, odd ones by rank 2: two messages from each rank, not four."""
    edges: tuple[Edge, ...] = ((0, 1, (0,)), (0, 2, (1,)), (1, 2, (2,)), (2, 1, (3,)))
    first = [SumSend(c, c % 2, (None,)) for c in range(8)]
    second = [SumSend(c, 2 + c % 2, (Arrival(0, c % 2),)) for c in range(8)]
    results = [
        FinalSum(c, rank, (Arrival(0, c % 2) if rank - 1 == c % 2 else Arrival(1, 2 + c % 2),))
        for c in range(8)
        for rank in (1, 2)
    ]
    steps = (SumStep(4, tuple(first)), SumStep(4, tuple(second)))
    found = broadcast(SumSchedule(steps, tuple(results)), edges, 3, 8)
    right(found)
    assert [step.count for step in found.steps if step.send] == [4, 4, 4, 4]


def test_more_neighbours_than_a_channel_has_room_for() -> None:
    edges, sums = star(80)
    found = broadcast(sums, edges, 80, 1)
    right(found)
    assert Counter(step.send.channel for step in found.steps if step.send) == {0: 31, 1: 31, 2: 17}
    assert runnable(found, "msccl")


def test_more_blocks_than_a_rank_has_room_for_are_the_reason_why_not() -> None:
    edges, sums = star(220)
    found = broadcast(sums, edges, 220, 1)
    right(found)
    with pytest.raises(InputError, match="at most 216 blocks per gpu"):
        written(found, "long.xml")
    assert written(found, "long.yaml")
