"""How well published runs are predicted: bounds that a change of the model must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.efficiencies.frameworks import topology_of
from p2smt.training.measured.efficiency_fit import (
    EfficiencyFit,
    errors_of,
    fits,
    kendall_tau,
    mean_error,
    median_error,
    place_of_best,
    prediction_of,
    regret,
    step_s,
)
from p2smt.training.measured.measured_runs import MeasuredRun, read_runs

PATH = Path(__file__).resolve().parents[3] / "experiments" / "training_runs" / "runs.csv"
MOST = {"megatron-a100": 0.06, "nemo-h100": 0.04, "fsdp-a100": 0.1, "fsdp-h100": 0.1}


@pytest.fixture(scope="module")
def runs() -> tuple[MeasuredRun, ...]:
    """Those of frameworks that have an efficiency."""
    every = read_runs(str(PATH)).runs
    return tuple(run for run in every if run.framework in ("megatron", "nemo", "fsdp"))


@pytest.fixture(scope="module")
def fitted(runs: tuple[MeasuredRun, ...]) -> dict[str, EfficiencyFit]:
    found = fits([run for run in runs if run.counted], step_s)
    return {one.efficiency.name: one for one in found}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MOST)
def test_groups_left_out_are_predicted(name: str, fitted: dict[str, EfficiencyFit]) -> None:
    assert mean_error(fitted[name].errors) <= MOST[name]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MOST)
def test_the_shipped_constants_are_the_fitted(name: str, fitted: dict[str, EfficiencyFit]) -> None:
    found, shipped = fitted[name].efficiency, read_efficiency(name)
    assert shipped.fraction == pytest.approx(found.fraction, abs=1e-4)
    assert shipped.error == pytest.approx(found.error, rel=1e-3)
    assert (shipped.runs, shipped.layer_s) == (found.runs, found.layer_s)


@pytest.mark.exhaustive
def test_runs_of_table_5(fitted: dict[str, EfficiencyFit]) -> None:
    runs = fitted["megatron-a100"].runs
    errors = [one.left_out_error for one in runs if one.run.group.startswith("k22-")]
    assert len(errors) == 6
    assert mean_error(errors) <= 0.05


def test_the_constant_is_carried_over_to_a_sweep() -> None:
    sweep = [run for run in read_runs(str(PATH)).runs if run.sweep]
    efficiency = read_efficiency("megatron-a100")
    errors = errors_of(sweep, efficiency, step_s)
    assert mean_error(errors) <= 0.13
    assert median_error(errors) <= 0.08
    measured, predicted = [run.step_s for run in sweep], [step_s(r, efficiency) for r in sweep]
    assert place_of_best(measured, predicted) <= 3
    assert regret(measured, predicted) <= 0.02
    assert kendall_tau(measured, predicted) > 0.6


def test_runs_that_ran_are_said_to_fit(runs: tuple[MeasuredRun, ...]) -> None:
    misfits = 0
    for run in runs:
        efficiency = read_efficiency("fsdp-a100" if run.framework == "fsdp" else "nemo-h100")
        device = topology_of(run.hardware, run.training.strategy.devices).known_device
        misfits += prediction_of(run, efficiency).memory.total > device.memory_bytes
    assert misfits <= 0.03 * len(runs)


def test_seconds_are_those_of_the_prediction(runs: tuple[MeasuredRun, ...]) -> None:
    efficiency = read_efficiency("nemo-h100")
    for run in runs[::12]:
        whole = prediction_of(run, efficiency).time.iteration_s
        assert step_s(run, efficiency) == pytest.approx(whole)
