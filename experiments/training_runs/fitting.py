"""Constants fitted with groups left out, beside a plain count of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.training_runs.store import SWEEP, TABLE_5, rounded
from p2smt.training.efficiencies.frameworks import topology_of
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.efficiency_fit import (
    EfficiencyFit,
    errors_of,
    fit,
    fits,
    mean_error,
    median_error,
    step_s,
)
from p2smt.training.measured.measured_runs import MeasuredRun

OPERATIONS = 6
"""A parameter multiplies and adds once forward and twice backward for each token."""

TRANSFERS = (
    ("fsdp-h100", "fsdp-a100"),
    ("fsdp-a100", "fsdp-h100"),
    ("nemo-h100", "megatron-a100"),
    ("megatron-a100", "nemo-h100"),
)
"""Runs, and the constant that they are predicted by instead of their own."""


def flops_s(run: MeasuredRun, efficiency: Efficiency) -> float:
    """Seconds by 6 operations a parameter and token at one utilisation: a model of nothing else."""
    training, devices = run.training, run.training.strategy.devices
    peak = topology_of(run.hardware, devices).known_device.peak_flops(training.strategy.dtype)
    tokens = training.batch.sequences * training.batch.tokens
    done = OPERATIONS * training.model.parameters * tokens
    return done / (devices * peak * efficiency.fraction)


def fitted(runs: Sequence[MeasuredRun]) -> tuple[EfficiencyFit, ...]:
    """The constants of every framework and family of devices."""
    return fits(runs, step_s)


def of_name(found: Sequence[EfficiencyFit], name: str) -> EfficiencyFit:
    """The fit of an efficiency's name."""
    return next(one for one in found if one.efficiency.name == name)


def set_rows(found: Sequence[EfficiencyFit]) -> list[dict[str, Any]]:
    """Each constant with its errors, and those of the count of operations."""
    rows = []
    for one in found:
        runs = [each.run for each in one.runs]
        plain = fit(runs, one.efficiency.device, flops_s)
        rows.append(
            {
                "name": one.efficiency.name,
                "fraction": one.efficiency.fraction,
                "layer_s": one.efficiency.layer_s,
                "runs": len(runs),
                "groups": len(one.groups),
                **errors(one.errors),
                "plain_mean": rounded(mean_error(plain.errors)),
            }
        )
    return rows


def errors(found: Sequence[float]) -> dict[str, float]:
    """Mean, median and largest of relative errors."""
    return {
        "mean": rounded(mean_error(found)),
        "median": rounded(median_error(found)),
        "max": rounded(max(map(abs, found))),
    }


def group_rows(found: Sequence[EfficiencyFit]) -> list[dict[str, Any]]:
    """Each group where it was left out."""
    rows = []
    for one in found:
        for group in one.groups:
            mine = [each for each in one.runs if each.run.group == group]
            signed = [each.left_out_error for each in mine]
            rows.append(
                {
                    "name": one.efficiency.name,
                    "group": group,
                    "fraction": mine[0].left_out_fraction,
                    "runs": len(mine),
                    **errors(signed),
                    "bias": rounded(sum(signed) / len(signed)),
                }
            )
    return rows


def run_rows(found: Sequence[EfficiencyFit]) -> list[dict[str, Any]]:
    """Every run that counts: measured, and predicted with its group left out."""
    return [
        {
            "run": each.run.name,
            "group": each.run.group,
            "name": one.efficiency.name,
            "measured_s": each.run.step_s,
            "left_out_s": rounded(each.left_out_s),
            "error": rounded(each.left_out_error),
        }
        for one in found
        for each in one.runs
    ]


def table_5(found: Sequence[EfficiencyFit]) -> dict[str, float]:
    """Errors of the runs of arXiv 2205.05198 table 5, each model left out."""
    runs = of_name(found, "megatron-a100").runs
    return errors([one.left_out_error for one in runs if one.run.group.startswith(TABLE_5)])


def carried(runs: Sequence[MeasuredRun], found: Sequence[EfficiencyFit]) -> dict[str, float]:
    """Errors of the sweep by the constant of Megatron, which was not fitted to it."""
    sweep = [run for run in runs if run.group.startswith(SWEEP)]
    return errors(errors_of(sweep, of_name(found, "megatron-a100").efficiency, step_s))


def uncounted_rows(
    runs: Sequence[MeasuredRun], found: Sequence[EfficiencyFit]
) -> list[dict[str, Any]]:
    """Runs whose strategy is not published in full, by the constant of their device."""
    named = {"a100": "megatron-a100", "h100": "nemo-h100"}
    rows = []
    for run in runs:
        if run.counted:
            continue
        family = run.hardware.split("-")[0]
        own = of_name(found, named[family]).efficiency
        seconds = step_s(run, own)
        rows.append(
            {
                "run": run.name,
                "group": run.group,
                "name": own.name,
                "measured_s": run.step_s,
                "predicted_s": rounded(seconds),
                "error": rounded(seconds / run.step_s - 1),
                "assumed": run.assumed,
            }
        )
    return rows


def transfer_rows(found: Sequence[EfficiencyFit]) -> list[dict[str, Any]]:
    """Runs on one device by the constant of the same framework, or its kin, on the other."""
    rows = []
    for name, other in TRANSFERS:
        runs = [one.run for one in of_name(found, name).runs]
        carried_over = errors_of(runs, of_name(found, other).efficiency, step_s)
        bias = sum(carried_over) / len(carried_over)
        rows.append({"runs": name, "by": other, **errors(carried_over), "bias": rounded(bias)})
    return rows
