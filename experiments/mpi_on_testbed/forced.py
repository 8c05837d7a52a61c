"""Tables of MPI's own choices and of algorithms that are forced, for `p2smt export --measured`.

    python -m experiments.mpi_on_testbed.forced experiments/mpi_on_testbed/tables

One file for each MPI and algorithm, from 512 KiB on, at other sizes than those of the study.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.mpi_on_testbed.mpis import MPICH, OPEN_MPI, TITLES, ran
from experiments.mpi_on_testbed.study import NODES, PER_NODE, RANKS, UPLINK_BYTES_PER_S
from experiments.testbed.network import cluster
from experiments.testbed.script import ended, only_argument
from experiments.testbed.spec import NetworkSpec, regular
from p2smt.interop.osu import PER_RANK, TESTS

SIZES = (512 * 2**10, 4 * 2**20, 16 * 2**20)
"""Of the whole vector."""
ITERATIONS = 2
_OWN: Mapping[str, str] = dict.fromkeys(TITLES, "")
FORCED: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    OPEN_MPI: {
        "own": _OWN,
        "ring": {"allreduce": "4", "allgather": "4"},
        "rabenseifner": {"allreduce": "6"},
        "neighbor": {"allgather": "5"},
        "recursive_halving": {"reduce_scatter_block": "3"},
        "butterfly": {"reduce_scatter_block": "4"},
        "pairwise": {"alltoall": "2"},
        "linear": {"alltoall": "1"},
    },
    MPICH: {
        "own": {"allreduce": ""},
        "ring": {"allreduce": "ring"},
        "reduce_scatter_allgather": {"allreduce": "reduce_scatter_allgather"},
    },
}
"""By MPI and by the name of the file: collectives, and what forces the algorithm (empty: none)."""


def words_of(mpi: str, collective: str, algorithm: str) -> tuple[str, ...]:
    """What mpirun is told; an algorithm runs on the whole communicator, without a hierarchy."""
    if not algorithm:
        return ()
    if mpi == OPEN_MPI:
        rules = ("--mca", "coll", "^han", "--mca", "coll_tuned_use_dynamic_rules", "1")
        return (*rules, "--mca", f"coll_tuned_{collective}_algorithm", algorithm)
    name = f"MPIR_CVAR_{collective.upper()}"
    flat = ("-genv", f"{name}_COMPOSITION", "2")
    return (*flat, "-genv", f"{name}_INTRA_ALGORITHM", algorithm)


def table(mpi: str, spec: NetworkSpec, collective: str, algorithm: str) -> str:
    """What `osu.py` prints."""
    parts = RANKS if TESTS[TITLES[collective].lower()] in PER_RANK else 1
    sizes = ",".join(str(size // parts) for size in SIZES)
    measure = ("-m", "experiments.mpi_on_testbed.osu", collective, sizes)
    words = words_of(mpi, collective, algorithm)
    return ran(mpi, spec, PER_NODE, (*measure, "--iterations", str(ITERATIONS)), words).lstrip()


def main(arguments: Sequence[str]) -> None:
    """Measure all tables."""
    folder, spec = Path(only_argument(arguments, "FOLDER")), regular(NODES, UPLINK_BYTES_PER_S)
    with cluster(spec):
        for mpi, files in FORCED.items():
            (folder / mpi).mkdir(parents=True, exist_ok=True)
            for name, ways in files.items():
                text = "\n".join(table(mpi, spec, *way) for way in ways.items())
                (folder / mpi / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
