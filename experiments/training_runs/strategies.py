"""Writes the strategies of the runs that count into the package: p2smt/training/measured/.

Usage: python -m experiments.training_runs.strategies
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import p2smt.training.measured.measured_runs as packaged
from experiments.training_runs import mixtures
from experiments.training_runs.fit_kinds import CORE
from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.shipped import SHIPPED
from p2smt.training.efficiencies.frameworks import named_hardware
from p2smt.training.measured.measured_runs import MeasuredRun, read_runs

RUNS = Path(__file__).parent / "runs.csv"


def text() -> str:
    """The file for the runs of now."""
    return packaged.strategies_text([*_dense(), *_mixtures()])


Rows = Iterable[tuple[MeasuredRun, str, Sequence[str]]]


def _dense() -> Rows:
    for run in read_runs(str(RUNS)).counted:
        family = named_hardware(run.hardware).family
        fit = f"{run.framework}-{family}"
        yield run, family, [name for name, (mine, _) in SHIPPED.items() if mine == fit]


def _mixtures() -> Rows:
    """Those of mixtures and low precision, of the efficiencies that come with the package."""
    for run in read_mixtures(str(mixtures.RUNS)).counted:
        name = f"{run.framework}-{run.hardware}"
        if name.startswith(mixtures.SHIPPED) and run.hardware in CORE:
            yield run, run.hardware, [name]


if __name__ == "__main__":
    (Path(packaged.__file__).parent / packaged.FILE).write_text(text(), encoding="utf-8")
