"""Schedules on real processes over Gloo, and what is refused there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.collectives import contract as contracts
from p2smt.errors import ExecutionError, InputError
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks.run_schedule import ScheduleResult, run_schedule
from p2smt.runtime.schedules.schedule_job import ScheduleJob, check_two_sided, schedule_job
from p2smt.schedules.classics import classic
from p2smt.schedules.model import Schedule, StepRef
from tests.runtime.schedules.tools import all_pairs, ring, sum_at_0
from tests.schedules.building import Blocks
from tests.schedules.small_schedules import exchange, meeting, one_to_one, put
from tests.tiers import but_the_first


def on_ranks(job: ScheduleJob, *, unverified: bool = False, **more: object) -> ScheduleResult:
    chosen: dict[str, object] = {"time_limit_s": 600.0, "repeat": 2, **more}
    result = run_schedule(job, RunOptions(**chosen), unverified=unverified)  # type: ignore[arg-type]
    assert result is not None
    return result


def _aside() -> Schedule:
    """What only few schedules have: explicit order, local signals, a meeting, a background step."""
    blocks = Blocks()
    for rank in (0, 1):
        blocks.copy(rank, 0, "i0", "s0", posts=(f"ready {rank}",), after=())
        blocks.send(rank, 0, 1 - rank, "i0", after=())
        blocks.receive("r", rank, 1, 1 - rank, "s1")
        blocks.add(rank, 1, "barrier", count=0, barrier="both")
        blocks.add(rank, 2, "wait", count=0, awaits=(f"ready {rank}",), barrier="both")
        blocks.copy(rank, 1, "s0", "o0")
        blocks.reduce(rank, 1, "s1", "o0")
        blocks.copy(rank, 3, "i0", "s2", background=True)
    contract = contracts.contract("allreduce", 2, 1, in_place=False)
    return blocks.schedule("aside", contract, scratch=3)


def _classics() -> list[Schedule]:
    return [
        classic("binomial-all-reduce", 3),
        classic("two-shot-all-reduce", 3),
        classic("ring-reduce-scatter", 4),
        classic("bruck-all-gather", 3),
    ]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    "schedule",
    but_the_first(ring(4), all_pairs(3), sum_at_0(), meeting(), _aside(), *_classics()),
    ids=lambda schedule: schedule.name,
)
def test_right_schedules_are_verified(schedule: Schedule) -> None:
    result = on_ranks(schedule_job(schedule, 6000))
    assert result.errors == ()
    assert result.verified
    assert (result.float_checked, result.verdict) == (True, "valid")
    assert len(result.total.samples) == 2
    assert min(result.total.samples) > 0
    assert [machine["device"] for machine in result.machines] == ["cpu"] * schedule.ranks


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    "data_type", but_the_first(DataType.BFLOAT16, DataType.FLOAT16, DataType.INT64)
)
def test_other_types(data_type: DataType) -> None:
    result = on_ranks(schedule_job(ring(3), 5000), data_type=data_type)
    assert result.verified
    assert result.float_checked == (data_type is not DataType.INT64)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_wrong_result_is_caught() -> None:
    job = schedule_job(ring(3, kind="r"), 6000)
    with pytest.raises(InputError, match="is not right in every interleaving"):
        run_schedule(job, RunOptions())
    result = on_ranks(job, unverified=True)
    assert not result.verified
    assert result.verdict == ""
    assert any("output chunk" in error and "wrong value" in error for error in result.errors)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("data_type", but_the_first(DataType.FLOAT32, DataType.INT64))
def test_what_was_never_written_is_caught(data_type: DataType) -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "s0")
    blocks.receive("r", 1, 0, 0, "o0")
    job = schedule_job(blocks.schedule("scratch", one_to_one(), scratch=1))
    result = on_ranks(job, unverified=True, data_type=data_type, repeat=0)
    (error,) = result.errors
    assert error.startswith("rank 1, output chunk 0, element 0: wrong value: expected")
    assert error.endswith("found what was never written")
    assert result.total.samples == ()


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_a_deadlock_ends_at_the_time_limit_and_says_where() -> None:
    job = schedule_job(exchange(3), 600, fifo_depth=2)
    with pytest.raises(InputError, match="connections of depth 2"):
        run_schedule(job, RunOptions())
    with pytest.raises(ExecutionError, match=r"ranks 0, 1: check: block 0 at step 2 s\b"):
        on_ranks(job, unverified=True, time_limit_s=25.0)
    assert on_ranks(schedule_job(exchange(3), 600, fifo_depth=3)).verified


def _not_two_sided() -> list[tuple[Schedule, str]]:
    remote, packets = put(), put(signal=False, packet=True)
    first, second = remote.steps
    local = replace(first, writes=())
    signal = replace(remote, steps=(local, replace(second, reads=())))
    mine = replace(packets.steps[1], writes=())
    return [
        (remote, r"rank 0 block 0 step 0 put \(line 4\): writes s\[0\] of rank 1, which needs"),
        (signal, r"rank 0 block 0 step 0 put \(line 4\): raises c, a signal between ranks"),
        (replace(packets, steps=(mine,)), r"rank 1 .* reads s\[0\] of rank 1 as packets"),
    ]


@pytest.mark.parametrize(("schedule", "text"), _not_two_sided())
def test_one_sided_steps_are_named(schedule: Schedule, text: str) -> None:
    with pytest.raises(InputError, match=text + ".*--backend reference"):
        check_two_sided(schedule)
    with pytest.raises(InputError, match=text):
        run_schedule(schedule_job(schedule), RunOptions())


def test_messages_must_fit() -> None:
    schedule = exchange(1)
    steps = [
        replace(step, count=2, writes=()) if step.kind == "r" else step for step in schedule.steps
    ]
    with pytest.raises(InputError, match=r"step 2 r \(line 7\): takes 2 chunks from 0->1"):
        check_two_sided(replace(schedule, steps=tuple(steps)))


@pytest.mark.parametrize("options", [{"backend": "nccl", "device": "cuda"}, {"device": "cuda"}])
def test_other_backends_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InputError, match="does not run schedules"):
        run_schedule(schedule_job(ring(2)), RunOptions(**options))  # type: ignore[arg-type]


def test_more_memory_than_there_is_is_refused() -> None:
    with pytest.raises(InputError, match="smaller payload"):
        run_schedule(schedule_job(ring(2), 10**15), RunOptions())
    with pytest.raises(InputError, match="smaller payload"):
        run_schedule(schedule_job(ring(2), 10**15), RunOptions(backend="reference"))


def test_reference_backend_tries_as_many_interleavings_as_repetitions() -> None:
    options = RunOptions(backend="reference", repeat=7)
    result = run_schedule(schedule_job(put()), options)
    assert result is not None
    assert (result.verified, result.interleavings, result.verdict) == (True, 7, "valid")
    assert len(result.machines) == 2


def test_reference_backend_names_what_goes_wrong() -> None:
    options = RunOptions(backend="reference", repeat=20)
    racing = run_schedule(schedule_job(put(signal=False)), options, unverified=True)
    assert racing is not None
    assert racing.errors[0].endswith("rank 1: output chunk 0 does not hold what it must")
    stuck = run_schedule(schedule_job(exchange(2), fifo_depth=1), options, unverified=True)
    assert stuck is not None
    assert (
        "deadlock: 10 steps are never done, these wait: rank 0 block 0 step 1 s"
        in (stuck.errors[0])
    )


def test_an_unknown_dependency_is_refused_before_anything_runs() -> None:
    schedule = ring(2)
    bad = replace(schedule.steps[0], waits=(StepRef(5, 0),))
    with pytest.raises(InputError, match="block 5 step 0"):
        schedule_job(replace(schedule, steps=(bad, *schedule.steps[1:])))
