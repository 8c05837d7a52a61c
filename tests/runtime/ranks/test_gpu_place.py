"""Which GPU a rank gets, and what NCCL is told, without a GPU."""

from __future__ import annotations

import os

import pytest
import torch
import torch.distributed as dist

from p2smt.errors import ExecutionError, InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks import worker
from p2smt.runtime.ranks.place import Place
from p2smt.runtime.schedules.schedule_job import schedule_job
from tests.runtime.schedules.tools import ring
from tests.runtime.tools import ALL, BLUE, program_request

VARIABLES = (
    "NCCL_HOSTID",
    "NCCL_MULTI_RANK_GPU_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_LAUNCH_ORDER_IMPLICIT",
)


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)


def place(rank: int) -> Place:
    return Place(rank, 4, rank, 4, "127.0.0.1", 0)


def gpu(rank: int, each: int) -> int | None:
    options = RunOptions(backend="nccl", device="cuda", ranks_per_gpu=each)
    return worker._device(options, place(rank)).index


def test_ranks_fill_one_gpu_after_the_other() -> None:
    assert [gpu(rank, 2) for rank in range(4)] == [0, 0, 1, 1]
    assert [gpu(rank, 1) for rank in range(2)] == [0, 1]


def test_too_few() -> None:
    with pytest.raises(ExecutionError, match="rank 2: needs GPU 2, but this machine has 2; start"):
        gpu(2, 1)


def told(monkeypatch: pytest.MonkeyPatch, version: int, each: int, chunks: int) -> dict[str, str]:
    """The variables that rank 3 sets."""
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, version, 7))
    job = Job(4, (program_request(ALL, BLUE, (2, 2), chunks=chunks),))
    options = RunOptions(backend="nccl", device="cuda", ranks_per_gpu=each)
    worker._prepare_nccl(job, options, place(3))
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def test_ranks_on_a_gpu_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 29, 1, 1) == {}


def test_ranks_that_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 29, 2, 1) == {"NCCL_HOSTID": "p2smt-rank-3"}


def test_ranks_that_share_a_gpu_with_newer_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch, 30, 2, 1)
    assert found == {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_NVLS_ENABLE": "0"}


def test_pipelined_kernels_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 29, 1, 3) == {"NCCL_LAUNCH_ORDER_IMPLICIT": "1"}
    monkeypatch.setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0")
    assert told(monkeypatch, 29, 1, 3) == {"NCCL_LAUNCH_ORDER_IMPLICIT": "0"}


def test_nccl_does_not_carry_schedules() -> None:
    options = RunOptions(backend="nccl", device="cuda")
    with pytest.raises(InputError, match="backend nccl on device cuda: does not run schedules"):
        worker._prepare_nccl(schedule_job(ring(4)), options, place(3))
