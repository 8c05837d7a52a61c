"""Fitted efficiencies for people and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType

from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.workload.measured.figures import mean_error, median_error

if TYPE_CHECKING:
    from p2smt.workload.measured.fit import EfficiencyFit, PredictedRun
    from p2smt.workload.measured.run import MeasuredRuns


def efficiency_tables(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> RenderableType:
    """The constants, and the error of each group where it was left out."""
    columns = ["efficiency", ">of the peak", ">runs", ">groups", ">mean error", ">median", ">max"]
    parts: list[RenderableType] = [
        table("fitted constants; errors of runs whose group was left out", columns, map(_row, fits))
    ]
    columns = ["efficiency", "group", ">runs", ">of the peak without", ">mean error", ">bias"]
    rows = [row for fit in fits for row in _group_rows(fit)]
    parts += ["", table("groups, each left out of the fit in turn", columns, rows)]
    notes = _notes(fits, runs)
    return Group(*parts, *(["", *notes] if notes else []))


def _row(fit: EfficiencyFit) -> list[str]:
    found = fit.efficiency
    largest = max(map(abs, fit.errors))
    shown = [_percent(x) for x in (mean_error(fit.errors), median_error(fit.errors), largest)]
    counts = (str(len(fit.runs)), str(len(fit.groups)))
    return [printable(found.name), f"{found.fraction:.3f}", *counts, *shown]


def _group_rows(fit: EfficiencyFit) -> list[list[str]]:
    rows = []
    for group in fit.groups:
        mine = [one for one in fit.runs if one.run.group == group]
        errors = [one.left_out_error for one in mine]
        bias = f"{100 * sum(errors) / len(errors):+.1f} %"
        without = f"{mine[0].left_out_fraction:.3f}"
        names = (printable(fit.efficiency.name), printable(group))
        rows.append([*names, str(len(mine)), without, _percent(mean_error(errors)), bias])
    return rows


def _notes(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> list[str]:
    """What of the file was not fitted."""
    doubtful = len(runs.runs) - len(runs.counted)
    single = len(runs.counted) - sum(len(fit.runs) for fit in fits)
    unnamed = sum(not run.names_framework for run in runs.counted)
    texts = (
        (unnamed, "that name no framework: taken as Megatron's"),
        (doubtful, "whose strategy is not published in full: not counted"),
        (single, "whose framework has no second group on those devices: not fitted"),
        (len(runs.refused), "of models or states that are not predicted"),
    )
    return [f"{count} run{'s' * (count != 1)} {text}" for count, text in texts if count]


def efficiency_data(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> dict[str, Any]:
    """Fitted efficiencies as plain data."""
    return {
        "efficiencies": [_fit_data(fit) for fit in fits],
        "not_counted": [run.name for run in runs.runs if not run.counted],
        "without_framework": [run.name for run in runs.counted if not run.names_framework],
        "refused": [{"run": name, "why": why} for name, why in runs.refused],
    }


def _fit_data(fit: EfficiencyFit) -> dict[str, Any]:
    found = fit.efficiency
    return {
        "name": found.name,
        "device": found.device,
        "framework": found.framework.name,
        "fraction": found.fraction,
        "layer_s": found.layer_s,
        "groups": list(fit.groups),
        "mean_error": mean_error(fit.errors),
        "median_error": median_error(fit.errors),
        "max_error": max(map(abs, fit.errors)),
        "runs": [_run_data(one) for one in fit.runs],
    }


def _run_data(one: PredictedRun) -> dict[str, Any]:
    return {
        "run": one.run.name,
        "group": one.run.group,
        "measured_s": one.run.step_s,
        "predicted_s": one.predicted_s,
        "left_out_s": one.left_out_s,
        "left_out_fraction": one.left_out_fraction,
    }


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
