"""MPI's own collectives and a program of p2smt on a test cluster, by size, in turns.

    python -m experiments.mpi_on_testbed.study --out experiments/mpi_on_testbed/results.json

Four nodes of two ranks, links of 100 Mbit/s.  In every round each arm runs once, in another order
than in the round before: MPI as it comes, and Open MPI without HAN; then `p2smt run` times the
program beside MPI's all-reduce as it comes.  With --tuned and --han, files that `p2smt export`
wrote for Open MPI, and --mpich and --mpich-ch4, MPICH's, the arms are MPI as it comes and with
them.  A time is the slowest rank's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.mpi_on_testbed.mpis import MPICH, OPEN_MPI, TITLES, ran
from experiments.testbed.model import topology_yaml
from experiments.testbed.network import cluster
from experiments.testbed.ranks import cluster_data
from experiments.testbed.script import ended
from experiments.testbed.spec import NetworkSpec, regular
from p2smt.interop.osu import PER_RANK, TESTS, parse_osu
from p2smt.report.progress import counted

NODES, PER_NODE, UPLINK_BYTES_PER_S = 4, 2, 12.5e6
RANKS = NODES * PER_NODE
SIZES = (2 * 2**10, 32 * 2**10, 256 * 2**10, 2**20, 8 * 2**20)
"""Of the whole vector; no table of examples/mpi has the larger ones."""
WITH_FILES = tuple(size * 2**10 for size in (1, 32, 256, 1024, 8 * 1024, 16 * 1024))
PROGRAM_SIZES = ("1MiB", "8MiB")
PROGRAM = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
ITERATIONS = 2
HOW = ("--each", "--iterations", "1", "--fill-ms", "500", "--most", "6")
"""Calls of a size in a round: up to six short ones, one of half a second or more."""
Samples = dict[str, dict[str, list[float]]]
"""Seconds of the slowest rank, by collective and by bytes."""


def arms_of(given: argparse.Namespace) -> list[tuple[str, str, tuple[str, ...]]]:
    """MPI, name and words for mpirun of each arm."""
    found: list[tuple[str, str, tuple[str, ...]]] = [
        (OPEN_MPI, "default", ()),
        (MPICH, "default", ()),
    ]
    if not with_files(given):
        found.append((OPEN_MPI, "without HAN", ("--mca", "coll", "^han")))
    if given.tuned and given.han:
        found.append((OPEN_MPI, "file", (*_rules("tuned", given.tuned), *_han(given.han))))
    if given.mpich:
        words = ("-genv", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", _path(given.mpich))
        ch4 = ("-genv", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE")
        more = (*ch4, _path(given.mpich_ch4)) if given.mpich_ch4 else ()
        found.append((MPICH, "file", (*words, *more)))
    return found


def with_files(given: argparse.Namespace) -> bool:
    """Whether files are measured: beside MPI as it comes alone, at sizes of all kinds."""
    return bool(given.tuned or given.mpich)


def _rules(component: str, path: Path) -> tuple[str, ...]:
    option = f"coll_{component}_dynamic_rules_filename"
    return ("--mca", f"coll_{component}_use_dynamic_rules", "1", "--mca", option, _path(path))


def _han(path: Path) -> tuple[str, ...]:
    option = "coll_han_dynamic_rules_filename"
    return ("--mca", "coll_han_use_dynamic_file_rules", "1", "--mca", option, _path(path))


def _path(path: Path) -> str:
    return str(path.resolve())


def measured(
    mpi: str, spec: NetworkSpec, more: Sequence[str], whole: Sequence[int] = SIZES
) -> Samples:
    """Every collective at every size of the whole vector, once an arm."""
    found: Samples = {}
    for name, title in TITLES.items():
        operation = TESTS[title.lower()]
        parts = RANKS if operation in PER_RANK else 1
        sizes = ",".join(str(size // parts) for size in whole)
        words = ("-m", "experiments.mpi_on_testbed.osu", name, sizes, *HOW)
        told = ran(mpi, spec, PER_NODE, words, more)
        ((_, table),) = parse_osu(told, name)
        rows = found.setdefault(operation.value, {})
        for timing in table.timings:
            rows.setdefault(str(timing.size_bytes * parts), []).append(round(timing.seconds, 7))
    return found


def program_beside(mpi: str, spec: NetworkSpec, topology: Path) -> list[Mapping[str, Any]]:
    """The program and MPI's own all-reduce, in turns, at each of its sizes."""
    place = ("-t", str(topology), "--axes", f"dp={RANKS}", "--placement", f"[[{NODES},{PER_NODE}]]")
    asked = [word for size in PROGRAM_SIZES for word in ("--reduce", f"dp={size}")]
    programs = [word for _ in PROGRAM_SIZES for word in ("--program", PROGRAM)]
    how = ("--backend", "mpi", "--repeat", str(ITERATIONS), "--json")
    told = ran(mpi, spec, PER_NODE, ("-m", "p2smt.cli", "run", *place, *asked, *programs, *how))
    keys = ("payload_bytes", "verified", "samples_s", "baseline_samples_s")
    return [{key: one[key] for key in keys} for one in json.loads(told)["requests"]]


def study(given: argparse.Namespace) -> dict[str, Any]:
    """All rounds."""
    spec, arms = regular(NODES, UPLINK_BYTES_PER_S), arms_of(given)
    sizes, timed = (WITH_FILES, ()) if with_files(given) else (SIZES, (OPEN_MPI, MPICH))
    found: dict[str, dict[str, Samples]] = {}
    programs: dict[str, list[Mapping[str, Any]]] = {}
    with cluster(spec), TemporaryDirectory() as folder:
        topology = Path(folder) / "nodes.yaml"
        topology.write_text(topology_yaml(spec, PER_NODE), encoding="utf-8")
        for turn in counted(range(given.rounds), "rounds"):
            for mpi, arm, more in arms[turn % len(arms) :] + arms[: turn % len(arms)]:
                _add(
                    found.setdefault(mpi, {}).setdefault(arm, {}), measured(mpi, spec, more, sizes)
                )
            for mpi in timed:
                programs.setdefault(mpi, []).extend(program_beside(mpi, spec, topology))
    return {
        "cluster": cluster_data(spec, PER_NODE),
        "machine": f"{os.cpu_count()} cores",
        "load": [round(load, 1) for load in os.getloadavg()],
        "date": date.today().isoformat(),
        "rounds": given.rounds,
        "program": PROGRAM,
        "collectives": found,
        "programs": programs,
    }


def _add(found: Samples, more: Samples) -> None:
    for operation, rows in more.items():
        for size, samples in rows.items():
            found.setdefault(operation, {}).setdefault(size, []).extend(samples)


def main(arguments: Sequence[str]) -> None:
    """Run the study and write its JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    for name in ("--tuned", "--han", "--mpich", "--mpich-ch4"):
        parser.add_argument(name, type=Path, help="a file that p2smt export wrote")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.write_text(json.dumps(study(given), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
