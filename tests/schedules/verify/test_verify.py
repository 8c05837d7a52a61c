"""The checker: each kind of violation is found where it was put, and explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from p2smt.collectives.contract import contract
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from p2smt.schedules.verify.report import Kind, Report, Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules import small_schedules as small
from tests.schedules.building import Blocks

RIGHT: list[Callable[[], Schedule]] = [
    lambda: small.ring_all_reduce(2),
    lambda: small.ring_all_reduce(3),
    small.two_block_ring,
    lambda: small.all_pairs(3),
    small.tree_all_reduce,
    small.chain_broadcast,
    small.chain_reduce,
    small.direct_reduce_scatter,
    small.all_to_all_in_place,
    lambda: small.put_all_gather(3),
    small.packet_all_reduce,
    small.remote_read_all_reduce,
    small.barrier_all_reduce,
    small.semaphore_all_gather,
    small.custom_shift,
]


def changed(schedule: Schedule, number: int, **fields: object) -> Schedule:
    """A schedule with other values in the fields of one step."""
    steps = list(schedule.steps)
    steps[number] = replace(steps[number], **fields)  # type: ignore[arg-type]  # names are given
    return replace(schedule, steps=tuple(steps))


def kinds(report: Report) -> set[Kind]:
    return {violation.kind for violation in report.violations}


def first(schedule: Schedule, kind: str) -> int:
    """The first step of a kind."""
    return next(n for n, step in enumerate(schedule.steps) if step.kind == kind)


@pytest.mark.parametrize("make", RIGHT)
def test_right_schedules_are_valid(make: Callable[[], Schedule]) -> None:
    report = verify(make())
    assert (report.verdict, report.violations) == (Verdict.VALID, ())
    assert report.min_depth is not None


def test_a_ring_runs_from_depth_two_on() -> None:
    assert verify(small.ring_all_reduce(4)).min_depth == 2
    report = verify(small.ring_all_reduce(4), fifo_depth=1)
    assert kinds(report) == {Kind.DEADLOCK}
    assert report.min_depth == 2
    (broken,) = report.violations
    assert "wait for each other in a circle" in broken.message
    assert "room on the connection" in broken.message


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"reads": (Span(0, Buffer.INPUT, 9, 1),)}, Kind.BOUNDS, "has 3 chunks"),
        ({"reads": (Span(0, Buffer.INPUT, -1, 1),)}, Kind.BOUNDS, "has 3 chunks"),
        ({"reads": (Span(7, Buffer.INPUT, 0, 1),)}, Kind.BOUNDS, "does not exist"),
        ({"reads": (Span(0, Buffer.INPUT, 0, 2),)}, Kind.COUNT, "handles 1 chunks"),
        ({"send": Connection(0, -1, 0)}, Kind.PEER, "no peer"),
        ({"send": Connection(0, 0, 0)}, Kind.PEER, "peer 0"),
        ({"waits": (StepRef(5, 0),)}, Kind.DEPENDENCY, "block 5 step 0"),
        ({"send": None}, Kind.UNMATCHED, "never sent"),
        ({"send": Connection(0, 1, 4)}, Kind.UNMATCHED, "never received"),
        ({"awaits": ("signal",)}, Kind.UNMATCHED_SIGNAL, "awaited once"),
        ({"posts": ("signal",)}, Kind.UNMATCHED_SIGNAL, "raised once"),
    ],
)
def test_structure(fields: dict[str, object], kind: Kind, words: str) -> None:
    ring = small.ring_all_reduce(3)
    report = verify(changed(ring, first(ring, "s"), **fields))
    found = [violation for violation in report.violations if violation.kind is kind]
    assert found, report.violations
    assert any(words in violation.message for violation in found)
    assert report.verdict is Verdict.INVALID


def test_counts_of_a_message_must_agree() -> None:
    b = Blocks()
    b.send(0, 0, 1, "i0", count=2)
    b.receive("r", 1, 0, 0, "o0")
    report = verify(b.schedule("pair", contract("broadcast", 2, 2)))
    assert kinds(report) == {Kind.COUNT}
    assert "2 chunks where it is sent" in report.violations[0].message


def test_two_blocks_may_not_share_the_end_of_a_connection() -> None:
    b = Blocks()
    b.send(0, 0, 1, "i0")
    b.send(0, 1, 1, "i1")
    b.receive("r", 1, 0, 0, "o0")
    b.receive("r", 1, 0, 0, "o1")
    b.copy(0, 2, "i0", "o0", count=2)
    report = verify(b.schedule("pair", contract("broadcast", 2, 2)))
    assert kinds(report) == {Kind.PEER}
    assert "blocks 0 and 1 both send" in report.violations[0].message


def test_a_contract_larger_than_the_buffers() -> None:
    ring = small.ring_all_reduce(3)
    report = verify(replace(ring, sizes=(Sizes(2, 3, 0), *ring.sizes[1:])))
    assert Kind.BOUNDS in kinds(report)


def test_a_doubled_contribution_is_traced_to_the_step_that_adds_it() -> None:
    """A receive that reduces: what was there already is added to itself."""
    ring = small.ring_all_reduce(3)
    receive = max(n for n, step in enumerate(ring.steps) if step.kind == "r")
    wrong = changed(ring, receive, kind="rrc", reads=ring.steps[receive].writes)
    report = verify(wrong)
    assert kinds(report) == {Kind.DOUBLED}
    (broken,) = report.violations
    assert broken.steps[0] == receive
    assert "it reduces where a plain receive was probably meant" in broken.message
    assert broken.order == ()
    assert any("by way of" in line and "at the start" in line for line in broken.details)


def test_missing_foreign_undefined_and_stale_data() -> None:
    gather = contract("allgather", 2, 1, in_place=False)

    def wrong(source: str, target: str) -> Kind:
        b = Blocks()
        for rank in (0, 1):
            b.send(rank, 0, 1 - rank, "i0" if rank else source)
            b.receive("r", rank, 0, 1 - rank, f"o{1 - rank}")
            b.copy(rank, 0, "i0", f"o{rank}" if rank else target)
        (broken,) = verify(b.schedule("pair", gather, scratch=1)).violations
        return broken.kind

    assert wrong("s0", "o0") is Kind.UNINITIALISED
    assert wrong("i0", "s0") is Kind.MISSING
    swapped = Blocks()
    for rank in (0, 1):
        swapped.send(rank, 0, 1 - rank, "i0")
        swapped.receive("r", rank, 0, 1 - rank, f"o{rank}")
        swapped.copy(rank, 0, "i0", f"o{1 - rank}")
    assert kinds(verify(swapped.schedule("pair", gather))) == {Kind.FOREIGN}
    idle = Blocks()
    idle.add(0, 0, "nop", count=0)
    report = verify(idle.schedule("idle", contract("allreduce", 2, 1, in_place=True)))
    assert kinds(report) == {Kind.STALE}


def test_an_overwritten_contribution_is_traced_to_the_step_that_overwrites_it() -> None:
    b = Blocks()
    b.receive("r", 0, 0, 1, "i0")
    b.send(0, 0, 1, "i0")
    b.send(1, 0, 0, "i0")
    b.receive("rrc", 1, 0, 0, "i0")
    report = verify(b.schedule("lost", contract("allreduce", 2, 1, in_place=True)))
    missing = [v for v in report.violations if "overwrites" in v.message]
    assert missing
    assert b.steps[missing[0].steps[0]].kind == "r"


def test_signals_that_make_no_order_are_races_with_start_and_end() -> None:
    """A put into another rank's output needs that rank to wait for it before it ends."""
    gather = small.put_all_gather(2)
    assert verify(gather).verdict is Verdict.VALID
    late = [n for n, step in enumerate(gather.steps) if step.awaits]
    dropped = set(gather.steps[late[-1]].awaits)
    steps = tuple(
        replace(
            step,
            awaits=tuple(c for c in step.awaits if c not in dropped),
            posts=tuple(c for c in step.posts if c not in dropped),
        )
        for step in gather.steps
    )
    assert verify(replace(gather, steps=steps)).verdict is not Verdict.VALID


def test_a_step_of_another_rank_is_ordered_by_relaxed_signals_only_after_the_start() -> None:
    def exchange(*, relaxed: bool) -> Schedule:
        """Rank 0 writes its scratch, tells rank 1, and rank 1 reads it."""
        b = Blocks()
        b.copy(0, 0, "i0", "s0")
        b.add(0, 0, "signal", count=0, posts=("signal 0",), relaxed=relaxed)
        b.add(1, 0, "wait", count=0, awaits=("signal 0",))
        reads, writes = (Span(0, Buffer.SCRATCH, 0, 1),), (Span(1, Buffer.OUTPUT, 0, 1),)
        b.add(1, 0, "get", reads=reads, writes=writes)
        b.copy(0, 0, "i0", "o0")
        return b.schedule("relaxed", contract("broadcast", 2, 1), scratch=1)

    assert verify(exchange(relaxed=False)).verdict is Verdict.VALID
    assert verify(exchange(relaxed=True)).verdict is not Verdict.VALID


def test_competing_waits_can_deadlock() -> None:
    """Block 0 takes a token and gives it back; block 1 keeps it: wrong if block 1 is first."""

    def contest(gives_back: bool) -> Schedule:
        b = Blocks()
        b.add(0, 0, "acquire", count=0, awaits=("semaphore 0",))
        b.add(0, 0, "release", count=0, posts=("semaphore 0",))
        b.add(0, 1, "acquire", count=0, awaits=("semaphore 0",))
        if gives_back:
            b.add(0, 1, "release", count=0, posts=("semaphore 0",))
        b.add(1, 0, "nop", count=0)
        whole = b.schedule("contest", contract("broadcast", 2, 0))
        return replace(whole, initial=(("semaphore 0", 1),))

    assert verify(contest(gives_back=True)).verdict is Verdict.VALID
    assert kinds(verify(contest(gives_back=False))) == {Kind.DEADLOCK}


def test_a_schedule_that_leans_on_full_connections_says_so() -> None:
    """Rank 1's second block knows of the first message only because there was no room for two."""
    b = Blocks()
    b.send(0, 0, 1, "i0")
    b.send(0, 0, 1, "i1")
    b.send(0, 0, 1, "i2", channel=1)
    b.receive("r", 1, 0, 0, "s0")
    b.receive("r", 1, 0, 0, "o1")
    b.receive("r", 1, 1, 0, "o2", channel=1)
    b.copy(1, 1, "s0", "o0")
    b.copy(0, 1, "i0", "o0", count=3)
    leaning = b.schedule("leaning", contract("broadcast", 2, 3), scratch=1)
    report = verify(leaning, fifo_depth=1)
    assert report.verdict is Verdict.VALID
    assert "right only while a connection holds at most 1 messages" in report.warnings[0]
    assert verify(leaning, fifo_depth=2).verdict is not Verdict.VALID


def test_steps_name_themselves() -> None:
    step = Step(1, 2, 3, "rrcs", line=17)
    assert str(step) == "rank 1 block 2 step 3 rrcs (line 17)"
