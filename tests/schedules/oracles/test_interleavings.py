"""The oracle itself, on schedules small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from p2smt.collectives import contract as contracts
from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.schedules.model import Schedule, Step, StepRef
from tests.schedules.building import Blocks, at
from tests.schedules.mutations import mutants
from tests.schedules.oracles.interleavings import TooBig, explore
from tests.schedules.random_schedules import random_schedule
from tests.schedules.small_schedules import SMALL, exchange, meeting, one_to_one, put


def _custom(inputs: int, *goals: tuple[int, ...], ranks: int = 1) -> Contract:
    """Inputs per rank; output chunk g of rank 0 holds rank 0's input chunks goals[g]."""
    wanted = tuple(
        Goal(0, g, tuple(Contribution(0, chunk) for chunk in chunks))
        for g, chunks in enumerate(goals)
    )
    starts = tuple(tuple(Contribution(r, c) for c in range(inputs)) for r in range(ranks))
    return Contract("custom", starts, wanted)


def _two_reductions(*, ordered: bool) -> Schedule:
    blocks = Blocks()
    first = blocks.copy(0, 0, "i0", "o0")
    second = blocks.reduce(0, 1, "i1", "o0", waits=(first,))
    blocks.reduce(0, 2, "i2", "o0", waits=(second if ordered else first,))
    return blocks.schedule("two reductions", _custom(3, (0, 1, 2)))


def test_two_reductions_into_one_chunk_lose_an_update() -> None:
    answer = explore(_two_reductions(ordered=False))
    assert not answer.right
    assert answer.reasons == {
        "value: 1*rank 0's chunk 0 + 1*rank 0's chunk 2 instead of "
        "1*rank 0's chunk 0 + 1*rank 0's chunk 1 + 1*rank 0's chunk 2"
    } or answer.reasons == {
        "value: 1*rank 0's chunk 0 + 1*rank 0's chunk 1 instead of "
        "1*rank 0's chunk 0 + 1*rank 0's chunk 1 + 1*rank 0's chunk 2"
    }
    reads = [event for event in answer.witness if " re:" in event and "read 0.0" in event]
    writes = [event for event in answer.witness if " re:" in event and "write" in event]
    order = list(answer.witness)
    assert order.index(reads[1]) < order.index(writes[0])


def test_ordered_reductions_are_right() -> None:
    assert explore(_two_reductions(ordered=True)).right


def test_missing_dependency_reads_too_early() -> None:
    def schedule(*waits: StepRef) -> Schedule:
        blocks = Blocks()
        blocks.copy(0, 0, "i0", "s0")
        blocks.copy(0, 1, "s0", "o0", waits=waits)
        return blocks.schedule("chain", _custom(1, (0,)), scratch=1)

    assert explore(schedule(StepRef(0, 0))).right
    answer = explore(schedule())
    assert answer.reasons == {"value: uninitialised instead of 1*rank 0's chunk 0"}


def test_race_that_does_no_harm_is_right() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.copy(0, 1, "i0", "o0")
    assert explore(blocks.schedule("twice the same", _custom(1, (0,)))).right


def test_exchange_of_two_chunks_needs_two_slots() -> None:
    schedule = exchange(2)
    assert explore(schedule, depth=1).reasons == {"deadlock"}
    assert explore(schedule, depth=2).right


def test_fused_steps_round_a_ring_need_a_message_and_room() -> None:
    """Both ranks only pass on what they get: nobody begins."""
    blocks = Blocks()
    for rank in (0, 1):
        blocks.receive("rcs", rank, 0, 1 - rank, "o0", to=1 - rank)
    schedule = blocks.schedule(
        "nobody begins", contracts.contract("allreduce", 2, 1, in_place=False)
    )
    assert explore(schedule).reasons == {"deadlock"}


def test_competing_waits() -> None:
    """Two signals of different meaning on one counter: the wrong one may be taken first."""

    def schedule(second: str) -> Schedule:
        blocks = Blocks()
        for n in (0, 1):
            name = "c0" if n == 0 else second
            blocks.copy(0, n, f"i{n}", f"s{n}", posts=(name,))
            blocks.copy(0, 2 + n, f"s{n}", f"o{n}", awaits=(name,))
        return blocks.schedule("competing", _custom(2, (0,), (1,)), scratch=2)

    assert explore(schedule("c1")).right
    assert not explore(schedule("c0")).right


def test_put_needs_a_signal_or_packets() -> None:
    assert explore(put()).right
    assert not explore(put(signal=False)).right
    assert explore(put(signal=False, packet=True)).right
    assert explore(put(background=True)).right


def test_remote_write_is_not_ordered_before_the_end_of_the_other_rank() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("o0", 1),))
    assert not explore(blocks.schedule("put", one_to_one())).right
    blocks.steps[0] = replace(blocks.steps[0], posts=("c",))
    blocks.add(1, 0, "wait", count=0, awaits=("c",))
    assert explore(blocks.schedule("put and wait", one_to_one())).right


def test_remote_read_is_not_ordered_after_the_start_of_the_other_rank() -> None:
    def schedule(*, signal: bool) -> Schedule:
        blocks = Blocks()
        if signal:
            blocks.add(0, 0, "signal", count=0, posts=("c",))
        blocks.add(
            1,
            0,
            "get",
            reads=(at("i0", 0),),
            writes=(at("o0", 1),),
            awaits=("c",) if signal else (),
        )
        return blocks.schedule("get", one_to_one())

    assert explore(schedule(signal=True)).right
    assert not explore(schedule(signal=False)).right


def test_leftovers() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0", posts=("semaphore 0",))
    assert explore(blocks.schedule("semaphore", _custom(1, (0,)))).right
    blocks.copy(0, 0, "i0", "o0", posts=("channel 0",))
    assert explore(blocks.schedule("signal", _custom(1, (0,)))).reasons == {"leftover signal"}
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.send(0, 0, 1, "i0")
    answer = explore(blocks.schedule("message", _custom(1, (0,), ranks=2)))
    assert answer.reasons == {"leftover message"}


def test_message_of_another_length() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.send(0, 0, 1, "i0", count=2)
    blocks.receive("r", 1, 0, 0, "s0")
    answer = explore(blocks.schedule("length", _custom(2, (0,), ranks=2), scratch=1))
    assert answer.reasons == {"count"}


def test_overlapping_copy_depends_on_the_order_of_chunks() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "s0", "s1", count=2, waits=(StepRef(1, 0),))
    blocks.copy(0, 1, "i0", "s0", count=2)
    blocks.copy(0, 0, "s2", "o0")
    assert not explore(blocks.schedule("overlap", _custom(2, (1,)), scratch=3)).right


def test_barrier_orders_the_blocks_of_a_rank() -> None:
    assert explore(meeting()).right
    assert not explore(meeting(barrier=False)).right


def test_after_replaces_program_order() -> None:
    def schedule(after: tuple[StepRef, ...] | None) -> Schedule:
        blocks = Blocks()
        blocks.copy(0, 0, "i0", "s0")
        blocks.copy(0, 0, "s0", "o0", after=after)
        return blocks.schedule("after", _custom(1, (0,)), scratch=1)

    assert explore(schedule(None)).right
    assert explore(schedule((StepRef(0, 0),))).right
    assert not explore(schedule(())).right


def test_semaphore_that_starts_above_zero() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0", awaits=("semaphore 0",))
    contract = _custom(1, (0,))
    assert explore(blocks.schedule("none", contract)).reasons == {"deadlock"}
    assert explore(blocks.schedule("one", contract, initial=(("semaphore 0", 1),))).right


def test_relaxed_signals_order_control_only() -> None:
    assert not explore(put(relaxed=True)).right
    assert explore(put(relaxed=True, packet=True)).right
    assert explore(SMALL["remote reads, relaxed"]()).right


@pytest.mark.parametrize(
    ("relaxed", "right"),
    [
        ("", True),
        ("signal 0", True),
        ("wait 0", True),
        ("signal 0, wait 0", True),
        ("signal 1", False),
        ("wait 1", False),
    ],
)
def test_relaxed_and_ordinary_signals_on_one_counter(relaxed: str, right: bool) -> None:
    """The first signal says that the input may be accessed, the second that data has arrived."""
    blocks = Blocks()
    for n in (0, 1):
        does = {"reads": (at("i0", 0),), "writes": (at("s0", 1),), "count": 1} if n else {}
        blocks.add(0, 0, "put", **{"count": 0, **does})
        blocks.add(0, 0, "signal", count=0, posts=("c",), relaxed=f"signal {n}" in relaxed)
        blocks.add(1, 0, "wait", count=0, awaits=("c",), relaxed=f"wait {n}" in relaxed)
    blocks.copy(1, 0, "s0", "o0")
    schedule = blocks.schedule("two signals", one_to_one(), 1)
    assert explore(schedule).right == right
    assert explore(schedule, reduced=False).right == right


@pytest.mark.parametrize("name", ["two blocks", "all pairs 2", "puts 2", "semaphores", "barrier"])
def test_splitting_for_relaxed_signals_changes_nothing_else(name: str) -> None:
    for _, _, mutant in islice(mutants(SMALL[name]()), 0, None, 9):
        quiet = Step(mutant.steps[-1].rank, 99, 0, "nop", relaxed=True)
        split = replace(mutant, steps=(*mutant.steps, quiet))
        assert explore(split).right == explore(mutant).right


@pytest.mark.parametrize(
    ("reason", "fields"),
    [
        ("bounds", {"reads": (at("i7", 0),)}),
        ("count", {"reads": (at("i0", 0, 2),)}),
        ("unknown dependency", {"waits": (StepRef(3, 0),)}),
        ("unknown dependency", {"after": (StepRef(0, 5),)}),
    ],
)
def test_structure(reason: str, fields: dict[str, Any]) -> None:
    blocks = Blocks()
    blocks.add(0, 0, "x", **{"reads": (at("i0", 0),), "writes": (at("o0", 0),), **fields})
    assert reason in explore(blocks.schedule("broken", _custom(2, (0,)))).reasons


def test_limit_is_kept() -> None:
    blocks = Blocks()
    for n in range(6):
        blocks.reduce(0, n, "i0", "o0")
    with pytest.raises(TooBig):
        explore(blocks.schedule("many", _custom(1)), limit=100)


@pytest.mark.parametrize("name", ["ring 2", "two blocks", "puts 2", "puts by a proxy", "packets"])
def test_reduction_does_not_change_the_answer_of_mutants(name: str) -> None:
    for _, _, mutant in islice(mutants(SMALL[name]()), 0, None, 7):
        assert explore(mutant).right == explore(mutant, reduced=False).right


@pytest.mark.parametrize("seed", range(40))
def test_reduction_does_not_change_the_answer_of_random_schedules(seed: int) -> None:
    schedule = random_schedule(seed, 4)
    assert explore(schedule).right == explore(schedule, reduced=False).right
