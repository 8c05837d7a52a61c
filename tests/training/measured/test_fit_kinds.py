"""Constants by kinds of layers: found again where they are known; what is left out is not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from experiments.training_runs import fit_kinds
from experiments.training_runs.fit_kinds import (
    CORE,
    FRACTIONS,
    START,
    RunFit,
    constants,
    errors_by_other_devices,
    errors_by_other_models,
    fit_by_kinds,
    fit_shape,
    nearest,
    one_utilisation,
)
from p2smt.training.efficiencies.frameworks import framework, topology_of
from p2smt.training.efficiency import Efficiency, LayerConstants, TrainingRun
from p2smt.training.iteration import predict
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.transformer import Experts, LayerKind, LayerRun, Mlp, Transformer

DENSE = Transformer("dense", 8, 1024, 8, 4, 4096, True, 4096, 128)
MIXTURE = Transformer(
    *("mixture", 8, 1024, 8, 4, 4096, True, 4096, 128),
    experts=Experts(16, 2, 1024),
    order=(LayerRun(1, (LayerKind(),)), LayerRun(7, (LayerKind(mlp=Mlp.EXPERTS),))),
)
BATCH = Batch(64, 4096)
PART = 0.62
OTHERS = {name: value * 1.1 for name, value in START.items()} | {"edge": 2 * START["edge"]}


def seconds(name: str, training: TrainingRun, hardware: str, shape: fit_kinds.Shape) -> float:
    """What ``estimate`` says of a run with these constants."""
    layers = constants(shape, hardware)
    known = Efficiency("x", hardware, framework(name), PART, 0.0, 1, 0.0, layers)
    topology = topology_of(hardware, training.strategy.devices)
    return predict(training, topology, known).time.iteration_s


def runs_of(
    shape: fit_kinds.Shape, devices: Sequence[str] = ("h100", "gb200")
) -> list[MeasuredRun]:
    """Runs that take what these constants say."""
    found: list[MeasuredRun] = []
    for hardware in devices:
        for model in (DENSE, MIXTURE):
            for text in ("dp=8,zero=1", "tp=2,dp=4,sp=1,zero=1,dtype=fp8"):
                spread = ",ep=4" if model.experts else ""
                training = TrainingRun(model, BATCH, parse_strategy(text + spread))
                taken = seconds("megatron-bridge", training, hardware, shape)
                run = MeasuredRun(
                    *(f"{hardware}{len(found)}", model.name, "", "megatron-bridge", hardware),
                    *(training, taken),
                )
                found.append(run)
    return found


@cache
def every_run() -> list[MeasuredRun]:
    """Those of the constants that are looked for; not to be changed."""
    return runs_of(OTHERS)


ALL = np.ones(8, dtype=bool)
"""All of them."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round of a fit: what it ends at is not asked."""
    monkeypatch.setattr(fit_kinds, "ROUNDS", 1)


def test_seconds_are_those_of_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the constants that the runs were made of, and at the part of the peak."""
    monkeypatch.setattr(fit_kinds, "PULL", 0.0)
    fit = RunFit(every_run())
    powers = fit.powers(OTHERS)
    at = int(np.abs(FRACTIONS - PART).argmin())
    assert np.expm1(powers[:, at]) == pytest.approx(np.zeros(len(every_run())), abs=2e-3)
    assert {float(FRACTIONS[part]) for part in fit.parts(powers, ALL).values()} == {PART}


def test_a_shape_is_found_that_meets_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From where it begins on; constants that pull alike need not be found apart."""
    monkeypatch.setattr(fit_kinds, "DRAW", 1e-6)
    monkeypatch.setattr(fit_kinds, "ROUNDS", 2)
    fit = RunFit(every_run())
    before = fit.loss(fit.powers(START), ALL)
    after = fit.loss(fit.powers(fit_shape(fit, ALL)), ALL)
    assert after < before / 2


def slower(runs: Sequence[MeasuredRun], times: float, **which: str) -> list[MeasuredRun]:
    """The runs, some of them taking longer."""
    return [
        replace(run, step_s=run.step_s * times)
        if all(getattr(run, name) == value for name, value in which.items())
        else run
        for run in runs
    ]


@pytest.mark.usefixtures("short")
def test_a_model_left_out_tells_nothing_of_itself() -> None:
    """Its runs take longer: what is predicted of them stays."""
    before = errors_by_other_models(RunFit(every_run()))
    after = errors_by_other_models(RunFit(slower(every_run(), 1.5, group="mixture")))
    own = np.array([run.group == "mixture" for run in every_run()])
    assert after[own] * 1.5 + 0.5 == pytest.approx(before[own])
    assert np.abs(after[~own] - before[~own]).max() > 0.01


@pytest.mark.usefixtures("short")
def test_a_device_left_out_tells_nothing_of_itself() -> None:
    before = errors_by_other_devices(RunFit(every_run()))
    after = errors_by_other_devices(RunFit(slower(every_run(), 1.5, hardware="h100")))
    own = np.array([run.hardware == "h100" for run in every_run()])
    assert after[own] * 1.5 + 0.5 == pytest.approx(before[own])
    assert np.abs(after[~own] - before[~own]).max() > 0.01


@pytest.mark.usefixtures("short")
def test_runs_apart_change_no_constant() -> None:
    apart = slower(every_run()[:1], 3.0)
    (alone, _), (both, _) = fit_by_kinds(every_run()), fit_by_kinds(every_run(), apart)
    assert both.efficiency == alone.efficiency
    assert both.runs == (*alone.runs, *apart)
    assert both.fitted[:-1] == pytest.approx(alone.fitted)
    assert both.fitted[-1] == pytest.approx((1 + alone.fitted[0]) / 3 - 1)


def test_the_nearest_device_has_the_same_chip_or_the_nearest_peak() -> None:
    assert nearest("gb200", ("h100", "gb300", "b200")) == "b200"
    assert nearest("gb300", ("h100", "gb200", "b200")) == "gb200"
    assert nearest("h100", ("gb200", "b200", "gb300")) == "b200"


def test_far_from_where_it_begins_a_shape_is_drawn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as anything: it stays there, whatever the runs say."""
    monkeypatch.setattr(fit_kinds, "DRAW", 1e6)
    assert fit_shape(RunFit(every_run()), ALL) == START


def test_constants_of_a_device_have_its_cores_rate() -> None:
    shape = dict(START) | {"core_b300": 0.7, "core_b200": 0.3, "memory": 0.6}
    assert constants(shape, "gb300").core == 0.7
    assert constants(shape, "gb200") == replace(constants(shape, "gb300"), core=0.3)
    assert set(CORE.values()) == {name for name in START if name.startswith("core_")}
    others = {name for name in START if name not in CORE.values()}
    assert others == set(LayerConstants.__dataclass_fields__) - {"core", "low"}


def test_one_utilisation_of_others_does_not_see_a_model() -> None:
    best, others = one_utilisation(every_run())
    more, beyond = one_utilisation(slower(every_run(), 2.0, group="mixture"))
    own = np.array([run.group == "mixture" for run in every_run()])
    assert beyond[own] == pytest.approx((1 + others[own]) / 2 - 1)
    assert np.abs(best).mean() <= np.abs(others).mean()
    assert not np.allclose(more, best)
