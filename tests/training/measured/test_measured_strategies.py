"""Strategies of published runs in the package: those of the runs that count, and no others."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest

from experiments.training_runs import mixtures
from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.strategies import RUNS, text
from p2smt.training.efficiencies.efficiency_files import efficiency_names, read_efficiency
from p2smt.training.measured.measured_runs import (
    FILE,
    FOLDER,
    MeasuredRun,
    measured_strategies,
    read_runs,
    searched_strategies,
)


def test_the_file_is_that_of_the_runs() -> None:
    packaged = files(FOLDER).joinpath(FILE).read_text(encoding="utf-8")
    assert packaged == text(), "run: python -m experiments.training_runs.strategies"


@pytest.mark.parametrize("name", efficiency_names())
def test_an_efficiency_has_the_runs_it_was_fitted_to(name: str) -> None:
    efficiency = read_efficiency(name)
    found = measured_strategies(efficiency)
    assert len(found) == efficiency.runs
    assert [one.strategy for one in found] == [run.training.strategy for run in runs_of(name)]


def runs_of(name: str) -> list[MeasuredRun]:
    """The runs of the file, and of the groups or of the framework on the devices, of sources."""
    text = _yaml(name)
    if mixtures.RUNS.name in text:
        every = read_mixtures(str(mixtures.RUNS)).counted
        return [run for run in every if f"{run.framework}-{run.hardware}" == name]
    groups = text.replace(",", " ").split()
    return [run for run in read_runs(str(RUNS)).counted if run.group in groups]


def test_megatron_on_h100_is_not_what_fsdp_ran() -> None:
    zeros = {
        name: {one.strategy.zero for one in measured_strategies(read_efficiency(name))}
        for name in ("megatron-h100", "fsdp-h100")
    }
    assert zeros["megatron-h100"] <= {0, 1}
    assert zeros["fsdp-h100"] & {2, 3}


def test_an_own_efficiency_has_the_runs_of_its_framework_and_devices() -> None:
    nemo = read_efficiency("nemo-h100")
    assert measured_strategies(replace(nemo, name="mine")) == measured_strategies(nemo)
    assert measured_strategies(replace(nemo, name="mine", device="b200")) == ()


def test_a_search_of_dense_models_is_beside_what_dense_models_ran() -> None:
    for name in efficiency_names():
        efficiency = read_efficiency(name)
        found, every = searched_strategies(efficiency), measured_strategies(efficiency)
        assert set(found) <= set(every)
        assert all(one.strategy.ep == 1 and not one.strategy.modules for one in found)
        assert (found == every) is (mixtures.RUNS.name not in _yaml(name))
    assert searched_strategies(read_efficiency("megatron-bridge-h100"))


def test_a_search_of_mixtures_is_beside_what_mixtures_ran() -> None:
    for name in efficiency_names():
        efficiency = read_efficiency(name)
        found = searched_strategies(efficiency, experts=True)
        assert set(found) <= set(measured_strategies(efficiency))
        assert not set(found) & set(searched_strategies(efficiency))
        assert all(one.strategy.ep > 1 for one in found)
    assert searched_strategies(read_efficiency("megatron-bridge-h100"), experts=True)


def _yaml(name: str) -> str:
    return files("p2smt.training.efficiencies").joinpath(f"{name}.yaml").read_text()
