"""Writes how far off predictions are of what was left out of a fit: p2smt/training/measured/.

A model left out: as in the studies' results.  A device left out: each run by the constants that
would be taken if none had been fitted on its device.

Usage: python -m experiments.training_runs.left_out
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import p2smt.training.measured.prediction_errors as packaged
from experiments.testbed.written import results
from experiments.training_runs import mixtures, store
from experiments.training_runs.fit_kinds import CORE
from experiments.training_runs.fitting import flops_s
from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.shipped import SHIPPED
from p2smt.training.efficiencies.efficiency_files import BY_KINDS, MEGATRON, nearest_efficiency
from p2smt.training.efficiencies.frameworks import named_hardware, topology_of
from p2smt.training.measured.efficiency_fit import fit, step_s
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.measured.prediction_errors import DEVICE, MODEL, LeftOutRun
from p2smt.training.strategy import PEAK_OF

LIKE_MEGATRON = ("nemo", *MEGATRON, *BY_KINDS)
"""Frameworks that the default efficiency stands for."""
DIGITS = 4
_USES = np.linspace(0.05, 1.0, 191)


def text() -> str:
    """The file for the results and the runs of now."""
    rows = (*_models(), *_mixtures(), *_devices())
    return packaged.left_out_text([_rounded(row) for row in rows])


def _rounded(row: LeftOutRun) -> LeftOutRun:
    error, plain = (results.rounded(one, DIGITS) for one in (row.error, row.operations))
    return replace(row, error=error, operations=plain)


def _models() -> Iterator[LeftOutRun]:
    """Runs of dense models in 16 bits, their group left out, by each efficiency of that fit."""
    runs = {run.name: run for run in store.runs().counted}
    for name, (mine, _) in SHIPPED.items():
        rows = [row for row in store.read()["each"] if row["name"] == mine]
        plain = fit([runs[row["run"]] for row in rows], mine.rpartition("-")[2], flops_s).errors
        for row, other in zip(rows, plain, strict=True):
            yield LeftOutRun(MODEL, name, row["group"], row["run"], row["error"], other)


def _mixtures() -> Iterator[LeftOutRun]:
    """Those that were fitted by kinds of layers."""
    runs = {run.name: run for run in read_mixtures(str(mixtures.RUNS)).runs}
    rows = results.read(mixtures.RESULTS)["runs"]
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        plain = _at_one_utilisation([runs[row["id"]] for row in mine])
        if name.startswith(mixtures.SHIPPED):
            for row, other in zip(mine, plain, strict=True):
                yield LeftOutRun(MODEL, name, row["model"], row["id"], row["left_out"], other)


def _at_one_utilisation(runs: Sequence[MeasuredRun]) -> list[float]:
    """Errors of runs by their operations at the one utilisation that the other models have."""
    reached = np.array([_utilisation(run) for run in runs])
    groups = np.array([run.group for run in runs])
    found = []
    for own, group in zip(reached, groups, strict=True):
        others = reached[groups != group] if np.any(groups != group) else reached
        worst = np.abs(others[None] / _USES[:, None] - 1).mean(axis=1)
        found.append(float(own / _USES[worst.argmin()] - 1))
    return found


def _utilisation(run: MeasuredRun) -> float:
    """The part of the peak that the model's operations took."""
    training, strategy = run.training, run.training.strategy
    device = topology_of(run.hardware, strategy.devices).known_device
    tokens = training.batch.sequences * training.batch.tokens
    done = training.model.token_flops(training.batch.tokens) * tokens
    return done / (strategy.devices * device.peak_flops(PEAK_OF[strategy.dtype]) * run.step_s)


def _devices() -> Iterator[LeftOutRun]:
    """Runs of Megatron and its kin by the constants of another device."""
    for run, family, kinds in (*_dense(), *_by_kinds()):
        if run.framework in LIKE_MEGATRON:
            device = topology_of(run.hardware, run.training.strategy.devices).known_device
            taken = nearest_efficiency(device, kinds, without=family)
            error = step_s(run, taken) / run.step_s - 1
            yield LeftOutRun(DEVICE, taken.name, family, run.name, error, 0.0)


def _dense() -> Iterable[tuple[MeasuredRun, str, bool]]:
    for run in store.runs().counted:
        yield run, named_hardware(run.hardware).family, False


def _by_kinds() -> Iterable[tuple[MeasuredRun, str, bool]]:
    for run in read_mixtures(str(mixtures.RUNS)).runs:
        if f"{run.framework}-{run.hardware}".startswith(mixtures.SHIPPED) and run.hardware in CORE:
            yield run, run.hardware, True


if __name__ == "__main__":
    (Path(packaged.__file__).parent / packaged.FILE).write_text(text(), encoding="utf-8")
