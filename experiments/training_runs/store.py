"""Files of the study: the runs, the results, and numbers as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.testbed.written import results
from p2smt.training.measured.measured_runs import MeasuredRuns, read_runs

HERE = Path(__file__).resolve().parent
RUNS, RESULTS = HERE / "runs.csv", HERE / "results.json"
DIGITS = 5
SWEEP = "vt-multi-"
"""Runs of one model on 64 devices that differ in the strategy; the constant is carried over."""
SMALL = "vt-single-"
"""Runs of small models on 8 devices, where launches dominate."""
TABLE_5 = "k22-"
"""Six of the eight runs of arXiv 2205.05198 table 5."""


def rounded(value: float) -> float:
    """A number with ``DIGITS`` significant digits."""
    return results.rounded(value, DIGITS)


def runs() -> MeasuredRuns:
    """The committed runs."""
    return read_runs(str(RUNS))


def read() -> dict[str, Any]:
    """The committed results."""
    return results.read(RESULTS)
