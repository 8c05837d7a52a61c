"""Whether the model says that runs fit which ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2smt.training.efficiencies.frameworks import (
    framework,
    layer_seconds,
    named_hardware,
    topology_of,
)
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.efficiency_fit import prediction_of
from p2smt.training.measured.measured_runs import MeasuredRun

GIB = 2**30


def memory_rows(runs: Sequence[MeasuredRun]) -> list[dict[str, Any]]:
    """Every run with its bytes and those of its device, fullest first."""
    rows = []
    for run in runs:
        strategy = run.training.strategy
        device = topology_of(run.hardware, strategy.devices).known_device
        memory = prediction_of(run, _any_efficiency(run)).memory
        rows.append(
            {
                "run": run.name,
                "group": run.group,
                "needed_gib": round(memory.total / GIB, 2),
                "has_gib": round(device.memory_bytes / GIB, 2),
                "fits": memory.total <= device.memory_bytes,
            }
        )
    return sorted(rows, key=lambda row: -row["needed_gib"] / row["has_gib"])


def _any_efficiency(run: MeasuredRun) -> Efficiency:
    """Memory does not depend on how fast a framework is."""
    facts, family = framework(run.framework), named_hardware(run.hardware).family
    return Efficiency(run.framework, family, facts, 1.0, layer_seconds(run.framework), 0, 0.0)
