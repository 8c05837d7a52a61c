"""The benchmark table of the README, from the JSON file of ``make bench``.

Usage: python tests/bench/table.py bench.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROWS = [
    ("test_solve_command", "`solve` of 32 GPUs, two requests, whole process", "3 s"),
    ("test_all_programs[2-levels]", "all programs of length <= 5, 2 levels (61)", "0.3 s"),
    ("test_all_programs[3-levels]", "all programs of length <= 5, 3 levels (848)", "1.5 s"),
    ("test_all_programs[4-levels]", "all programs of length <= 5, 4 levels (3,611)", "10 s"),
    ("test_best_program[3-levels]", "best program with proof, 3 levels", "1 s"),
    ("test_best_program[4-levels]", "best program with proof, 4 levels", "3 s"),
    ("test_all_placements[cpsat]", "all 6,434 placements of 65,536 devices", "5 s"),
    ("test_optimum[sum-cpsat]", "the optimal placement of 65,536 devices", "2 s"),
    ("test_check_plan_of_1024_devices", "check of a 1,024-device plan, device by device", "10 s"),
]


def main(path: str) -> None:
    """Print the table."""
    found = {
        b["name"]: b["stats"]["median"] for b in json.loads(Path(path).read_text())["benchmarks"]
    }
    print("| what | target | median, 2 cores |\n|---|---|---|")
    for name, what, target in ROWS:
        print(f"| {what} | {target} | {found[name]:.2g} s |")


if __name__ == "__main__":
    main(sys.argv[1])
