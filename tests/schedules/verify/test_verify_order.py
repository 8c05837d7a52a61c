"""Order that is weaker than it looks: each case against the exhaustive oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.collectives.contract import contract
from p2smt.schedules.model import Schedule
from p2smt.schedules.races import cone as reach
from p2smt.schedules.verify import deadlock as competing
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules.building import Blocks, at, custom
from tests.schedules.oracles.interleavings import explore
from tests.schedules.random_schedules import random_schedule


def one_packet_of_two() -> Schedule:
    """A packet says that its own chunk is there, not that the rest of its step is."""
    b = Blocks()
    targets = (at("s0", 1, packet=True), at("s1", 1))
    b.add(0, 0, "put", reads=(at("i0", 0),), writes=targets)
    b.add(1, 0, "upkt", reads=(at("s0", 1, packet=True),), writes=(at("o0", 1),))
    b.copy(1, 0, "s1", "o1")
    return b.schedule("p", custom((1, 1), (1, 0, 0, 0), (1, 1, 0, 0)), 2)


def overlapping_copy() -> Schedule:
    """The second position reads what the first one writes."""
    b = Blocks()
    b.copy(0, 0, "i0", "s0", count=2)
    b.copy(0, 0, "s0", "s1", count=2)
    b.copy(0, 0, "s1", "o0", count=2)
    return b.schedule("c", custom((2,), (0, 0, 0, 0), (0, 1, 0, 1)), 3)


def put_before_the_start() -> Schedule:
    """Rank 1's input is undefined, but its own until it starts."""
    b = Blocks()
    b.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("i0", 1),), posts=("signal 0",))
    b.add(1, 0, "wait", count=0, awaits=("signal 0",))
    plain = custom((1, 0), (1, 0, 0, 0))
    starts = (plain.starts[0], (None,))
    return b.schedule("b", replace(plain, starts=starts, in_place=True, shift=(0, 0)))


def put_after_the_end() -> Schedule:
    """Nothing keeps rank 0 from ending before the data is there."""
    b = Blocks()
    b.add(1, 0, "put", reads=(at("i0", 1),), writes=(at("o0", 0),))
    return b.schedule("l", custom((1, 1), (0, 0, 1, 0)))


def contest_before_a_barrier() -> Schedule:
    """Block 0 may take the token first and then wait at the barrier for block 1, who needs it."""
    b = Blocks()
    token = ("semaphore c",)
    taken = b.add(0, 2, "acquire", count=0, awaits=token, posts=token)
    b.add(0, 0, "barrier", count=0, awaits=token, barrier="b")
    b.add(0, 0, "release", count=0, posts=token)
    b.add(0, 1, "barrier", count=0, barrier="b", waits=(taken,))
    b.copy(0, 3, "i0", "o0")
    wanted = contract("allreduce", 1, 1, in_place=False)
    return b.schedule("d", wanted, initial=(("semaphore c", 1),))


WRONG = {
    "one packet of two": one_packet_of_two,
    "overlapping copy": overlapping_copy,
    "put before the start": put_before_the_start,
    "put after the end": put_after_the_end,
    "contest before a barrier": contest_before_a_barrier,
}


@pytest.mark.parametrize("name", WRONG)
def test_refuted_as_the_oracle_does(name: str) -> None:
    schedule = WRONG[name]()
    assert not explore(schedule).right
    assert verify(schedule).verdict is Verdict.INVALID


def test_more_room_can_let_the_wrong_one_win() -> None:
    """With room for both messages rank 0 may take the token that rank 1 must have first."""
    b = Blocks()
    b.send(0, 0, 1, "i0")
    b.send(0, 0, 1, "i0")
    b.add(0, 0, "acquire", count=0, awaits=("semaphore c",))
    b.add(0, 0, "both", count=0, awaits=("semaphore d",), posts=("semaphore c",))
    b.add(1, 0, "acquire", count=0, awaits=("semaphore c",))
    b.add(1, 0, "release", count=0, posts=("semaphore c", "semaphore d"))
    b.receive("r", 1, 0, 0, "s0")
    b.receive("r", 1, 0, 0, "o0")
    contract = custom((1, 1), (1, 0, 0, 0))
    schedule = b.schedule("m", contract, 1, initial=(("semaphore c", 1),))
    for depth, right in ((1, True), (2, False)):
        report = verify(schedule, depth)
        assert explore(schedule, depth).right is right
        assert (report.verdict is Verdict.VALID) is right
        assert report.min_depth is None


def fourteen_take_turns() -> Schedule:
    """Blocks compete for two tokens; each gives back the one that it took."""
    b = Blocks()
    for block in range(14):
        token = (f"semaphore {block % 2}",)
        b.add(0, block, "acquire", count=0, awaits=token)
        b.add(0, block, "release", count=0, posts=token)
    b.copy(0, 20, "i0", "o0")
    initial = (("semaphore 0", 1), ("semaphore 1", 1))
    return b.schedule("t", contract("allreduce", 1, 1, in_place=False), initial=initial)


def test_too_little_time_for_competing_waits_is_unknown() -> None:
    report = verify(fourteen_take_turns(), time_limit_s=0.0)
    assert report.verdict is Verdict.UNKNOWN
    assert report.reason == "the time limit came before all outcomes of competing waits were tried"


def test_too_many_outcomes_of_competing_waits_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(competing, "MAX_STATES", 3)
    report = verify(fourteen_take_turns())
    assert report.verdict is Verdict.UNKNOWN
    assert report.reason == "more than 3 outcomes of competing waits"


def two_copies() -> Schedule:
    """Blocks 0 and 1 fill the same scratch cell alike; nothing orders them."""
    b = Blocks()
    b.copy(0, 0, "i0", "s0")
    b.copy(0, 1, "i0", "s0")
    b.copy(0, 0, "s0", "o0")
    return b.schedule("c", custom((1,), (0, 0, 0, 0)), 1)


def test_a_question_too_large_is_not_said_to_be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(two_copies()).verdict is Verdict.VALID
    monkeypatch.setattr(reach, "MAX_MASK_BITS", 10)
    report = verify(two_copies())
    assert report.verdict is Verdict.UNKNOWN
    assert "s[0] of rank 0" in report.reason
    assert "too large" in report.reason
    assert "more than 10 bits" in report.reason
    assert "time" not in report.reason


def test_a_question_that_takes_too_long_is_said_to_be_late() -> None:
    report = verify(two_copies(), time_limit_s=0.0)
    assert report.verdict is Verdict.UNKNOWN
    assert "the time limit came" in report.reason


def test_the_race_that_does_harm_is_named() -> None:
    b = Blocks()
    b.copy(0, 0, "i0", "s0")
    b.copy(0, 1, "i0", "s0")
    b.copy(0, 0, "s0", "s1")
    b.copy(0, 1, "s1", "o0")
    report = verify(b.schedule("c", custom((1,), (0, 0, 0, 0)), 2))
    (race,) = [violation for violation in report.violations if violation.kind is Kind.RACE]
    assert "access s[1] of rank 0" in race.message


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(5000, 5040))
def test_random_schedules_with_little_room(seed: int, depth: int) -> None:
    schedule = random_schedule(seed, 4 + seed % 6, depth)
    wanted = Verdict.VALID if explore(schedule, depth).right else Verdict.INVALID
    assert verify(schedule, depth).verdict is wanted


def test_the_way_from_a_race_to_the_output_is_told() -> None:
    b = Blocks()
    b.copy(0, 0, "i0", "s0")
    b.copy(0, 1, "s0", "s1")
    b.copy(0, 1, "s1", "o0")
    report = verify(b.schedule("c", custom((1,), (0, 0, 0, 0)), 2))
    (race,) = [violation for violation in report.violations if violation.kind is Kind.RACE]
    assert "where rank 0 block 1 step 0 cpy comes first, o[0] of rank 0 contains" in race.message
    way = (
        "from s[0] of rank 0 it gets there by way of rank 0 block 1 step 0 cpy, rank 0 block 1 step"
    )
    assert race.details[0].startswith(way)
