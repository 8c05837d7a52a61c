"""Fits efficiencies by kinds of layers to published runs, and writes their page and files.

python -m experiments.training_runs.mixtures
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.training_runs.fit_kinds import CORE, KindFit, fit_by_kinds, one_utilisation
from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.mixtures_page import page
from experiments.training_runs.published import flop_rows, parameter_rows, ranking_rows
from experiments.training_runs.shipped import FOLDER
from experiments.training_runs.store import HERE
from p2smt.errors import InputError
from p2smt.training.efficiencies.efficiency_files import dump_efficiency
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.strategy import PEAK_OF, strategy_text

RUNS, RESULTS, PAGE = HERE / "mixtures.csv", HERE / "mixtures.json", HERE / "mixtures.md"
DIGITS = 4
SHIPPED = ("megatron-bridge-", "automodel-")
"""Beginnings of the names of efficiencies that come with p2smt."""


def study() -> dict[str, Any]:
    """All results: the constants, every run with its predictions, and counts of models."""
    read = read_mixtures(str(RUNS))
    known = [run for run in read.runs if run.hardware in CORE]
    unknown = [(run.name, f"no preset of {run.hardware}") for run in read.runs if run not in known]
    counted = [run for run in known if run.counted]
    found = fit_by_kinds(counted, [run for run in known if not run.counted])
    rows = [row for one in found for row in _runs(one)]
    return {
        "refused": Counter(why for _, why in (*read.refused, *unknown)),
        "sets": [_set(one) for one in found],
        "runs": [row for row in rows if row["counted"]],
        "apart": [row for row in rows if not row["counted"]],
        "rankings": ranking_rows([row for row in rows if row["counted"]]),
        "parameters": parameter_rows(),
        "flops": flop_rows(known, RUNS.read_text(encoding="utf-8")),
    }


def _set(one: KindFit) -> dict[str, Any]:
    assert one.efficiency.layers
    mine = [at for at, run in enumerate(one.runs) if run.counted]
    return {
        "name": one.efficiency.name,
        "text": dump_efficiency(one.efficiency, (f"experiments/training_runs/{RUNS.name}",)),
        "fraction": one.efficiency.fraction,
        "core": _rounded(one.efficiency.layers.core),
        "runs": len(mine),
        "models": len({one.runs[at].group for at in mine}),
        "fitted": _rounded(float(np.abs(one.fitted[mine]).mean())),
        "left_out": _rounded(one.efficiency.error),
    }


def _runs(one: KindFit) -> Iterable[dict[str, Any]]:
    plain = _utilisations(one.runs)
    for at, run in enumerate(one.runs):
        training, devices = run.training, run.training.strategy.devices
        tokens = training.batch.sequences * training.batch.tokens
        yield {
            "id": run.name,
            "set": one.efficiency.name,
            "counted": run.counted,
            "kind": dense_or_mixture(run),
            "gpu": run.hardware,
            "framework": run.framework,
            "precision": precision(run),
            "model": run.group,
            "devices": devices,
            "strategy": strategy_text(training.strategy),
            "measured_s": run.step_s,
            "token_s": _rounded(run.step_s * devices / tokens),
            "fitted": _rounded(float(one.fitted[at])),
            "part_left_out": _rounded(float(one.other_parts[at])),
            "left_out": _rounded(float(one.other_models[at])),
            "device_left_out": _rounded(float(one.other_devices[at])),
            "one_utilisation": _rounded(plain[at][0]),
            "one_utilisation_left_out": _rounded(plain[at][1]),
        }


def dense_or_mixture(run: MeasuredRun) -> str:
    """Which kind of model a run is of: ``MoE``, ``Mamba`` (with or without experts), or dense."""
    model = run.training.model
    if model.mamba:
        return "Mamba"
    return "MoE" if model.experts else "dense"


def precision(run: MeasuredRun) -> str:
    """The peak that its products have."""
    peak = PEAK_OF[run.training.strategy.dtype]
    return "bf16" if peak == "fp16" else peak


def _utilisations(runs: Sequence[MeasuredRun]) -> dict[int, tuple[float, float]]:
    """Errors by one utilisation for each precision and kind; of runs apart by their own."""
    places: dict[tuple[str, str, bool], list[int]] = {}
    for at, run in enumerate(runs):
        key = (precision(run), dense_or_mixture(run), run.counted)
        places.setdefault(key, []).append(at)
    found: dict[int, tuple[float, float]] = {}
    for mine in places.values():
        best, others = one_utilisation([runs[at] for at in mine])
        found |= {at: (float(best[i]), float(others[i])) for i, at in enumerate(mine)}
    return found


def _rounded(value: float) -> float:
    return results.rounded(value, DIGITS)


def main(arguments: Sequence[str]) -> None:
    """Write the results, the page and the efficiencies.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    data = study()
    results.write(RESULTS, data)
    PAGE.write_text(page(data), encoding="utf-8")
    for path, text in shipped(data).items():
        path.write_text(text, encoding="utf-8")


def shipped(data: Mapping[str, Any]) -> dict[Path, str]:
    """The text of each file of an efficiency that comes with p2smt."""
    chosen = [one for one in data["sets"] if one["name"].startswith(SHIPPED)]
    return {FOLDER / f"{one['name']}.yaml": one["text"] for one in chosen}


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
