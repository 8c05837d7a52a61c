"""Work that the machine's memory cannot hold is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks import memory_check
from p2smt.runtime.ranks.memory_check import check_memory, need_of
from p2smt.runtime.ranks.on_ranks import execute, on_ranks
from p2smt.runtime.ranks.run_schedule import run_schedule
from p2smt.runtime.schedules.schedule_job import ScheduleJob, schedule_job
from tests.runtime.schedules.tools import ring, sum_at_0
from tests.runtime.tools import ALL, request

OPTIONS = RunOptions()
REFERENCE = RunOptions(backend="reference")


def free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")


def job(payload_bytes: int) -> Job:
    return Job(4, (request(ALL, (), ((0, 1, 2, 3),), payload_bytes),))


def ring_job(payload_bytes: int) -> ScheduleJob:
    return schedule_job(ring(4), payload_bytes)


@pytest.mark.parametrize(
    ("data_type", "copies"), [(DataType.FLOAT32, 12), (DataType.BFLOAT16, 24), (DataType.INT64, 6)]
)
def test_checks_need_several_copies(data_type: DataType, copies: int) -> None:
    options, share = replace(OPTIONS, data_type=data_type), free_bytes() // 4 // copies
    check_memory(job(share // 2), options, range(4))
    with pytest.raises(InputError, match=r"on each of 4 ranks: needs about .* of memory"):
        check_memory(job(share * 2), options, range(4))


def test_without_checks_payloads_may_be_larger() -> None:
    share = free_bytes() // 4 // 12
    check_memory(job(share * 2), replace(OPTIONS, check=False), range(4))
    with pytest.raises(InputError, match="needs about"):
        check_memory(job(share * 8), replace(OPTIONS, check=False), range(4))


def test_the_memory_of_gpus_is_not_known() -> None:
    check_memory(job(free_bytes()), replace(OPTIONS, device="cuda"), range(4))


@pytest.mark.parametrize("options", [OPTIONS, REFERENCE])
def test_a_schedule_is_refused_where_it_does_not_fit(options: RunOptions) -> None:
    """A payload p is p bytes of chunks at least, and not fifty times that."""
    share = free_bytes() // 4
    check_memory(ring_job(share // 50), options, range(4))
    with pytest.raises(InputError, match=r"schedule ring of 4 on 4 ranks: needs about .* are free"):
        check_memory(ring_job(share * 2), options, range(4))


@pytest.mark.parametrize("spare", [0, -1])
def test_a_schedule_fits_to_the_byte(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    need = need_of(ring_job(1 << 30), OPTIONS, range(4)).total_bytes
    monkeypatch.setattr(memory_check, "free_bytes", lambda: need + spare)
    if not spare:
        check_memory(ring_job(1 << 30), OPTIONS, range(4))
        return
    with pytest.raises(InputError, match="give a smaller payload, such as --payload 1MiB"):
        check_memory(ring_job(1 << 30), OPTIONS, range(4))
    with pytest.raises(InputError, match="give a smaller payload"):
        on_ranks(ring_job(1 << 30), OPTIONS)


def test_only_ranks_of_this_machine_count() -> None:
    """Rank 0 receives from the others, and has more to compare."""
    gathered = schedule_job(sum_at_0(), 1 << 20)
    whole, first, last = (
        need_of(gathered, OPTIONS, ranks).total_bytes for ranks in (range(3), [0], [2])
    )
    assert first > last > 1 << 20
    assert whole > first + last
    assert need_of(job(1000), OPTIONS, range(1, 3)).total_bytes == 2 * 12 * 1000


def test_work_is_weighed_wherever_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_check, "free_bytes", lambda: 1000)
    for options in (OPTIONS, REFERENCE):
        with pytest.raises(InputError, match="1000 B are free"):
            execute(job(1000), options)
        with pytest.raises(InputError, match="1000 B are free"):
            run_schedule(ring_job(1000), options)
