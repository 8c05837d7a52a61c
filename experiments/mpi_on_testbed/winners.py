"""Each algorithm of MPI that has a price, forced, by size: which is fastest, and which should be.

    python -m experiments.mpi_on_testbed.winners --out experiments/mpi_on_testbed/winners.json

On the cluster of the study, without a hierarchy of nodes.  In every round each algorithm of each
collective runs once, in another order than in the round before.  A time is the slowest rank's;
:mod:`experiments.mpi_on_testbed.predicted` fits the cost model to all sizes but one, and asks it
for the fastest at that one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from experiments.mpi_on_testbed.forced import words_of
from experiments.mpi_on_testbed.mpis import MPICH, OPEN_MPI, TITLES, ran
from experiments.mpi_on_testbed.study import NODES, PER_NODE, RANKS, UPLINK_BYTES_PER_S
from experiments.testbed.network import cluster
from experiments.testbed.ranks import cluster_data
from experiments.testbed.script import ended
from experiments.testbed.spec import NetworkSpec, regular
from p2smt.interop.osu import PER_RANK, TESTS, parse_osu
from p2smt.interop.tuners.mpi_writers import MPICH_NAMES, OPEN_MPI_NAMES, Named
from p2smt.interop.tuners.openmpi import ALGORITHMS

SIZES = tuple(32 * 2**10 * 4**k for k in range(5))
"""Of the whole vector: 32 KiB to 8 MiB."""
NAMES: Mapping[str, Named] = {OPEN_MPI: OPEN_MPI_NAMES, MPICH: MPICH_NAMES}
Times = dict[str, dict[str, dict[str, dict[str, list[float]]]]]
"""Seconds by MPI, collective as MPI names it, algorithm as the library does, and bytes."""


def arms() -> Iterator[tuple[str, str, str]]:
    """MPI, collective and algorithm."""
    for mpi, collectives in NAMES.items():
        for collective in TITLES:
            for algorithm in collectives[collective]:
                yield mpi, collective, algorithm


def forced_words(mpi: str, collective: str, algorithm: str) -> tuple[str, ...]:
    """What makes mpirun's ranks take an algorithm: of Open MPI its number."""
    number = ALGORITHMS[collective].index(algorithm) + 1 if mpi == OPEN_MPI else algorithm
    return words_of(mpi, collective, str(number))


def timed(
    mpi: str, spec: NetworkSpec, collective: str, algorithm: str, whole: Sequence[int]
) -> Iterator[tuple[str, float]]:
    """Bytes of the whole vector and seconds of each call."""
    parts = RANKS if TESTS[TITLES[collective].lower()] in PER_RANK else 1
    sizes = ",".join(str(size // parts) for size in whole)
    how = ("--each", "--iterations", "1", "--fill-ms", "300", "--most", "6")
    measure = ("-m", "experiments.mpi_on_testbed.osu", collective, sizes, *how)
    told = ran(mpi, spec, PER_NODE, measure, forced_words(mpi, collective, algorithm))
    ((_, table),) = parse_osu(told, collective)
    for timing in table.timings:
        yield str(timing.size_bytes * parts), round(timing.seconds, 7)


def winners(rounds: int, whole: Sequence[int] = SIZES) -> dict[str, Any]:
    """All rounds."""
    spec, every, found = regular(NODES, UPLINK_BYTES_PER_S), list(arms()), Times()
    with cluster(spec):
        for turn in range(rounds):
            start = turn * len(every) // rounds
            for mpi, collective, algorithm in every[start:] + every[:start]:
                rows = found.setdefault(mpi, {}).setdefault(collective, {})
                by_size = rows.setdefault(algorithm, {})
                for size, seconds in timed(mpi, spec, collective, algorithm, whole):
                    by_size.setdefault(size, []).append(seconds)
    return {
        "cluster": cluster_data(spec, PER_NODE),
        "machine": f"{os.cpu_count()} cores",
        "load": [round(load, 1) for load in os.getloadavg()],
        "date": date.today().isoformat(),
        "rounds": rounds,
        "times": found,
    }


def main(arguments: Sequence[str]) -> None:
    """Measure and write the JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.write_text(json.dumps(winners(given.rounds), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
