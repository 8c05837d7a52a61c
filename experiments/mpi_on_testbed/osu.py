"""What the OSU micro-benchmarks print with -f, measured by a rank of MPI: collectives and sizes.

    mpirun -n 8 python osu.py allreduce,allgather 1024,32768 --iterations 10

A size means what theirs does: of an all-gather and an all-to-all one rank's part.  A time is each
rank's mean over the iterations, each after a barrier.  With --each every iteration is a row of its
own, so that medians and spreads can be told; with --fill-ms short calls are repeated as often as
that, and at most --most times.  The first call of a size is not counted, unless it takes that long
itself and a smaller size has run before, so that all ranks are connected.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.mpi_on_testbed.mpis import TITLES

Array = np.ndarray[Any, np.dtype[np.float32]]
HEADING = "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"


def call_of(name: str, size_bytes: int) -> Callable[[], None]:
    """A call of the collective on fresh memory."""
    world, count = MPI.COMM_WORLD, size_bytes // 4
    whole = count * (world.size if name in ("allgather", "alltoall") else 1)
    send, receive = np.ones(whole, np.float32), np.empty(whole, np.float32)
    part = send[: count if name == "allgather" else count // world.size]
    calls: dict[str, Callable[[], None]] = {
        "allreduce": lambda: world.Allreduce(send, receive),
        "allgather": lambda: world.Allgather(part, receive),
        "alltoall": lambda: world.Alltoall(send, receive),
        "reduce_scatter_block": lambda: world.Reduce_scatter_block(send, receive[: part.size]),
    }
    return calls[name]


def taken_us(call: Callable[[], None]) -> float:
    """Microseconds of one call on this rank."""
    MPI.COMM_WORLD.Barrier()
    start_s = time.perf_counter()
    call()
    return (time.perf_counter() - start_s) * 1e6


def times_of(call: Callable[[], None], given: argparse.Namespace, connected: bool) -> list[float]:
    """Microseconds of each call that counts; the slowest rank's first one tells how many do."""
    first_us = taken_us(call)
    filling = 1e3 * given.fill_ms / MPI.COMM_WORLD.allreduce(first_us, MPI.MAX)
    counted = [first_us] if connected and 0 < filling < 1 else []
    iterations = max(given.iterations, min(given.most, int(filling)))
    return counted + [taken_us(call) for _ in range(iterations - len(counted))]


def show(size_bytes: int, own_us: float, iterations: int) -> None:
    """A row: mean, least and most of all ranks."""
    world = MPI.COMM_WORLD
    every = world.gather(own_us)
    if every is not None:
        mean = sum(every) / world.size
        print(f"{size_bytes} {mean:.2f} {min(every):.2f} {max(every):.2f} {iterations}", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("collectives")
    parser.add_argument("sizes")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--fill-ms", type=float, default=0.0)
    parser.add_argument("--most", type=int, default=20)
    given = parser.parse_args(arguments)
    for name in given.collectives.split(","):
        if MPI.COMM_WORLD.rank == 0:
            print(
                f"\n# OSU MPI {TITLES[name]} Latency Test, by experiments/mpi_on_testbed\n{HEADING}"
            )
        for place, size_bytes in enumerate(map(int, given.sizes.split(","))):
            times_us = times_of(call_of(name, size_bytes), given, connected=place > 0)
            for rows in times_us if given.each else [sum(times_us) / len(times_us)]:
                show(size_bytes, rows, 1 if given.each else len(times_us))


if __name__ == "__main__":
    main(sys.argv[1:])
