"""Frontiers of all-reduces, each once: points, bounds, CPU seconds.

    python -m experiments.schedule_synthesis.frontier [FABRIC ..]

No search has a time limit: each ends by its effort, so that a busy machine finds the same.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.schedule_synthesis.compare import ROOT
from experiments.schedule_synthesis.processes import ran
from experiments.schedule_synthesis.store import write_frontier
from experiments.testbed.script import ended
from experiments.testbed.written.timings import taken
from p2smt.errors import ExecutionError, InputError
from p2smt.report.progress import live_line

LIMIT_S = 7200.0
FABRICS: Mapping[str, int | None] = {
    "dgx1": None,
    "dgx-a100:2": 4,
    "dgx-h100:2": 6,
    "dgx-h100:16": 7,
}
"""With the most steps that are looked at; None: four more than the fewest."""
_COMMAND = ("-m", "p2smt.cli", "synthesize", "--collective", "all-reduce")


def measured(fabric: str) -> dict[str, Any]:
    """The frontier as p2smt's JSON has it, and the CPU seconds of the whole process.

    Raises:
        ExecutionError: it fails, or does not end in two hours.
    """
    most = FABRICS[fabric]
    steps = () if most is None else ("--max-steps", str(most))
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "found.yaml")
        asked = (*_COMMAND, "--fabric", fabric, *steps, "--pareto", "--json", "-o", output)
        command = [sys.executable, *asked]
        run = ran(command, os.environ | {"PYTHONPATH": str(ROOT)}, Path(folder), LIMIT_S)
    if run.code not in (0, 3) or not run.in_time:
        raise ExecutionError(f"the frontier is not found: {run.errors.strip()[-200:]}")
    return kept(json.loads(run.printed), run.cpu_s)


def kept(data: dict[str, Any], cpu_s: float) -> dict[str, Any]:
    """What is stored of a frontier."""
    return {
        "cpu_s": round(cpu_s, 2),
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
        **{key: found.get(key) for key in ("rounds", "chunks", "class", "group_order")},
        **{key: found.get(key) for key in ("origin", "verdict")},
    }


def main(arguments: Sequence[str]) -> None:
    """Find those that are named, all by default, and store each.

    Raises:
        InputError: another fabric is named.
    """
    named, anew = taken(arguments)
    for fabric in named:
        if fabric not in FABRICS:
            raise InputError(f"fabric {fabric[:60]!r}", f"is none of {', '.join(FABRICS)}")
    for fabric in named or FABRICS:
        with live_line(f"the frontier of {fabric}"):
            write_frontier(fabric, measured(fabric), anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
