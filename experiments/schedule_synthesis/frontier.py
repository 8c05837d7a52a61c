"""The all-reduce frontier of the DGX-1, once: points, bounds, seconds.

python -m experiments.schedule_synthesis.frontier
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.schedule_synthesis.compare import ROOT
from experiments.schedule_synthesis.processes import ran
from experiments.schedule_synthesis.store import write_frontier
from experiments.testbed.script import ended
from experiments.testbed.written.timings import taken
from p2smt.errors import ExecutionError, InputError
from p2smt.report.progress import live_line

LIMIT_S = 1800.0
_COMMAND = ("-m", "p2smt.cli", "synthesize", "--fabric", "dgx1", "--collective", "all-reduce")


def measured() -> dict[str, Any]:
    """The frontier as p2smt's JSON has it, and the seconds of the whole process.

    Raises:
        ExecutionError: it fails, or does not end in half an hour.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "found.yaml")
        command = [sys.executable, *_COMMAND, "--pareto", "--json", "-o", output]
        run = ran(command, os.environ | {"PYTHONPATH": str(ROOT)}, Path(folder), LIMIT_S)
    if run.code not in (0, 3) or not run.in_time:
        raise ExecutionError(f"the frontier is not found: {run.errors.strip()[-200:]}")
    data = json.loads(run.printed)
    return {
        "cpu_s": round(run.cpu_s, 2),
        "wall_s": round(run.wall_s, 2),
        "status": data["status"],
        "ending": data["ending"],
        "limit": data["limit"],
        "points": [_point(point) for point in data["points"]],
    }


def _point(point: dict[str, Any]) -> dict[str, Any]:
    """What the figure and the table need of a point."""
    found = point["found"] or {}
    return {
        **{key: point[key] for key in ("steps", "bound", "bound_kind", "best", "gap", "proved")},
        **{key: found.get(key) for key in ("rounds", "chunks", "class", "group_order", "verdict")},
    }


def main(arguments: Sequence[str]) -> None:
    """Find it, and store it.

    Raises:
        InputError: arguments are given.
    """
    named, anew = taken(arguments)
    if named:
        raise InputError(f"{len(named)} arguments", "none is expected, but for --times")
    with live_line("the frontier"):
        write_frontier(measured(), anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
