"""The reference executor on schedules small enough to follow by hand, and against the checker."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives import contract as contracts
from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.errors import InputError
from p2smt.runtime.schedules.reference import ReferenceRun, run_reference
from p2smt.schedules.classics import classic
from p2smt.schedules.model import Connection, Schedule, StepRef
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.runtime.schedules.tools import all_pairs, mutant, ring, sum_at_0
from tests.schedules.building import Blocks, at
from tests.schedules.small_schedules import exchange, meeting, one_to_one, put
from tests.tiers import examples_of

SEEDS = range(40)

RIGHT = {
    "ring": ring(4),
    "all pairs": all_pairs(3),
    "sum": sum_at_0(),
    "exchange": exchange(2),
    "put and signal": put(),
    "packets": put(signal=False, packet=True),
    "barrier": meeting(),
    "tree": classic("binomial-all-reduce", 5),
    "doubling": classic("recursive-doubling-all-reduce", 4),
    "two-shot": classic("two-shot-all-reduce", 3),
    "scattered": classic("ring-reduce-scatter", 3),
    "gathered": classic("bruck-all-gather", 3),
}


def every(schedule: Schedule, depth: int = 8) -> list[ReferenceRun]:
    return [run_reference(schedule, seed, depth) for seed in SEEDS]


@pytest.mark.parametrize("name", RIGHT)
def test_right_in_every_interleaving_tried(name: str) -> None:
    schedule = RIGHT[name]
    for run in every(schedule):
        assert run.ok, run
        assert sorted(run.order) == list(range(len(schedule.steps)))


def test_a_seed_repeats_its_interleaving() -> None:
    runs = [run_reference(all_pairs(3), seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0].order != runs[2].order


@pytest.mark.parametrize("kind", ["r", "rrc"])
def test_a_receive_that_reduces_or_not(kind: str) -> None:
    runs = every(ring(3, kind=kind))
    assert all(run.ok == (kind == "rrc") for run in runs)
    assert all(bool(run.wrong) == (kind == "r") for run in runs)


def test_doubled_contributions_are_wrong() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.reduce(0, 0, "i0", "o0")
    (part,) = (Contribution(0, 0),)
    right = Contract("custom", ((part,),), (Goal(0, 0, (part, part)),))
    once = Contract("custom", ((part,),), (Goal(0, 0, (part,)),))
    assert run_reference(blocks.schedule("twice", right)).ok
    assert run_reference(blocks.schedule("twice", once)).wrong == once.goals


@pytest.mark.parametrize(
    "schedule",
    [sum_at_0(ordered=False), put(signal=False), meeting(barrier=False)],
    ids=lambda schedule: schedule.name,
)
def test_a_race_shows_in_some_interleavings_only(schedule: Schedule) -> None:
    found = {run.ok for run in every(schedule)}
    assert found == {True, False}


def test_depth_and_deadlock() -> None:
    assert all(run.ok for run in every(exchange(3), 3))
    for run in every(exchange(3), 2):
        assert run.deadlock
        assert not run.ok
        assert [exchange(3).steps[n].kind for n in run.stuck] == ["s", "s"]
        assert len(run.order) == 4


def test_a_fused_step_waits_for_room_before_it_takes_its_message() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.send(0, 0, 1, "i0")
    blocks.receive("rcs", 1, 0, 0, "s0", to=2)
    blocks.receive("rcs", 1, 0, 0, "s0", to=2)
    schedule = blocks.schedule(
        "full", contracts.contract("broadcast", 3, 1, in_place=False), scratch=1
    )
    run = run_reference(schedule, 0, 1)
    ways = ((Connection(0, 1, 0), 1), (Connection(1, 2, 0), 1))
    assert (run.deadlock, run.stuck, run.unreceived) == (True, (3,), ways)


def test_messages_left_and_of_another_size() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.send(0, 0, 1, "i0", count=1)
    own = (Contribution(0, 0),)
    contract = Contract("custom", (own, ()), (Goal(0, 0, own),))
    left = run_reference(blocks.schedule("left", contract))
    assert (left.ok, left.unreceived) == (False, ((Connection(0, 1, 0), 1),))
    blocks.receive("r", 1, 0, 0, "s0", count=2)
    other = run_reference(blocks.schedule("other size", contract, scratch=2))
    assert not other.ok
    assert not other.deadlock
    assert "takes 2 chunks, but the message on 0->1 channel 0 has 1" in other.error


def test_reads_and_writes_of_one_step_are_events_of_their_own() -> None:
    """An overlapping copy: positions may go in any order, so chunks may be copied twice."""
    own = tuple(Contribution(0, chunk) for chunk in range(2))
    goals = (Goal(0, 1, own[:1]), Goal(0, 2, own[1:]))
    contract = Contract("custom", (own,), goals, True, (0,))
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "i1", count=2)
    schedule = blocks.schedule("shift", contract)
    schedule = replace(schedule, sizes=(schedule.sizes[0]._replace(input=3, output=3),))
    assert {run.ok for run in every(schedule)} == {True, False}


def test_starts_and_ends_of_ranks() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("o0", 1),))
    assert {run.ok for run in every(blocks.schedule("late", one_to_one()))} == {True, False}
    blocks = Blocks()
    blocks.add(1, 0, "get", reads=(at("i0", 0),), writes=(at("o0", 1),))
    assert {run.ok for run in every(blocks.schedule("early", one_to_one()))} == {True, False}


def test_the_end_does_not_wait_for_background_steps() -> None:
    def schedule(*, background: bool) -> Schedule:
        blocks = Blocks()
        blocks.copy(0, 0, "i0", "o0", background=background)
        return blocks.schedule("aside", contracts.contract("allreduce", 1, 1, in_place=False))

    assert all(run.ok for run in every(schedule(background=False)))
    assert {run.ok for run in every(schedule(background=True))} == {True, False}


def test_explicit_predecessors_replace_program_order() -> None:
    def schedule(*after: StepRef) -> Schedule:
        blocks = Blocks()
        blocks.copy(0, 0, "i0", "s0")
        blocks.copy(0, 0, "s0", "o0", after=after)
        return blocks.schedule(
            "two", contracts.contract("allreduce", 1, 1, in_place=False), scratch=1
        )

    assert all(run.ok for run in every(schedule(StepRef(0, 0))))
    assert {run.ok for run in every(schedule())} == {True, False}


def test_counters_count() -> None:
    blocks = Blocks()
    for chunk in (0, 1):
        blocks.copy(0, chunk, f"i{chunk}", f"s{chunk}", posts=("c",))
    for chunk in (0, 1):
        blocks.copy(0, 2, f"s{chunk}", f"o{chunk}", awaits=("c", "c") if chunk == 0 else ())
    schedule = blocks.schedule(
        "two", contracts.contract("allreduce", 1, 2, in_place=False), scratch=2
    )
    assert all(run.ok for run in every(schedule))
    assert {run.ok for run in every(replace(schedule, initial=(("c", 1),)))} == {True, False}


def test_a_chosen_interleaving() -> None:
    schedule = put(signal=False)
    assert all(run_reference(schedule, seed, order=(0, 1)).ok for seed in SEEDS)
    assert not any(run_reference(schedule, seed, order=(1, 0)).ok for seed in SEEDS)
    ended_early = run_reference(put(), order=(2, 3, 0, 1, 5, 4))
    assert ended_early.ok


def test_a_chosen_interleaving_of_reads_and_writes() -> None:
    """Both receives read the sum before either stores its own."""
    schedule = sum_at_0(ordered=False)
    copy, send_1, receive_1, send_2, receive_2 = range(5)
    before = (copy, send_1, send_2)
    assert run_reference(schedule, order=(*before, receive_1, receive_2)).ok
    lost = (*before, receive_1, receive_2, receive_1, receive_2)
    assert all(run_reference(schedule, seed, order=lost).wrong for seed in SEEDS)


def test_the_order_that_the_checker_shows_goes_wrong() -> None:
    for schedule in (sum_at_0(ordered=False), put(signal=False), exchange(2)):
        for violation in verify(schedule, 1).violations:
            assert violation.order
            assert not run_reference(schedule, fifo_depth=1, order=violation.order).ok


@pytest.mark.parametrize("order", [(1,), (0, 1, 1, 0), (5, 0), (9,)])
def test_an_order_that_is_no_interleaving(order: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="order"):
        run_reference(put(), order=order)


def _broken() -> list[tuple[Schedule, str]]:
    one = put()
    first, second = one.steps
    far = Connection(0, 7, 0)
    steps = [
        (replace(first, reads=(at("i1", 0),)), "out of bounds"),
        (replace(first, reads=(at("i0", 3),)), "out of bounds"),
        (replace(first, count=2), "has 2 chunks, but"),
        (replace(first, send=far), "no peer"),
        (replace(first, waits=(StepRef(4, 4),)), "block 4 step 4, which does not exist"),
    ]
    found = [(replace(one, steps=(step, second)), text) for step, text in steps]
    small = (one.sizes[0]._replace(input=0), one.sizes[1])
    found.append((replace(one, steps=(), sizes=small), "input chunks"))
    tight = (one.sizes[0], one.sizes[1]._replace(output=0))
    found.append((replace(one, steps=(), sizes=tight), "no output chunk 0"))
    return found


@pytest.mark.parametrize(("schedule", "text"), _broken())
def test_what_cannot_be_carried_out_is_refused(schedule: Schedule, text: str) -> None:
    with pytest.raises(InputError, match=text):
        run_reference(schedule)


@pytest.mark.parametrize(("depth", "width"), [(0, 1), (1, 0)])
def test_depth_and_width_are_positive(depth: int, width: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        run_reference(put(), 0, depth, width=width)


@pytest.mark.parametrize("name", RIGHT)
def test_the_checker_agrees_on_right_ones(name: str) -> None:
    assert verify(RIGHT[name]).verdict is Verdict.VALID


@settings(max_examples=examples_of(300), deadline=None)
@given(name=st.sampled_from(sorted(RIGHT)), seed=st.integers(0, 2**32), depth=st.integers(1, 3))
def test_no_run_contradicts_the_checker(name: str, seed: int, depth: int) -> None:
    """A valid verdict means that every run is right; a wrong run, that the verdict is not valid."""
    draw = random.Random(seed)
    schedule = mutant(RIGHT[name], draw)
    if draw.random() < 0.3:
        schedule = mutant(schedule, draw)
    verdict = verify(schedule, depth).verdict
    for run_seed in range(8):
        try:
            run = run_reference(schedule, draw.randrange(2**32), depth)
        except InputError:
            assert verdict is Verdict.INVALID
            return
        assert run.ok or verdict is not Verdict.VALID, (run_seed, schedule, run)


def test_messages_that_may_overtake_each_other_are_not_valid() -> None:
    """Two sends of one block, the second from the start of its rank on."""
    schedule = exchange(2)
    second = replace(schedule.steps[1], after=())
    schedule = replace(schedule, steps=(schedule.steps[0], second, *schedule.steps[2:]))
    assert {run.ok for run in every(schedule)} == {True, False}
    assert verify(schedule).verdict is Verdict.INVALID
