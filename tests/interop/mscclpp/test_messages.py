"""Schedules of messages as MSCCL++ plans: written without further ado, read back, and right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

import pytest

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.interop.mscclpp.execution_plan import ExecutionPlan
from p2smt.interop.mscclpp.parse import parse_mscclpp
from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.interop.reading import Reading
from p2smt.runtime.schedules.reference import run_reference
from p2smt.schedules.classics import CLASSICS, Classic, Value, classic
from p2smt.schedules.lower.one_sided import one_sided
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.tiers import but_the_first

Case = tuple[str, int, Mapping[str, Value]]
IN, OUT, SCRATCH = Buffer


def _cases(known: Classic) -> list[Case]:
    """Those of about six ranks first."""
    found = [(known.name, n, p) for n, p in known.examples if "root" not in p]
    return sorted(found, key=lambda case: abs(case[1] - 6))


CASES = [case for known in CLASSICS.values() for case in but_the_first(*_cases(known))]
ROOM = 64


def back(schedule: Schedule, *, apart: int = 0) -> Schedule:
    """Written and read again; with ``apart``, ranks of different hosts share no memory."""
    if apart:
        schedule = one_sided(schedule, ROOM, lambda a, b: a // apart != b // apart)
    return read_mscclpp(write_mscclpp(schedule), "back.json", Reading())


def right(schedule: Schedule) -> None:
    report = verify(schedule)
    assert (report.verdict, report.violations, report.warnings) == (Verdict.VALID, (), ())
    assert schedule.warnings == ()
    run = run_reference(schedule, seed=3)
    assert (run.wrong, run.stuck, run.unreceived, run.error) == ((), (), (), "")


@pytest.mark.parametrize("case", CASES)
def test_every_classic(case: Case) -> None:
    schedule = classic(case[0], case[1], **case[2])
    found = back(schedule)
    assert (found.contract, found.protocol) == (schedule.contract, "Simple")
    right(found)


@pytest.mark.parametrize("case", CASES)
def test_every_classic_between_hosts(case: Case) -> None:
    found = back(classic(case[0], case[1], **case[2]), apart=2)
    right(found)
    far = [s for s in found.steps for w in s.writes if s.rank // 2 != w.rank // 2]
    assert all(step.background and step.kind == "pwsf" for step in far)


def test_a_plain_store_needs_no_scratch() -> None:
    """An all-gather writes each chunk where it belongs; a reduction keeps what comes in."""
    assert {s.scratch for s in back(classic("ring-all-gather", 4)).sizes} == {0}
    assert {s.scratch for s in back(classic("ring-reduce-scatter", 4)).sizes} == {3}
    assert {s.scratch for s in back(classic("ring-all-reduce", 4, fused=True)).sizes} == {3}


def _swap(*, waits: bool) -> Schedule:
    """Two ranks swap a chunk of the same memory; each must send before it stores."""
    steps = []
    for rank in (0, 1):
        cell = (Span(rank, OUT, 0, 1),)
        out, into = Connection(rank, 1 - rank, 0), Connection(1 - rank, rank, 0)
        steps.append(Step(rank, 0, 0, "s", 1, cell, send=out))
        after = (StepRef(0, 0),) if waits else ()
        steps.append(Step(rank, 1, 0, "rrc", 1, cell, cell, receive=into, waits=after))
    goal = contract("allreduce", 2, 1, in_place=True)
    return Schedule("swap", goal, (Sizes(1, 1, 0),) * 2, tuple(steps))


def test_what_is_still_read_is_not_overwritten() -> None:
    """The other's chunk must wait in scratch: nothing says that this one was sent before."""
    plain = [replace(s, kind="r", reads=()) if s.receive else s for s in _swap(waits=True).steps]
    stored = one_sided(replace(_swap(waits=True), steps=tuple(plain)), ROOM)
    assert {sizes.scratch for sizes in stored.sizes} == {1}
    right(back(_swap(waits=True)))


def test_what_was_wrong_stays_wrong() -> None:
    """A race between sending and storing is one afterwards too."""
    assert verify(_swap(waits=False)).verdict is Verdict.INVALID
    report = verify(back(_swap(waits=False)))
    assert report.verdict is Verdict.INVALID
    assert Kind.RACE in {violation.kind for violation in report.violations}


def test_a_doubled_sum_stays_one() -> None:
    ring = classic("ring-all-reduce", 3)
    last = max(n for n, step in enumerate(ring.steps) if step.kind == "r")
    step = ring.steps[last]
    steps = [*ring.steps]
    steps[last] = replace(step, kind="rrc", reads=step.writes)
    report = verify(back(replace(ring, steps=tuple(steps))))
    assert Kind.DOUBLED in {violation.kind for violation in report.violations}


def _blocks(plan: ExecutionPlan) -> list[int]:
    return [len(block.operations) for gpu in plan.gpus for block in gpu.blocks]


@pytest.mark.exhaustive
@pytest.mark.parametrize("apart", [0, 4])
def test_long_blocks_go_on_in_further_ones(apart: int) -> None:
    """The runtime has room for 64 operations in a block."""
    ring = classic("ring-all-reduce", 16, fused=True)
    found = one_sided(ring, ROOM, (lambda a, b: a // apart != b // apart) if apart else None)
    text = write_mscclpp(found)
    sizes = _blocks(parse_mscclpp(text, "ring"))
    assert max(sizes) <= ROOM
    assert len(sizes) > ring.ranks
    right(read_mscclpp(text, "ring"))


def test_signals_of_a_pair_keep_their_order() -> None:
    """A counter is raised by one block and awaited by one, so that no two waits compete."""
    found = one_sided(classic("ring-all-reduce", 16), ROOM)
    ends = [((s.rank, s.block), name) for s in found.steps for name in s.awaits]
    for name, users in groupby(sorted(ends, key=lambda e: (e[1], e[0])), key=lambda e: e[1]):
        assert len({where for where, _ in users}) == 1, name


def test_messages_beside_signals_are_refused() -> None:
    mixed = _swap(waits=True)
    steps = (replace(mixed.steps[0], posts=("x",)), *mixed.steps[1:])
    with pytest.raises(InputError, match="either messages or one-sided steps"):
        write_mscclpp(replace(mixed, steps=steps))


def test_a_sum_that_is_only_sent_on() -> None:
    """rrs stores nothing: the sum is made where the message lies."""
    own = [(Span(rank, IN, 0, 1),) for rank in range(3)]
    first, second = Connection(2, 1, 0), Connection(1, 0, 0)
    steps = (
        Step(0, 0, 0, "rrc", 1, own[0], (Span(0, OUT, 0, 1),), receive=second),
        Step(1, 0, 0, "rrs", 1, own[1], receive=first, send=second),
        Step(2, 0, 0, "s", 1, own[2], send=first),
    )
    right(back(Schedule("chain", contract("reduce", 3, 1), (Sizes(1, 1, 0),) * 3, steps)))
