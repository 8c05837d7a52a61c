"""What unordered accesses can do: against every interleaving, and on schedules made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives import contract as contracts
from p2smt.result import OUT_OF_EFFORT, OUT_OF_TIME, SearchLimits
from p2smt.schedules.index import index_of
from p2smt.schedules.model import Schedule
from p2smt.schedules.order.happens_before import edges_of, ordered_run
from p2smt.schedules.order.unordered_accesses import find_races
from p2smt.schedules.races import cone as reach
from p2smt.schedules.races.decide import UNDECIDED, Decision, Outcome, decide
from p2smt.schedules.races.replay import ItemKind, replay
from p2smt.schedules.verify.deadlock import local_order, run
from tests.schedules.building import Blocks, at, custom
from tests.schedules.oracles.interleavings import TooBig, explore
from tests.schedules.oracles.shortest import shortest_wrong
from tests.schedules.random_schedules import random_schedule
from tests.tiers import examples_of


def decided(
    schedule: Schedule, time_limit_s: float | None = None, effort: int | None = None
) -> Decision | None:
    """The decision; None if the schedule gets stuck."""
    index = index_of(schedule)
    edges, order = edges_of(index), tuple(run(index, local_order(index), 8).order)
    if len(order) < len(schedule.steps):
        return None
    races = find_races(index, edges, order)
    return decide(
        schedule,
        ordered_run(index, edges, order),
        races,
        SearchLimits(time_limit_s=time_limit_s, effort=effort),
    )


def agrees(schedule: Schedule) -> None:
    """Verdict and length are those of trying everything."""
    try:
        answer = explore(schedule)
        if not all(reason.startswith("value") for reason in answer.reasons):
            return  # wrong in a way that is not about values
        decision = decided(schedule)
        if decision is None:
            return
        assert decision.verdict is (Outcome.HARMLESS if answer.right else Outcome.WRONG)
        if decision.verdict is Outcome.WRONG:
            shown = replay(schedule, (*decision.order, *decision.rest))
            assert decision.goal in set(shown.wrong(schedule))
            assert decision.minimal
            if not any(step.relaxed for step in schedule.steps):
                assert decision.executed(len(schedule.steps)) == shortest_wrong(schedule)
    except TooBig:
        return


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules_against_every_interleaving(seed: int) -> None:
    agrees(random_schedule(seed, 6))


@pytest.mark.exhaustive
@settings(max_examples=examples_of(300), deadline=None)
@given(st.integers(0, 2**32), st.integers(4, 8))
def test_more_random_schedules_against_every_interleaving(seed: int, steps: int) -> None:
    agrees(random_schedule(seed, steps))


def wanted(decision: Decision | None) -> Decision:
    assert decision is not None
    return decision


def updates(ranks: int, *, lock: bool = False, ordered: bool = False) -> Schedule:
    """All-reduce of one chunk: a block per peer adds what comes to the output."""
    blocks = Blocks()
    for rank in range(ranks):
        others = [peer for peer in range(ranks) if peer != rank]
        for k, peer in enumerate(others):
            blocks.send(rank, k, peer, "i0")
        last = blocks.copy(rank, ranks, "i0", "o0")
        held = (f"semaphore {rank}",) if lock else ()
        for k, peer in enumerate(others):
            waits = (last,)
            ref = blocks.receive(
                "rrc", rank, ranks + 1 + k, peer, "o0", waits=waits, awaits=held, posts=held
            )
            last = ref if ordered else last
    initial = tuple((f"semaphore {rank}", 1) for rank in range(ranks)) if lock else ()
    return blocks.schedule("updates", contracts.contract("allreduce", ranks, 1, in_place=False), 0,
                           initial=initial)  # fmt: skip


def test_a_lost_update_is_shown_with_the_read_and_the_write_apart() -> None:
    schedule = updates(3)
    decision = wanted(decided(schedule))
    assert (decision.verdict, decision.minimal) == (Outcome.WRONG, True)
    kinds = [item.kind for item in decision.order if item.kind is not ItemKind.STEP]
    assert kinds == [ItemKind.READ, ItemKind.WRITE]
    assert decision.executed(len(schedule.steps)) == 5  # two sends, the copy, two updates
    assert decision.got.total() == 2


def test_updates_under_a_lock_are_harmless() -> None:
    assert wanted(decided(updates(4, lock=True))).verdict is Outcome.HARMLESS


def test_without_races_nothing_is_asked() -> None:
    decision = wanted(decided(updates(4, ordered=True), time_limit_s=0.0))
    assert decision.verdict is Outcome.HARMLESS


@pytest.mark.parametrize("lock", [False, True])
def test_no_time_is_no_proof(lock: bool) -> None:
    decision = wanted(decided(updates(3, lock=lock), time_limit_s=0.0))
    assert (decision.verdict, decision.minimal) == (Outcome.UNKNOWN, False)
    assert (decision.open_goals, decision.reason) == (
        3,
        f"{OUT_OF_TIME} {UNDECIDED}",
    )


def test_too_large_an_order_is_not_a_matter_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MAX_MASK_BITS", 100)
    decision = wanted(decided(updates(3)))
    assert (decision.verdict, decision.open_goals) == (Outcome.UNKNOWN, 3)
    assert "more than 100 bits" in decision.reason
    assert OUT_OF_TIME not in decision.reason


def test_what_is_decided_needs_no_reason() -> None:
    assert {wanted(decided(updates(3, lock=lock))).reason for lock in (False, True)} == {""}


def test_two_writers_of_the_same_value_are_harmless() -> None:
    blocks = Blocks()
    for block in (0, 1):
        blocks.copy(0, block, "i0", "o0")
    schedule = blocks.schedule("same", contracts.contract("allreduce", 1, 1, in_place=False))
    assert wanted(decided(schedule)).verdict is Outcome.HARMLESS


def test_a_race_on_scratch_that_nobody_uses_is_harmless() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.copy(0, 0, "i1", "o1")
    blocks.copy(0, 1, "i0", "s0")
    blocks.copy(0, 2, "i1", "s0")
    schedule = blocks.schedule("unused", contracts.contract("allreduce", 1, 2, in_place=False), 1)
    assert wanted(decided(schedule)).verdict is Outcome.HARMLESS


def test_scratch_read_too_early_is_undefined_data() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "s0")
    blocks.copy(0, 1, "s0", "o0")
    schedule = blocks.schedule("early", contracts.contract("allreduce", 1, 1, in_place=False), 1)
    decision = wanted(decided(schedule))
    assert decision.steps(len(schedule.steps)) == (1,)
    assert (decision.goal, dict(decision.got)) == ((0, 0), {"s[0] of rank 0": 1})


def test_a_remote_write_after_the_end_of_the_rank() -> None:
    blocks = Blocks()
    blocks.add(1, 0, "put", reads=(at("i0", 1),), writes=(at("o0", 0),))
    blocks.copy(0, 0, "i0", "o1")
    goals = contracts.contract("broadcast", 2, 1, in_place=False, root=1).goals[:1]
    contract = contracts.Contract("custom", ((goals[0].parts[0],), (goals[0].parts[0],)), goals)
    decision = wanted(decided(blocks.schedule("late", contract)))
    assert decision.verdict is Outcome.WRONG
    assert decision.order[-1].step == len(blocks.steps) + 2  # the end of rank 0


@pytest.mark.parametrize("effort", [0, 50])
def test_too_little_effort_is_not_said_to_be_time(effort: int) -> None:
    """The same on every machine: units of the solver's, not seconds."""
    decisions = {str(decided(updates(3, lock=False), effort=effort)) for _ in range(2)}
    decision = wanted(decided(updates(3, lock=False), effort=effort))
    assert decision.verdict is Outcome.UNKNOWN
    assert decision.reason == f"{OUT_OF_EFFORT} {UNDECIDED}"
    assert len(decisions) == 1


def test_enough_effort_is_enough() -> None:
    assert wanted(decided(updates(3, lock=False), effort=10_000_000)).verdict is Outcome.WRONG


def packets(*, same: bool) -> Schedule:
    """Two packets to one cell, and a reader that waits for either."""
    blocks = Blocks()
    for rank, chunk in ((1, 0), (2, 0)):
        source = at(f"i{chunk}", rank if not same else 1)
        blocks.add(1, rank, "put", reads=(source,), writes=(at("s0", 0, packet=True),))
    blocks.add(0, 0, "upkt", reads=(at("s0", 0, packet=True),), writes=(at("o0", 0),))
    return blocks.schedule("packets", custom((1, 1, 1), (0, 0, 1, 0)), 1)


def test_a_packet_is_never_read_before_it_is_written() -> None:
    assert wanted(decided(packets(same=True))).verdict is Outcome.HARMLESS
    assert wanted(decided(packets(same=False))).verdict is Outcome.WRONG


def test_a_counter_that_needs_all_its_posts_orders_them() -> None:
    """Two posters of one counter: the second await comes after both, the first after one."""
    for awaits, verdict in ((2, Outcome.HARMLESS), (1, Outcome.WRONG)):
        blocks = Blocks()
        for block in (0, 1):
            blocks.copy(0, block, f"i{block}", f"s{block}", posts=("semaphore a",))
        for _ in range(awaits):
            blocks.add(0, 2, "wait", count=0, awaits=("semaphore a",))
        blocks.copy(0, 2, "s0", "o0")
        blocks.copy(0, 2, "s1", "o1")
        schedule = blocks.schedule(
            "posts", contracts.contract("allreduce", 1, 2, in_place=False), 2
        )
        assert wanted(decided(schedule)).verdict is verdict


def test_a_missing_dependency_per_rank_among_eight() -> None:
    blocks = Blocks()
    ranks = range(8)
    for rank in ranks:
        peers = [peer for peer in ranks if peer != rank]
        for block, peer in enumerate(peers):
            blocks.send(rank, block, peer, "i0")
        blocks.copy(rank, 8, "i0", "o0")
        for block, peer in enumerate(peers):
            came = blocks.receive("r", rank, 9 + block, peer, f"s{block}")
            blocks.reduce(rank, 8, f"s{block}", "o0", waits=() if block == 3 else (came,))
    schedule = blocks.schedule(
        "all pairs", contracts.contract("allreduce", 8, 1, in_place=False), 7
    )
    decision = wanted(decided(schedule))
    assert (decision.verdict, decision.minimal) == (Outcome.WRONG, True)
    # all but the receive that nobody waited for, and its message: 6 of each, 7 sums, 1 copy
    assert decision.executed(len(schedule.steps)) == 20


def test_what_an_await_needs_is_executed_too() -> None:
    """The second writer of the goal waits for either of two posts, which order no data."""
    blocks = Blocks()
    blocks.add(0, 2, "wait", count=0, awaits=("semaphore a",))
    blocks.copy(0, 2, "i0", "o0")
    blocks.copy(0, 3, "i1", "o0")
    for block in (0, 1):
        blocks.add(0, block, "post", count=0, posts=("semaphore a",))
    schedule = blocks.schedule("either", custom((2,), (0, 0, 0, 0)))
    decision = wanted(decided(schedule))
    assert (decision.verdict, decision.minimal) == (Outcome.WRONG, True)
    assert decision.executed(len(schedule.steps)) == shortest_wrong(schedule) == 4
