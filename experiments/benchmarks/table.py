"""The benchmark table of docs/studies.md, from ``results.json`` beside this script.

``make bench`` measures ``tests/bench`` and renews ``results.json`` by calling this script with
pytest-benchmark's file; without an argument it only prints the table.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.testbed.script import ended, only_argument

RESULTS = Path(__file__).with_name("results.json")
PACKAGES = ("ortools", "z3-solver", "numpy", "pydantic", "typer")
ROWS = [
    ("test_solve_command", "`solve` of 32 GPUs, two requests, whole process", "3 s"),
    ("test_all_programs[2-levels]", "all programs of length <= 5, 2 levels (61)", "0.3 s"),
    ("test_all_programs[3-levels]", "all programs of length <= 5, 3 levels (848)", "1.5 s"),
    ("test_all_programs[4-levels]", "all programs of length <= 5, 4 levels (3,611)", "3 s"),
    ("test_best_program[3-levels]", "best program with proof, 3 levels", "1 s"),
    ("test_best_program[4-levels]", "best program with proof, 4 levels", "3 s"),
    ("test_best_program[5-levels]", "best program with proof, 5 levels, 16,384 devices", ""),
    ("test_best_program[6-levels]", "best program with proof, 6 levels, 32,768 devices", ""),
    ("test_best_program[8-levels]", "best program with proof, 8 levels, 16,384 devices", ""),
    ("test_solve_on_many_levels[32-5]", "`solve` of 32 GPUs, 5 levels, whole process", "5 s"),
    (
        "test_solve_on_many_levels[1024-4]",
        "`solve` of 1,024 GPUs, 4 levels, 5 axes, 6 requests, whole process",
        "5 s",
    ),
    (
        "test_solve_on_many_levels[4096-4]",
        "`solve` of 4,096 GPUs, 4 levels, 5 axes, 6 requests, whole process",
        "5 s",
    ),
    (
        "test_solve_on_many_levels[2048-5]",
        "`solve` of 2,048 GPUs, 5 levels, 4 axes, whole process",
        "5 s",
    ),
    ("test_all_placements[cpsat]", "all 6,434 placements of 65,536 devices", "5 s"),
    ("test_optimum[sum-cpsat]", "the optimal placement of 65,536 devices", "2 s"),
    ("test_check_plan_of_1024_devices", "check of a 1,024-device plan, device by device", "10 s"),
    ("test_verify_eight_ranks", "`verify` of a schedule of 8 ranks, 3,584 steps", "1 s"),
    ("test_verify_64_ranks[1-16128]", "`verify`, 64 ranks, 16,128 steps", ""),
    ("test_verify_64_ranks[2-32256]", "`verify`, 64 ranks, 32,256 steps", ""),
    ("test_verify_64_ranks[6-96768]", "`verify`, 64 ranks, 96,768 steps", "30 s"),
    ("test_verify_accesses_of_many_blocks", "`verify`, 64 x 127 thread blocks, 16,128 steps", ""),
]


def reduced(path: str) -> dict[str, Any]:
    """Medians in seconds, with what is needed to compare them, of a pytest-benchmark file."""
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    return {
        "machine": f"{os.cpu_count()} cores",
        "python": platform.python_version(),
        "date": data["datetime"][:10],
        "commit": data["commit_info"]["id"],
        "versions": {name: version(name) for name in PACKAGES},
        "median_s": {b["name"]: round(b["stats"]["median"], 4) for b in data["benchmarks"]},
        "rounds": {b["name"]: b["stats"]["rounds"] for b in data["benchmarks"]},
    }


def table(results: dict[str, Any]) -> str:
    """The table in Markdown."""
    lines = [f"| what | target | median, {results['machine']} |", "|---|---|---|"]
    for name, what, target in ROWS:
        lines.append(f"| {what} | {target} | {results['median_s'][name]:.2g} s |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Renew the results, if a file is given; print the table."""
    if arguments:
        file = only_argument(arguments, "pytest-benchmark's file")
        RESULTS.write_text(json.dumps(reduced(file), indent=1) + "\n", encoding="utf-8")
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
