"""The greatest rates with their forests, beside ForestColl; schedules of forests, and by payload.

    python -m experiments.schedule_synthesis.forests [--times] [FORESTCOLL PYTHON]

Whole processes, one after the other, start-up included.  FORESTCOLL is a clone of
liangyuRain/ForestColl at the commit below; PYTHON runs it, and has networkx.  Without them its rows
are left out, and the page says so.  Writes the folder ``found`` and FORESTS.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from experiments.schedule_synthesis.compare import ROOT
from experiments.schedule_synthesis.processes import ran
from experiments.schedule_synthesis.store import HERE, Row, measured_on
from experiments.testbed.script import ended
from experiments.testbed.written import timings
from p2smt.errors import ExecutionError, InputError
from p2smt.report.progress import counted

FOLDER, PAGE = HERE / "found", HERE / "FORESTS.md"
FOUND = FOLDER / "forests.json"
COMMIT = "3c13aee84e2934672584bbfeea132d04e470531b"
LIMIT_S = 400.0
_FINEST = 1000
"""ForestColl says its rate as a float: the nearest fraction with such a denominator is shown."""
OURS, THEIRS = "p2smt", "ForestColl"
TIMED = timings.Timed(FOLDER, ("cpu_s",), lambda row: f"{row['title']} {row['tool']}")
TWO_LEVELS = """name: two-level
levels:
  - {name: leaf, size: 8,
     link: {kind: switch, fabric: infiniband, bandwidth: 800 GB/s, latency: 5 us}}
  - {name: node, size: 16,
     link: {kind: switch, fabric: infiniband, ports: 8, bandwidth: 50 GB/s, latency: 5 us}}
  - {name: gpu, size: 8, link: {kind: switch, fabric: nvlink4, bandwidth: 450 GB/s, latency: 1 us}}
"""
RATES: tuple[tuple[str, str, str], ...] = (
    ("A100 x 1", "--fabric dgx-a100", "a100_topology(1)"),
    ("A100 x 2", "--fabric dgx-a100:2", "a100_topology(2)"),
    ("MI250 x 1", "--fabric mi250", "mi250_topology(1)"),
    ("dgx-h100:2", "-t dgx-h100:2", ""),
    ("dgx-h100:16", "-t dgx-h100:16", ""),
    ("dgx-h100:128", "-t dgx-h100:128", ""),
    ("1,024 GPUs in two levels", "-t levels.yaml", ""),
    ("the same, a card gone", "-t levels.yaml --without=card=3", ""),
    ("A100 x 2, 52 pieces", "--fabric dgx-a100:2 --pieces 52", ""),
    ("MI250 x 1, 96 pieces", "--fabric mi250 --pieces 96", ""),
)
SIZES = "-t dgx-a100:2 --collective all-reduce --size 1KiB..1GiB --max-steps 6"
THEIR_PROGRAM = """
from pipeline_allgather import optimal_pipeline_spanning_trees
from topologies import a100_topology, mi250_topology
from fractions import Fraction
G, gpus = {topology}
(U, k), (trees, _) = optimal_pipeline_spanning_trees(G, compute_nodes=gpus)
print(Fraction(len(gpus) * k) / Fraction(U), len(trees))
"""


def our_row(title: str, arguments: str, folder: Path) -> Row:
    """A rate, and what a schedule takes of the forest's time.

    Raises:
        ExecutionError: the process fails.
    """
    asked = [one.replace("=card=", "=card ") for one in arguments.split()]
    data, cpu_s = _printed(
        ["--collective", "all-gather", "--objective", "throughput", *asked], folder
    )
    made = data["schedule"]
    over = None if made is None else str(Fraction(made["time"]) / Fraction(data["time"]))
    rate = str(Fraction(data["throughput"]) / 10**9)
    found = {"status": data["status"], "rate": rate, "trees": len(data["trees"]), "over": over}
    return {"title": title, "tool": OURS, **found, "cpu_s": cpu_s}


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


def their_row(title: str, topology: str, clone: Path, python: str, folder: Path) -> Row:
    """The rate that ForestColl says, with its trees.

    Raises:
        ExecutionError: it fails.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [python, "-c", THEIR_PROGRAM.format(topology=topology)]
    run = ran(command, kept | {"PYTHONPATH": str(clone)}, folder, LIMIT_S)
    if run.in_time and run.code:
        raise ExecutionError(f"{title}: {run.errors.strip()[-200:]}")
    rate, trees = run.printed.split()[-2:] if run.in_time else (None, None)
    if rate is not None:
        rate = str(Fraction(rate).limit_denominator(_FINEST))
    found = {"status": "answered" if run.in_time else "late", "rate": rate, "over": None}
    many = None if trees is None else int(trees)
    return {"title": title, "tool": THEIRS, **found, "trees": many, "cpu_s": round(run.cpu_s, 2)}


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
        f"{_over(one)} | {one['status']} | {one['cpu_s']:.2f} |"
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
            "All-gathers; rates in GB/s of the whole result. Trees: with symmetries those of one "
            "root of each kind. Of schedules in pieces: their time over the forest's. "
            f"{_beside_words(rates)}\n",
            "| instance | tool | rate | trees | over the forest | status | CPU s |",
            "|---|---|---|---|---|---|---|",
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
    """Where ForestColl took less time, start-up included, and how rates compare."""
    ours = {one["title"]: one for one in rates if one["tool"] == OURS}
    both = [(ours[one["title"]], one) for one in rates if one["tool"] == THEIRS and one["rate"]]
    if not both:
        return ""
    same = all(own["rate"] == peer["rate"] for own, peer in both)
    faster = [peer["title"] for own, peer in both if peer["cpu_s"] < own["cpu_s"]]
    words = "the same in every row" if same else "not the same in every row"
    lost = f"It took less time, start-up included, for {', '.join(faster)}." if faster else ""
    return f"ForestColl's rate, a float, is shown as the nearest small fraction: {words}. {lost}"


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
        for title, ours, theirs in counted(RATES, "instances"):
            rows.append(our_row(title, ours, folder))
            if clone is not None and theirs:
                rows.append(their_row(title, theirs, clone, named[1], folder))
        rows.append(sizes_row(folder))
    lines = ",\n".join(json.dumps(one) for one in TIMED.apart(rows, anew, measured_on()))
    FOUND.write_text(f'{{"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    stored = TIMED.joined(json.loads(FOUND.read_text(encoding="utf-8"))["rows"])
    PAGE.write_text(page(stored, timings.measured_on(FOLDER)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
