"""The greatest rates with their forests, beside ForestColl; schedules of forests, and by payload.

    python -m experiments.schedule_synthesis.forests [--times] [FORESTCOLL PYTHON]

Whole processes, one after the other, start-up included; and solving alone: from a graph in memory
to rate and trees.  FORESTCOLL is a clone of liangyuRain/ForestColl at the commit below; PYTHON runs
it, and has networkx.  Without them its rows are left out, and the page says so.  Writes the folder
``found`` and FORESTS.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from experiments.schedule_synthesis.compare import ROOT
from experiments.schedule_synthesis.processes import ran
from experiments.schedule_synthesis.store import HERE, Row, measured_on
from experiments.testbed.script import ended
from experiments.testbed.written import timings
from p2smt.errors import ExecutionError, InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.report.progress import counted
from p2smt.result import SearchLimits
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.forests.network import failures_of, ground_of_fabric
from p2smt.synthesis.forests.throughput import throughput

FOLDER, PAGE = HERE / "found", HERE / "FORESTS.md"
FOUND = FOLDER / "forests.json"
COMMIT = "3c13aee84e2934672584bbfeea132d04e470531b"
LIMIT_S, ENOUGH_S = 400.0, 0.5
"""Of a process; solving is repeated for so long."""
_FINEST = 1000
"""ForestColl says its rate as a float: the nearest fraction with such a denominator is shown."""
OURS, THEIRS = "p2smt", "ForestColl"
TIMED = timings.Timed(FOLDER, ("cpu_s", "solving_s"), lambda row: f"{row['title']} {row['tool']}")
TWO_LEVELS = """name: two-level
levels:
  - {name: leaf, size: 8,
     link: {kind: switch, fabric: infiniband, bandwidth: 800 GB/s, latency: 5 us}}
  - {name: node, size: 16,
     link: {kind: switch, fabric: infiniband, ports: 8, bandwidth: 50 GB/s, latency: 5 us}}
  - {name: gpu, size: 8, link: {kind: switch, fabric: nvlink4, bandwidth: 450 GB/s, latency: 1 us}}
"""
SIZES = "-t dgx-a100:2 --collective all-reduce --size 1KiB..1GiB --max-steps 6"
THEIR_PROGRAM = """
import time
import networkx as nx
from pipeline_allgather import optimal_pipeline_spanning_trees
from topologies import a100_topology, mi250_topology
from fractions import Fraction

def torus(size):
    grid = nx.grid_2d_graph(size, size, periodic=True).to_directed()
    nx.set_edge_attributes(grid, 1, "capacity")
    return grid, sorted(grid.nodes)

G, gpus = {topology}
for what, ends in map(str.split, {failed}):
    first, last = map(int, (ends + "-" + ends).split("-")[:2])
    if what == "card":
        G.remove_node((first // 8, "mlx5", first % 8))
    else:
        pair = gpus[first], gpus[last]
        G.remove_edges_from([pair, pair[::-1]])
took = []
while sum(took) < {enough_s}:
    copy = G.copy()
    start = time.process_time()
    (U, k), (trees, _) = optimal_pipeline_spanning_trees(copy, compute_nodes=gpus)
    took.append(time.process_time() - start)
print(Fraction(len(gpus) * k) / Fraction(U), len(trees), min(took), sum(took[1:]))
"""


@dataclass(frozen=True, slots=True)
class ForestInstance:
    """A fabric as p2smt's options, what has failed of it, and as ForestColl builds it ("": not)."""

    name: str
    options: str
    failed: tuple[str, ...] = ()
    theirs: str = ""

    @property
    def title(self) -> str:
        """Its name, with what has failed."""
        return ", no ".join((self.name, *self.failed))


RATES = (
    ForestInstance("A100 x 1", "--fabric dgx-a100", theirs="a100_topology(1)"),
    ForestInstance("A100 x 2", "--fabric dgx-a100:2", theirs="a100_topology(2)"),
    ForestInstance("A100 x 2", "--fabric dgx-a100:2", ("card 0", "card 3"), "a100_topology(2)"),
    ForestInstance("A100 x 3", "--fabric dgx-a100:3", theirs="a100_topology(3)"),
    ForestInstance("MI250 x 1", "--fabric mi250", theirs="mi250_topology(1)"),
    ForestInstance("MI250 x 1", "--fabric mi250", ("link 0-1", "link 3-11"), "mi250_topology(1)"),
    ForestInstance(
        "MI250 x 2",
        "--fabric mi250:2",
        ("link 0-1", "link 3-11", "link 16-20"),
        "mi250_topology(2)",
    ),
    ForestInstance("torus 4x4", "--fabric torus:4x4", theirs="torus(4)"),
    ForestInstance(
        "torus 4x4", "--fabric torus:4x4", ("link 0-1", "link 6-10", "link 8-9"), "torus(4)"
    ),
    ForestInstance("dgx-h100:2", "-t dgx-h100:2"),
    ForestInstance("dgx-h100:16", "-t dgx-h100:16"),
    ForestInstance("dgx-h100:128", "-t dgx-h100:128"),
    ForestInstance("1,024 GPUs in two levels", "-t levels.yaml"),
    ForestInstance("1,024 GPUs in two levels", "-t levels.yaml", ("card 3",)),
    ForestInstance("A100 x 2, 52 pieces", "--fabric dgx-a100:2 --pieces 52"),
    ForestInstance("MI250 x 1, 96 pieces", "--fabric mi250 --pieces 96"),
)


def our_row(asked: ForestInstance, folder: Path) -> Row:
    """A rate, and what a schedule takes of the forest's time.

    Raises:
        ExecutionError: the process fails.
    """
    failed = [f"--without={one}" for one in asked.failed]
    options = ["--collective", "all-gather", "--objective", "throughput", *failed]
    data, cpu_s = _printed([*options, *asked.options.split()], folder)
    made = data["schedule"]
    over = None if made is None else str(Fraction(made["time"]) / Fraction(data["time"]))
    rate = str(Fraction(data["throughput"]) / (10**9 if data["measured"] else 1))
    found = {"status": data["status"], "rate": rate, "trees": len(data["trees"]), "over": over}
    row = {"title": asked.title, "tool": OURS, **found, "cpu_s": cpu_s}
    return row | _solving(asked) if asked.theirs else row


def _solving(asked: ForestInstance) -> Row:
    """CPU seconds of rate, trees and their check, the least of some runs; are there symmetries."""
    fabric, took = load_fabric(asked.options.split()[-1]), list[float]()
    while sum(took) < ENOUGH_S:
        ground = ground_of_fabric(fabric, None, failures_of(asked.failed))
        start = time.process_time()
        throughput(ground, BoundedCollective.ALL_GATHER, SearchLimits())
        took.append(time.process_time() - start)
    return {"symmetric": bool(ground.symmetries), "solving_s": round(min(took), 4)}


def sizes_row(folder: Path) -> Row:
    """Times and prices by payload."""
    data, cpu_s = _printed(SIZES.split(), folder)
    keys = ("size_bytes", "steps", "rounds", "chunks", "seconds", "bound_s", "price_s", "library_s")
    rows = [{key: row[key] for key in keys} for row in data["sizes"][::2]]
    found = {"ratio": data["ratio"], "library": data["library"], "sizes": rows}
    return {"title": SIZES, "tool": OURS, **found, "cpu_s": cpu_s}


def _printed(arguments: Sequence[str], folder: Path) -> tuple[Any, float]:
    command = [sys.executable, "-m", "p2smt.cli", "synthesize", *arguments, "--json"]
    run = ran(command, os.environ | {"PYTHONPATH": str(ROOT)}, folder, 4 * LIMIT_S)
    if run.code not in (0, 3) or not run.in_time:
        raise ExecutionError(f"{' '.join(arguments)}: {run.errors.strip()[-200:]}")
    return json.loads(run.printed), round(run.cpu_s, 2)


def their_row(asked: ForestInstance, clone: Path, python: str, folder: Path) -> Row:
    """The rate that ForestColl says, with its trees.

    Raises:
        ExecutionError: it fails.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    program = THEIR_PROGRAM.format(topology=asked.theirs, failed=asked.failed, enough_s=ENOUGH_S)
    run = ran([python, "-c", program], kept | {"PYTHONPATH": str(clone)}, folder, LIMIT_S)
    if run.in_time and run.code:
        raise ExecutionError(f"{asked.title}: {run.errors.strip()[-200:]}")
    row: Row = {"title": asked.title, "tool": THEIRS, "over": None}
    if not run.in_time:
        return row | {"status": "late", "rate": None, "trees": None, "cpu_s": round(run.cpu_s, 2)}
    said, trees, solving, again = run.printed.split()[-4:]
    rate = str(Fraction(said).limit_denominator(_FINEST))
    times = {"cpu_s": round(run.cpu_s - float(again), 2), "solving_s": round(float(solving), 4)}
    return row | {"status": "answered", "rate": rate, "trees": int(trees)} | times


def checked_clone(path: str) -> Path:
    """The clone, if it is at the commit.

    Raises:
        InputError: it is none, or at another.
    """
    command = ["git", "-C", path, "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout.strip() != COMMIT:
        rule = f"is not a clone of liangyuRain/ForestColl at {COMMIT}"
        raise InputError(f"folder {path!r}", rule, "clone it, and check that commit out")
    return Path(path).resolve()


def page(rows: Sequence[Row], on: str) -> str:
    """The page of rows with their times."""
    rates, (sized,) = [one for one in rows if "sizes" not in one], [r for r in rows if "sizes" in r]
    peers = any(one["tool"] == THEIRS for one in rates)
    skipped = f"{THEIRS} was not run: no clone was named (FORESTCOLL=, PYTHON_OF_CLONES=)."
    beside = f"{THEIRS} is at commit `{COMMIT[:12]}`." if peers else skipped
    lines = [
        f"| {one['title']} | {one['tool']} | {one['rate'] or '-'} | {one['trees'] or '-'} | "
        f"{_over(one)} | {one['status']} | {one['cpu_s']:.2f} | {one.get('solving_s', '')} |"
        for one in rates
    ]
    size_lines = [
        f"| {one['size_bytes']} | ({one['steps']},{one['rounds']},{one['chunks']}) | "
        f"{one['seconds'] / one['bound_s']:.3f} | {one['price_s'] / one['library_s']:.2f} |"
        for one in sized["sizes"]
    ]
    return "\n".join(
        (
            "# Forests and schedules by payload\n",
            "Written by `python -m experiments.schedule_synthesis.forests`: whole processes, "
            f"start-up included, in CPU seconds. Measured on {on}. {beside}\n",
            "All-gathers; rates in GB/s of the whole result (torus: chunks a round). Trees: with "
            "symmetries those of one root of each kind. Of schedules in pieces: their time over "
            f"the forest's. {_beside_words(rates)}\n",
            "| instance | tool | rate | trees | over the forest | status | CPU s | of it solving |",
            "|---|---|---|---|---|---|---|---|",
            *lines,
            f"\n`p2smt synthesize {SIZES}`: {sized['cpu_s']:.0f} CPU s, at most "
            f"{float(Fraction(sized['ratio'])):.3f} times the least time of the model. Prices are "
            f"predictions, beside {sized['library']}'s own choice; nobody ran these schedules.\n",
            "| bytes | (S,R,C) | time over bound | price over the library's |",
            "|---|---|---|---|",
            *size_lines,
            "",
        )
    )


def _beside_words(rates: Sequence[Row]) -> str:
    """How rates and the times of solving compare, and where ForestColl's process took less."""
    ours = {one["title"]: one for one in rates if one["tool"] == OURS}
    both = [(ours[one["title"]], one) for one in rates if one["tool"] == THEIRS and one["rate"]]
    if not both:
        return ""
    same = all(own["rate"] == peer["rate"] for own, peer in both)
    faster = [peer["title"] for own, peer in both if peer["cpu_s"] < own["cpu_s"]]
    words = "the same in every row" if same else "not the same in every row"
    lost = f"It took less time, start-up included, for {'; '.join(faster)}." if faster else ""
    gains = (
        f"{_gains(both, symmetric=True)} where the fabric has symmetries, "
        f"{_gains(both, symmetric=False)} where it has none"
    )
    return (
        f"ForestColl's rate, a float, is shown as the nearest small fraction: {words}. {lost} "
        "Solving is from a graph in memory, whose symmetries p2smt knows by then, to rate and "
        f"trees (p2smt's: checked), the least of the runs of {ENOUGH_S} s: p2smt's is shorter by a "
        f"factor of {gains}."
    )


def _gains(both: Sequence[tuple[Row, Row]], *, symmetric: bool) -> str:
    found = [p["solving_s"] / own["solving_s"] for own, p in both if own["symmetric"] is symmetric]
    return f"{min(found):.2g} to {max(found):.{2 if max(found) < 100 else 4}g}"


def _over(row: Row) -> str:
    return "" if row["over"] is None else f"{float(Fraction(row['over'])):.3f}"


def main(arguments: Sequence[str]) -> None:
    """Ask everything, and store it.

    Raises:
        InputError: the arguments are not these.
    """
    named, anew = timings.taken(arguments)
    if len(named) not in (0, 2):
        raise InputError(f"{len(named)} arguments", "FORESTCOLL PYTHON is expected, or none")
    clone = checked_clone(named[0]) if named else None
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "levels.yaml").write_text(TWO_LEVELS, encoding="utf-8")
        for asked in counted(RATES, "instances"):
            rows.append(our_row(asked, folder))
            if clone is not None and asked.theirs:
                rows.append(their_row(asked, clone, named[1], folder))
        rows.append(sizes_row(folder))
    lines = ",\n".join(json.dumps(one) for one in TIMED.apart(rows, anew, measured_on()))
    FOUND.write_text(f'{{"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    stored = TIMED.joined(json.loads(FOUND.read_text(encoding="utf-8"))["rows"])
    PAGE.write_text(page(stored, timings.measured_on(FOLDER)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
