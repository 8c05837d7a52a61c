"""Writes the strategies of the runs that count into the package: p2smt/training/measured/.

Usage: python -m experiments.training_runs.strategies
"""

from __future__ import annotations

from pathlib import Path

import p2smt.training.measured.run as packaged
from experiments.training_runs.shipped import SHIPPED
from p2smt.training.efficiencies.frameworks import named_hardware
from p2smt.training.measured.file import read_runs

RUNS = Path(__file__).parent / "runs.csv"


def text() -> str:
    """The file for the runs of now."""
    runs = read_runs(str(RUNS)).counted
    families = [named_hardware(run.hardware).family for run in runs]
    rows = [
        (run, family, _fitted(run.framework, family))
        for run, family in zip(runs, families, strict=True)
    ]
    return packaged.strategies_text(rows)


def _fitted(framework: str, family: str) -> list[str]:
    """The efficiencies that come with the package and were fitted to such runs."""
    return [name for name, (fit, _) in SHIPPED.items() if fit == f"{framework}-{family}"]


if __name__ == "__main__":
    (Path(packaged.__file__).parent / packaged.FILE).write_text(text(), encoding="utf-8")
