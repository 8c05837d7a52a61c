"""Payloads that the machine's memory cannot hold are refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions
from p2smt.runtime.payload import DataType
from p2smt.runtime.ranks.run import check_memory
from tests.runtime.tools import ALL, request

OPTIONS = RunOptions()


def free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")


def job(payload_bytes: int) -> Job:
    return Job(4, (request(ALL, (), ((0, 1, 2, 3),), payload_bytes),))


@pytest.mark.parametrize(
    ("data_type", "copies"), [(DataType.FLOAT32, 12), (DataType.BFLOAT16, 24), (DataType.INT64, 6)]
)
def test_checks_need_several_copies(data_type: DataType, copies: int) -> None:
    options, share = replace(OPTIONS, data_type=data_type), free_bytes() // 4 // copies
    check_memory(job(share // 2), options, 4)
    with pytest.raises(InputError, match=r"on each of 4 ranks: needs about .* of memory"):
        check_memory(job(share * 2), options, 4)


def test_without_checks_payloads_may_be_larger() -> None:
    share = free_bytes() // 4 // 12
    check_memory(job(share * 2), replace(OPTIONS, check=False), 4)
    with pytest.raises(InputError, match="needs about"):
        check_memory(job(share * 8), replace(OPTIONS, check=False), 4)


def test_the_memory_of_gpus_is_not_known() -> None:
    check_memory(job(free_bytes()), replace(OPTIONS, device="cuda"), 4)
