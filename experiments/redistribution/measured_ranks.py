"""The ranks of :mod:`experiments.redistribution.measured`: what takes turns, timed and compared."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.queues import Queue
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from p2smt.interop.arrays.torch_spec import spec_of
from p2smt.resharding.types import ArrayType
from p2smt.runtime.arrays.array_rank import RankArrays
from p2smt.runtime.arrays.block_values import ArrayValues
from p2smt.runtime.arrays.moves import ArrayGroups, as_bytes, run_steps
from p2smt.runtime.arrays.rank_steps import ArrayJob, rank_steps

WARMUP = 2
LIMIT_S = 600.0
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Way:
    """Steps that answer a question, by whom they are, and what they are in words."""

    name: str
    job: ArrayJob
    steps: list[str]


@dataclass(frozen=True)
class Question:
    """A redistribution and several ways to carry it out."""

    source: ArrayType
    target: ArrayType
    ways: tuple[Way, ...]


def measure_cases(asked: Sequence[Question], ranks: int, rounds: int) -> list[Times]:
    """Seconds of every way of every question, one per round, of the slowest rank."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    port = _free_port()
    processes = [
        context.Process(target=_rank, args=(rank, ranks, port, asked, rounds, answers))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    found: list[Times] = answers.get(timeout=LIMIT_S)
    for process in processes:
        process.join(LIMIT_S)
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _rank(
    rank: int, ranks: int, port: int, asked: Sequence[Question], rounds: int, answers: Queue[Any]
) -> None:
    torch.set_num_threads(1)
    address, limit = f"tcp://127.0.0.1:{port}", timedelta(seconds=LIMIT_S)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks, timeout=limit)
    found = [_measured(one, rank, rounds) for one in asked]
    if rank == 0:
        answers.put(found)
    dist.barrier()
    dist.destroy_process_group()


def _measured(asked: Question, rank: int, rounds: int) -> Times:
    job = asked.ways[0].job
    values = ArrayValues.of(job.frame, job.start, job.end, 1)
    arrays = RankArrays(values, rank, torch.device("cpu"))
    make = arrays.exact if job.reduces else arrays.moved
    local, right = make(job.start), make(job.end)
    turns = {way.name: _by_steps(way.job, local, rank) for way in asked.ways}
    turns["redistribute"] = _by_dtensor(asked, local)
    times: Times = {name: [] for name in turns}
    for number in range(-WARMUP, rounds):
        order = list(turns)
        first = number % len(order)
        for name in order[first:] + order[:first]:
            taken, found = _timed(turns[name])
            if not torch.equal(as_bytes(found.contiguous()), as_bytes(right)):
                raise RuntimeError(f"rank {rank}: {name} is wrong")
            if number >= 0:
                times[name].append(taken)
    return times


def _by_steps(job: ArrayJob, local: torch.Tensor, rank: int) -> Callable[[], torch.Tensor]:
    groups = ArrayGroups()
    for step in job.steps:
        groups.make(step.groups(job.frame))
    steps = rank_steps(job.frame, job.steps, job.sources, rank)
    return lambda: run_steps(local, steps, groups)


def _by_dtensor(asked: Question, local: torch.Tensor) -> Callable[[], torch.Tensor]:
    mesh = asked.source.mesh
    names = tuple(axis.name for axis in mesh.axes)
    on = init_device_mesh("cpu", mesh.sizes, mesh_dim_names=names)
    before, after = (spec_of(kind, on).placements for kind in (asked.source, asked.target))
    given = DTensor.from_local(local, on, before, run_check=False)
    return lambda: given.redistribute(placements=after).to_local()


def _timed(run: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    """Seconds of the slowest rank, all starting together."""
    dist.barrier()
    begin = time.perf_counter()
    found = run()
    taken = torch.tensor(time.perf_counter() - begin, dtype=torch.float64)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return float(taken), found
