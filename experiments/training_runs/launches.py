"""How long launches of a layer take: the value under which small models are met best.

The part of the peak is not fitted to the small models but carried over: for each value it is that
of the other runs of Megatron, fitted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.training_runs.store import SMALL, SWEEP, rounded
from p2smt.training.measured.efficiency_fit import errors_of, fit, mean_error, step_s
from p2smt.training.measured.measured_runs import MeasuredRun

STEP_S = 1e-4
MOST_STEPS = 24


def launch_rows(runs: Sequence[MeasuredRun]) -> list[dict[str, Any]]:
    """For each time of launches: the constant, its error, and those of what it is carried to."""
    megatron = [run for run in runs if run.counted and run.framework == "megatron"]
    small = [run for run in runs if run.group.startswith(SMALL)]
    sweep = [run for run in runs if run.group.startswith(SWEEP)]
    rows = []
    for step in range(MOST_STEPS + 1):
        found = fit(megatron, "a100", step_s, layer_s=step * STEP_S)
        rows.append(
            {
                "layer_s": rounded(step * STEP_S),
                "fraction": found.efficiency.fraction,
                "megatron": rounded(mean_error(found.errors)),
                "small": rounded(mean_error(errors_of(small, found.efficiency, step_s))),
                "sweep": rounded(mean_error(errors_of(sweep, found.efficiency, step_s))),
            }
        )
    return rows


def best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row under which small models are met best."""
    return min(rows, key=lambda row: float(row["small"]))
