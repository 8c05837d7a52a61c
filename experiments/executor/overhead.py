"""What the executor costs: a program of one all-reduce against the call itself.

    python -m experiments.executor.overhead --out experiments/executor/overhead.json

Ranks on this machine over Gloo.  ``RankProgram.run`` of a program of one all-reduce and
``torch.distributed.all_reduce`` take turns on the same tensor and process group; who is first
alternates.  The time of a run is that of its slowest rank.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from experiments.testbed.script import ended
from p2smt.collectives.names import Collective, RequestKind
from p2smt.report.progress import live_line
from p2smt.runtime.job import Groups as RankGroups
from p2smt.runtime.job import JobRequest, JobStep
from p2smt.runtime.payload import Cutting, DataType
from p2smt.runtime.process_groups import GroupCache
from p2smt.runtime.programs.rank_program import RankProgram, cut
from p2smt.runtime.programs.regions import moves_of
from p2smt.units import parse_bytes

LIMIT_S = 1800.0
Pair = tuple[float, float]
"""Seconds of the program and of the direct call."""


def program_on(tensor: torch.Tensor, rank: int, ranks: int) -> RankProgram:
    """A program of one all-reduce over all ranks."""
    whole: RankGroups = (tuple(range(ranks)),)
    steps = (JobStep("all-reduce", Collective.ALL_REDUCE, whole),)
    size = tensor.numel() * tensor.element_size()
    request = JobRequest("all-reduce", RequestKind.ALL_REDUCE, whole, steps, size)
    pieces = cut(tensor, Cutting.of(size, DataType.FLOAT32, ranks, 1))
    return RankProgram.prepare(moves_of(request, steps, ranks), pieces, rank, GroupCache(ranks))


def timed(run: Callable[[], object], tensor: torch.Tensor) -> float:
    """Seconds of a run on this rank, all ranks starting together."""
    tensor.fill_(1.0)
    dist.barrier()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measure_pairs(rank: int, ranks: int, size: int, warmup: int, pairs: int) -> list[Pair]:
    """This rank's times, after so many pairs that do not count."""
    elements = size // 4 // ranks * ranks  # whole rows: program and call work on the same elements
    tensor = torch.ones(elements)
    program = program_on(tensor, rank, ranks)
    found: list[Pair] = []
    for number in range(warmup + pairs):
        taken = {}
        turns = [("program", program.run), ("direct", lambda: dist.all_reduce(tensor))]
        for name, run in turns if number % 2 else reversed(turns):
            taken[name] = timed(run, tensor)
        found.append((taken["program"], taken["direct"]))
    if not bool((tensor == ranks).all()):
        raise RuntimeError(f"rank {rank}: the sum is wrong")
    return found[warmup:]


def be_rank(rank: int, address: str, out: Connection, *what: int) -> None:
    """The life of a rank."""
    ranks = what[0]
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    limit = timedelta(seconds=LIMIT_S)
    dist.init_process_group("gloo", address, limit, world_size=ranks, rank=rank)
    out.send(measure_pairs(rank, *what))
    dist.destroy_process_group()


def measure(ranks: int, size: int, warmup: int, pairs: int) -> list[Pair]:
    """Pairs of times, each that of the slowest rank."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    spawn = multiprocessing.get_context("spawn")
    ends = [spawn.Pipe(duplex=False) for _ in range(ranks)]
    processes = [
        spawn.Process(
            target=be_rank, args=(rank, address, out, ranks, size, warmup, pairs), daemon=True
        )
        for rank, (_, out) in enumerate(ends)
    ]
    for process in processes:
        process.start()
    for _, out in ends:
        out.close()
    every: list[list[Pair]] = [reading.recv() for reading, _ in ends]
    for process in processes:
        process.join()
    return [
        (max(program for program, _ in times), max(direct for _, direct in times))
        for times in zip(*every, strict=True)
    ]


def summary(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Medians, their ratio, and the quartiles of the ratios of pairs."""
    program, direct = (statistics.median(times) for times in zip(*pairs, strict=True))
    quartiles = statistics.quantiles([a / b for a, b in pairs], n=4, method="inclusive")
    return {
        "pairs": len(pairs),
        "program_median_s": round(program, 6),
        "direct_median_s": round(direct, 6),
        "ratio_of_medians": round(program / direct, 4),
        "paired_ratio_quartiles": [round(ratio, 4) for ratio in quartiles],
    }


def main(arguments: Sequence[str]) -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--payload", default="64MiB")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--out", type=Path, help="for the figures as JSON")
    given = parser.parse_args(arguments)
    size = parse_bytes(given.payload, "--payload")
    load = os.getloadavg()[0]
    with live_line(f"{given.pairs} pairs of runs"):
        pairs = measure(given.ranks, size, given.warmup, given.pairs)
    found = {
        "ranks": given.ranks,
        "payload_bytes": size,
        "data_type": "float32",
        "backend": "gloo",
        **summary(pairs),
        "machine": f"{os.cpu_count()} cores",
        "load_before": round(load, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("p2smt", "torch", "numpy")},
        "date": date.today().isoformat(),
        "pairs_s": [[round(program, 6), round(direct, 6)] for program, direct in pairs],
    }
    text = json.dumps(found, indent=1) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    print(json.dumps({name: found[name] for name in found if name != "pairs_s"}, indent=1))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
