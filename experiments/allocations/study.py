"""Solves the jobs of the study and writes ``results.json``.

python -m experiments.allocations.study [--times] [NODES[:SEEDS] ..]

Without arguments all sizes; with numbers of nodes those alone, and of them the first seeds; all
other jobs keep their rows.  ``--times`` renews what searches took, too.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import p2smt
from experiments.allocations.jobs import SEEDS, SIZES, Job, jobs
from experiments.testbed.script import ended
from experiments.testbed.written import results, timings
from p2smt.errors import InputError
from p2smt.report.progress import counted

RESULTS = Path(__file__).resolve().parent / "results.json"
PACKAGES = ("p2smt", "ortools", "numpy")
COLUMNS = (
    *("nodes", "leaves", "seed", "stages", "members", "weight", "uplinks", "status"),
    *("objective_s", "bound_s", "alphabetical_s", "sorted_s", "exchanged_s", "random_s"),
)
KEYS, WORKERS, DIGITS = 7, 2, 6
Row = list[Any]


def row(job: Job) -> tuple[Row, timings.Times]:
    """One job solved, beside the orders that it is compared with, and what it took."""
    problem = job.problem()
    hosts = problem.topology.hosts
    listed = list(hosts.names) if hosts else []
    orders = {order.name: order.objective_s for order in p2smt.baselines(problem, listed)}
    shuffled = random.Random(job.seed).sample(sorted(listed), len(listed))
    random_s = p2smt.baselines(problem, shuffled)[0].objective_s
    limits = p2smt.SearchLimits(time_limit_s=job.size.limit_s, seed=job.seed, workers=WORKERS)
    wall_s, cpu_s = time.monotonic(), time.process_time()
    found = p2smt.solve_on_hosts(problem, sorted(listed), limits=limits, programs=False)
    wall_s, cpu_s = time.monotonic() - wall_s, time.process_time() - cpu_s
    if found.best is None:
        raise InputError(f"job {job}", "has no answer")
    times = (
        *(found.best.objective_s, found.bound_s, orders["alphabetical"]),
        *(orders["sorted by leaf"], orders["sorted, axes exchanged"], random_s),
    )
    values = [
        *(job.size.nodes, job.size.leaves, job.seed, *job.grid, job.weight, job.uplinks),
        found.status.value,
        *(results.rounded(value, DIGITS) for value in times),
    ]
    return values, {"wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2)}


def key(row: Row) -> str:
    """The job of a row, as its times are kept."""
    return " ".join(map(str, row[:KEYS]))


def header() -> dict[str, Any]:
    """What is needed to run the same again."""
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "workers": WORKERS,
        "columns": list(COLUMNS),
    }


def chosen(arguments: Sequence[str]) -> list[Job]:
    """The jobs that are named."""
    known, found = {str(size.nodes): size for size in SIZES}, []
    for text in arguments or known:
        nodes, _, seeds = text.partition(":")
        if nodes not in known or not (seeds or "1").isdecimal():
            raise InputError(f"size {text[:40]!r}", f"must be NODES[:SEEDS], of {', '.join(known)}")
        most = int(seeds) if seeds else len(SEEDS)
        found += [job for job in jobs(known[nodes]) if job.seed in SEEDS[:most]]
    return found


def renew(new: Row) -> None:
    """Put a row in its place among the committed ones."""
    rows: list[Row] = results.read(RESULTS)["jobs"] if RESULTS.exists() else []
    rows = [one for one in rows if one[:KEYS] != new[:KEYS]]
    results.write(RESULTS, {**header(), "jobs": sorted([*rows, new], key=lambda one: one[:KEYS])})


def main(arguments: Sequence[str]) -> None:
    """The script."""
    named, anew = timings.taken(arguments)
    for job in counted(chosen(named), "jobs"):
        found, times = row(job)
        print(*found, *times.values(), flush=True)
        renew(found)
        timings.keep(RESULTS.parent, {key(found): times}, anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
