"""The rows and the frontier, as committed; what they took stands apart."""

from __future__ import annotations

import json
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.testbed.written import timings

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS, FRONTIER, FIGURES = HERE / "results.json", HERE / "frontier.json", HERE / "figures"
TIMED = timings.Timed(
    HERE, ("cpu_s", "wall_s"), lambda row: f"{row['title']} {row['size']} {row['tool']}"
)


def write(rows: list[Row], anew: bool) -> None:
    """Store the rows, one a line; ``anew``: with their times in place of those that are there."""
    lines = ",\n".join(json.dumps(row) for row in TIMED.apart(rows, anew, measured_on()))
    head = f'{{"versions": {json.dumps(versions())},\n"rows": [\n'
    RESULTS.write_text(f"{head}{lines}\n]}}\n", encoding="utf-8")


def write_frontier(fabric: str, found: Row, anew: bool) -> None:
    """Store the frontier of a fabric beside the others, in the same way."""
    timings.keep(HERE, {_timed(fabric): {"cpu_s": found["cpu_s"]}}, anew, measured_on())
    known = json.loads(FRONTIER.read_text(encoding="utf-8")) if FRONTIER.exists() else {}
    known[fabric] = {key: value for key, value in found.items() if key != "cpu_s"}
    FRONTIER.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _timed(fabric: str) -> str:
    """A frontier among the times."""
    return f"frontier {fabric}"


def read() -> tuple[Row, dict[str, Row]]:
    """The rows with their times under ``rows``, and the frontiers by fabric, with their own.

    Raises:
        FileNotFoundError: one is not there yet.
    """
    found, frontiers = (
        json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS, FRONTIER)
    )
    about = {"measured_on": timings.measured_on(HERE)}
    rows = {**found, **about, "rows": TIMED.joined(found["rows"])}
    times = timings.read(HERE)
    return rows, {name: {**one, **times[_timed(name)]} for name, one in frontiers.items()}


def versions() -> dict[str, str]:
    """The libraries that it was found with."""
    return {name: version(name) for name in ("ortools", "z3-solver")}


def measured_on() -> str:
    """The processor and the day."""
    python = f"Python {platform.python_version()}"
    return f"{_processor()}, {platform.system()}, {python}, {date.today().isoformat()}"


def _processor() -> str:
    """The model of the processor, as Linux calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
