"""The builder: what its calls mean one by one is what every interleaving does."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.contract import Contract, Contribution, Goal, contract
from p2smt.errors import InputError
from p2smt.schedules.classics import classic
from p2smt.schedules.construction import builder as build
from p2smt.schedules.construction.builder import Builder, Message, runs
from p2smt.schedules.model import Buffer, Schedule, Span, StepRef
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules.greedy_run import GreedyRun, Value

RANKS, CHUNKS = 3, 3
Call = tuple[tuple[int, int, int, int], int, bool, int]
"""(source rank, its first chunk, target rank, its first chunk), count, reduce, channel."""

places = st.integers(0, CHUNKS - 1)
ends = st.tuples(st.integers(0, RANKS - 1), places, st.integers(0, RANKS - 1), places)
calls = st.lists(st.tuples(ends, st.integers(1, 2), st.booleans(), st.integers(0, 1)), max_size=12)


def usable(call: Call) -> bool:
    (source, first, target, start), count, _, _ = call
    inside = max(first, start) + count <= CHUNKS
    return inside and (source != target or abs(first - start) >= count)


def built(program: list[Call], *, fused: bool) -> tuple[Schedule, dict[tuple[int, int], Value]]:
    """A schedule of some calls, and what the chunks hold if they are done one by one."""
    starts = tuple(tuple(Contribution(r, c) for c in range(CHUNKS)) for r in range(RANKS))
    memory = {(p.rank, p.chunk): Counter([p]) for own in starts for p in own}
    contract = Contract("custom", starts, (), True, (0,) * RANKS)
    b = Builder(contract, CHUNKS, CHUNKS)
    for (source, first, target, start), count, reduce, channel in program:
        old = [memory[source, first + j] for j in range(count)]
        for j, value in enumerate(old):
            kept = memory[target, start + j] if reduce else Counter()
            memory[target, start + j] = value + kept
        spans = b.at(source, first, count), b.at(target, start, count)
        if source == target:
            b.copy(*spans, reduce=reduce)
        else:
            b.transfer(*spans, reduce=reduce, channel=channel)
    return b.schedule("random", fused=fused), memory


@given(calls, st.booleans(), st.integers(0, 100))
def test_any_order_does_what_the_calls_do(program: list[Call], fused: bool, seed: int) -> None:
    program = [call for call in program if usable(call)]
    schedule, memory = built(program, fused=fused)
    run = GreedyRun(schedule, 100 if fused else 1, seed)
    assert len(run.done) == len(schedule.steps)
    assert {(rank, chunk): value for (rank, _, chunk), value in run.memory.items()} == memory


@given(calls, st.booleans())
def test_the_checker_agrees(program: list[Call], fused: bool) -> None:
    """It proves that no interleaving gives anything else."""
    schedule, memory = built([call for call in program if usable(call)], fused=fused)
    goals = tuple(
        Goal(rank, chunk, tuple(sorted(value.elements())))
        for (rank, chunk), value in memory.items()
        if value.total() < 50
    )
    contract = Contract("custom", schedule.contract.starts, goals, True, (0,) * RANKS)
    report = verify(
        Schedule("random", contract, schedule.sizes, schedule.steps), 100 if fused else 1
    )
    assert (report.verdict, report.violations, report.races) == (Verdict.VALID, (), 0)


def test_waits_that_follow_from_others_are_left_out() -> None:
    """The second receive from rank 0 into chunk 0 waits for the send to rank 2, which has waited
    for the first."""
    starts = tuple((Contribution(r, 0),) for r in range(3))
    b = Builder(Contract("custom", starts, (), True, (0,) * 3), 1, 1)
    for source, target in ((0, 1), (1, 2), (0, 1)):
        b.transfer(b.at(source, 0), b.at(target, 0))
    waits = [step.waits for step in b.schedule("three").steps if step.rank == 1]
    assert waits == [(), (StepRef(1, 0),), (StepRef(0, 0),)]


def test_moves_together_swap() -> None:
    starts = tuple((Contribution(r, 0),) for r in range(2))
    goals = tuple(Goal(r, 0, (Contribution(1 - r, 0),)) for r in range(2))
    b = Builder(Contract("custom", starts, goals, True, (0, 0)), 1, 1)
    b.together(Message(b.at(r, 0), b.at(1 - r, 0)) for r in range(2))
    assert verify(b.schedule("swap"), 1).verdict is Verdict.VALID


def test_inputs_are_copied_out_of_place() -> None:
    b = Builder(contract("allgather", 2, 3, in_place=False), 3, 6, (0, 3))
    copies = b.schedule("copies").steps
    assert [(s.kind, s.reads, s.writes) for s in copies] == [
        ("cpy", (Span(r, Buffer.INPUT, 0, 3),), (Span(r, Buffer.OUTPUT, 3 * r, 3),))
        for r in range(2)
    ]


def test_runs() -> None:
    assert runs([5, 1, 2, 4, 8]) == ((1, 2), (4, 2), (8, 1))
    assert runs([]) == ()


@pytest.mark.exhaustive
def test_runs_are_short_enough_for_a_step_of_msccl() -> None:
    assert runs(range(130)) == ((0, 64), (64, 64), (128, 2))
    ring = classic("halving-doubling-all-reduce", 256)
    assert max(step.count for step in ring.steps) == 64


def test_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MAX_STEPS", 3)
    b = Builder(contract("allgather", 2, 1, in_place=True), 1, 2)
    b.transfer(b.at(0, 0), b.at(1, 0))
    with pytest.raises(InputError, match="more than 3 steps"):
        b.transfer(b.at(1, 1), b.at(0, 1))
