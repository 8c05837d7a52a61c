"""Waits in MSCCL XML end when the runtime's interpreter ends them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.errors import InputError
from p2smt.interop.msccl.read import read_msccl
from p2smt.interop.schedule_files import written
from p2smt.schedules.model import Schedule, StepRef
from p2smt.schedules.verify.repair import find_repair
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.interop.msccl.texts import algo, block, gpu, step


def exchange(*hasdep: int, deps: int = 0) -> Schedule:
    """Rank 0 and 1 exchange chunks by way of scratch; block 1 reduces what block 0 received.

    hasdep: of the two receives of block 0.  deps: which of them block 1 waits for first.
    """

    def rank(number: int) -> str:
        receives = [step(k, "r", f"s{k}", hasdep=has) for k, has in enumerate(hasdep)]
        sends = [step(k, "s", f"i{k}") for k in range(2)]
        sums = [
            step(0, "nop", cnt=0, depid=0, deps=1 if hasdep[1] else 0),
            step(1, "re", "s0", "i0", depid=0, deps=deps),
            step(2, "re", "s1", "i1"),
        ]
        inside = [block(0, *receives, recv=1 - number), block(1, *sums)]
        return gpu(number, *inside, block(2, *sends, send=1 - number), chunks=(2, 2, 2))

    text = algo([rank(0), rank(1)], nchunksperloop=2)
    return read_msccl(text, "f.xml")


def test_a_wait_for_an_announced_step_is_one() -> None:
    schedule = exchange(1, 1)
    assert not any(each.unannounced for each in schedule.steps)
    assert not schedule.warnings


def test_a_wait_that_nothing_ends_is_invalid() -> None:
    report = verify(exchange(0, 0))
    assert report.verdict is Verdict.INVALID
    assert {broken.kind for broken in report.violations} == {Kind.NEVER_ANNOUNCED}
    first = report.violations[0]
    assert "hasdep=0" in first.message
    assert "every run hangs" in first.message
    assert not any("forever" in text for text in exchange(0, 0).warnings)


def test_a_later_announcement_ends_a_wait_for_an_earlier_step() -> None:
    schedule = exchange(0, 1)
    waits = [each.waits for each in schedule.steps if each.kind == "re"]
    assert waits[0] == (StepRef(0, 1),)
    assert any("the next with hasdep=1" in text for text in schedule.warnings)
    assert verify(exchange(1, 1)).verdict is not Verdict.UNKNOWN


def test_a_wait_that_ends_too_late_is_a_deadlock() -> None:
    """Block 0 announces only after a step that waits for block 1: which waits for block 0."""
    first = block(
        0,
        step(0, "cpy", "i0", "s0", hasdep=0),
        step(1, "cpy", "s1", "s2", depid=1, deps=0, hasdep=1),
    )
    second = block(1, step(0, "cpy", "s0", "s1", depid=0, deps=0, hasdep=1))
    text = algo([gpu(0, first, second, chunks=(1, 1, 3))], nchunksperloop=1)
    (broken,) = verify(read_msccl(text, "f.xml")).violations
    assert broken.kind is Kind.DEADLOCK
    announced = text.replace('hasdep="0"', 'hasdep="1"')
    assert verify(read_msccl(announced, "f.xml")).verdict is Verdict.VALID


def test_the_repair_is_to_announce() -> None:
    first = block(0, step(0, "cpy", "i0", "s0", hasdep=0))
    second = block(1, step(0, "cpy", "s0", "i0", depid=0, deps=0, hasdep=0))
    schedule = read_msccl(algo([gpu(0, first, second, chunks=(1, 1, 1))]), "f.xml")
    report = verify(schedule)
    assert report.violations[0].kind is Kind.NEVER_ANNOUNCED
    repair = find_repair(schedule, report).repair
    assert repair is not None
    assert "announce block 0 step 0" in repair.change


@pytest.mark.parametrize("target", ["a.xml", "a.json", "a.yaml"])
def test_a_wait_that_never_ends_is_not_written_as_one_that_does(target: str) -> None:
    schedule = exchange(0, 0)
    with pytest.raises(InputError, match="never announced"):
        written(schedule, target)
    told = tuple(replace(each, unannounced=()) for each in schedule.steps)
    if target != "a.json":
        assert written(replace(schedule, steps=told), target)


def after_nops(*inside: str, deps: int) -> Schedule:
    """Block 1 waits for a step of block 0, of which ``inside`` are the steps."""
    second = block(1, step(0, "cpy", "s0", "s1", depid=0, deps=deps))
    text = algo([gpu(0, block(0, *inside), second, chunks=(1, 1, 3))], nchunksperloop=1)
    return read_msccl(text, "f.xml")


def copies(first: int, *hasdep: int) -> list[str]:
    return [step(first + k, "cpy", "i0", "s0", hasdep=has) for k, has in enumerate(hasdep)]


def test_a_nop_that_waits_for_nothing_is_not_counted() -> None:
    """The runtime announces place 1 as 0, and nothing after it: a wait for 1 never ends."""
    schedule = after_nops(step(0, "nop", cnt=0), *copies(1, 1, 0), deps=1)
    report = verify(schedule)
    assert {broken.kind for broken in report.violations} == {Kind.NEVER_ANNOUNCED}
    assert "a nop that waits for nothing" in report.violations[0].message
    without = after_nops(*copies(0, 1, 0), deps=0)
    assert verify(without).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("nops", "hasdep", "deps", "ended"),
    [
        (1, (1, 1), 1, 2),
        (1, (1, 1), 0, 1),
        (2, (1, 0, 1, 1), 2, 4),
        (2, (1, 1, 1, 1), 3, 5),
        (2, (1, 1, 1), 4, None),
    ],
)
def test_a_wait_ends_with_the_first_number_that_is_no_smaller(
    nops: int, hasdep: tuple[int, ...], deps: int, ended: int | None
) -> None:
    idle = [step(k, "nop", cnt=0) for k in range(nops)]
    schedule = after_nops(*idle, *copies(nops, *hasdep), deps=deps)
    (waiting,) = (each for each in schedule.steps if each.block == 1)
    if ended is None:
        assert waiting.unannounced == (StepRef(0, deps),)
    else:
        assert waiting.waits == (StepRef(0, ended),)
        assert not waiting.unannounced


def test_a_nop_that_waits_is_counted() -> None:
    first = [step(0, "nop", cnt=0, depid=2, deps=0), step(1, "cpy", depid=3, deps=0, hasdep=1)]
    others = [block(k, step(0, "cpy", "s2", hasdep=1)) for k in (2, 3)]
    second = block(1, step(0, "cpy", "s0", "s1", depid=0, deps=1))
    inside = [block(0, *first), second, *others]
    schedule = read_msccl(algo([gpu(0, *inside, chunks=(1, 1, 3))], nchunksperloop=1), "f.xml")
    (waiting,) = (each for each in schedule.steps if each.block == 1)
    assert waiting.waits == (StepRef(0, 1),)


def test_a_wait_that_ends_late_after_a_nop_is_told() -> None:
    schedule = after_nops(step(0, "nop", cnt=0), *copies(1, 1, 1), deps=1)
    assert any("announced too low, as the runtime does not" in text for text in schedule.warnings)
