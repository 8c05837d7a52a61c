"""The measured rows and the frontier, as committed."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS, FRONTIER, FIGURES = HERE / "results.json", HERE / "frontier.json", HERE / "figures"


def text(machine: dict[str, str], rows: list[Row]) -> str:
    """The file with these rows, one a line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"machine": {json.dumps(machine)},\n"rows": [\n{lines}\n]}}\n'


def machine() -> dict[str, str]:
    """Where it was measured, and with which libraries."""
    return {
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "ortools": version("ortools"),
        "z3-solver": version("z3-solver"),
    }


def _processor() -> str:
    """The model of the processor, as Linux calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
