"""One constant per framework and family of devices, fitted to runs with groups left out.

The constant is the part of the peak that matrix products reach.  It is the one, in steps of 0.001,
with the least mean relative error; the error that is told of it is that of runs whose whole group
was left out of the fit.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.training.efficiencies.frameworks import (
    framework,
    layer_seconds,
    named_hardware,
    topology_of,
)
from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.measured.prediction_errors import error_of_other_models
from p2smt.training.pipeline import axis_requests, call_seconds, combine, default_placement, work
from p2smt.training.prediction import Prediction

StepPredictor = Callable[[MeasuredRun, Efficiency], float]
"""Seconds of an iteration."""
_Floats = npt.NDArray[np.float64]

LEAST, STEP, MOST = 0.25, 0.001, 1.0
_KNOTS = 11


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """A run with its prediction by the constant of all runs, and by that of the other groups."""

    run: MeasuredRun
    predicted_s: float
    left_out_fraction: float
    left_out_s: float

    @property
    def left_out_error(self) -> float:
        """Relative error where its group was left out of the fit."""
        return self.left_out_s / self.run.step_s - 1


@dataclass(frozen=True, slots=True)
class EfficiencyFit:
    """The constant of a framework on a family of devices, and the runs it was fitted to.

    Of one group each run was left out in turn instead, of one run none: the efficiency's error is
    then that of published models at least, as its own says nothing of another model.
    """

    efficiency: Efficiency
    runs: tuple[PredictedRun, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of its runs."""
        return tuple(dict.fromkeys(found.run.group for found in self.runs))

    @property
    def cannot_tell(self) -> str:
        """What the runs say nothing of, in words; empty where groups were left out."""
        if len(self.groups) > 1:
            return ""
        error = f"its error is taken as {self.efficiency.error:.1%}"
        if len(self.runs) == 1:
            return f"one run, of which nothing can be left out: {error}, as of published models"
        return (
            f"one group, so each run was left out in turn: of another model it says nothing, and "
            f"{error}, no less than that of published models"
        )

    @property
    def errors(self) -> list[float]:
        """Relative errors of the runs where their groups were left out; of one run that of
        published models."""
        if len(self.runs) == 1:
            return [self.efficiency.error]
        return [found.left_out_error for found in self.runs]


def fits(
    runs: Sequence[MeasuredRun], predictor: StepPredictor, name: str = ""
) -> tuple[EfficiencyFit, ...]:
    """A constant for every framework and family of devices that has two groups or more.

    Those of one group are fitted where there are no others, or where that of this ``name`` is one.

    Raises:
        InputError: there is no run, or hardware or framework of one is not known.
    """
    sets: dict[tuple[str, str], list[MeasuredRun]] = {}
    for run in runs:
        sets.setdefault((run.framework, named_hardware(run.hardware).family), []).append(run)
    if not sets:
        rule = "is of runs whose strategy is known in full"
        raise InputError("a fit of no run that counts", rule, "add mbs, and what is assumed")
    several = [key for key, mine in sets.items() if len({run.group for run in mine}) > 1]
    named = [key for key in sets if name == f"{key[0]}-{key[1]}"]
    chosen = dict.fromkeys((*several, *named)) or sets
    return tuple(fit(sets[key], key[1], predictor) for key in chosen)


def fit(
    runs: Sequence[MeasuredRun], family: str, predictor: StepPredictor, layer_s: float | None = None
) -> EfficiencyFit:
    """The constant of runs of one framework on one family of devices.

    What is left out in turn are groups, of one group runs.  ``layer_s``: what a layer's launches
    take; None: as is known of the framework.
    """
    unit = _groups if len({run.group for run in runs}) > 1 else _names
    mine, groups = np.array(unit(runs)), list(dict.fromkeys(unit(runs)))
    start = _start(runs[0].framework, family)
    start = start if layer_s is None else replace(start, layer_s=layer_s)
    curves = np.array([_curve(run, start, predictor) for run in runs])
    measured = np.array([run.step_s for run in runs])
    best = _best(curves, measured)
    others = [mine != group if len(groups) > 1 else mine == group for group in groups]
    fractions = [_best(curves[some], measured[some]) for some in others]
    without = dict(zip(groups, fractions, strict=True))
    predicted = [
        _predicted(run, replace(start, fraction=best), without[name], predictor)
        for run, name in zip(runs, mine.tolist(), strict=True)
    ]
    error = mean_error([one.left_out_error for one in predicted])
    if unit is _names:
        error = max(error, error_of_other_models())
    efficiency = replace(start, fraction=best, runs=len(runs), error=error)
    return EfficiencyFit(efficiency, tuple(predicted))


def _groups(runs: Sequence[MeasuredRun]) -> list[str]:
    return [run.group for run in runs]


def _names(runs: Sequence[MeasuredRun]) -> list[str]:
    return [run.name for run in runs]


def _start(name: str, family: str) -> Efficiency:
    """The efficiency before it is fitted."""
    return Efficiency(
        name=f"{name}-{family}",
        device=family,
        framework=framework(name),
        fraction=MOST,
        layer_s=layer_seconds(name),
        runs=0,
        error=0.0,
    )


def _predicted(
    run: MeasuredRun, whole: Efficiency, left_out: float, predictor: StepPredictor
) -> PredictedRun:
    without = predictor(run, replace(whole, fraction=left_out))
    return PredictedRun(run, predictor(run, whole), left_out, without)


def _fractions() -> _Floats:
    count = round((MOST - LEAST) / STEP) + 1
    return np.linspace(LEAST, MOST, count).round(3)


def _curve(run: MeasuredRun, start: Efficiency, predictor: StepPredictor) -> _Floats:
    """Seconds at each fraction: between knots a line in 1 / fraction, as computing is."""
    knots = np.linspace(1 / MOST, 1 / LEAST, _KNOTS)
    times = [predictor(run, replace(start, fraction=float(1 / knot))) for knot in knots]
    return np.interp(1 / _fractions(), knots, times)


def _best(curves: _Floats, measured: _Floats) -> float:
    """The fraction with the least mean relative error."""
    errors = np.abs(curves / measured[:, None] - 1).mean(axis=0)
    return float(_fractions()[errors.argmin()])


def errors_of(
    runs: Sequence[MeasuredRun], efficiency: Efficiency, predictor: StepPredictor
) -> list[float]:
    """Relative errors of runs by a constant that was fitted to others."""
    return relative_errors(
        [run.step_s for run in runs], [predictor(run, efficiency) for run in runs]
    )


# How well times are predicted: errors, order, and what following a prediction costs.


def relative_errors(measured: Sequence[float], predicted: Sequence[float]) -> list[float]:
    """predicted / measured - 1 of each run."""
    _check(measured, predicted)
    return [there / here - 1 for here, there in zip(measured, predicted, strict=True)]


def mean_error(errors: Sequence[float]) -> float:
    """The mean of absolute errors."""
    return statistics.fmean(map(abs, errors))


def median_error(errors: Sequence[float]) -> float:
    """The median of absolute errors."""
    return statistics.median(map(abs, errors))


def kendall_tau(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Kendall's tau-b: 1 where the order is the same, 0 on average where it is chance.

    Pairs that are tied on one side count for neither direction; 0 if all are tied.
    """
    _check(measured, predicted)
    pairs = list(combinations(zip(measured, predicted, strict=True), 2))
    signs = [(_sign(a[0] - b[0]), _sign(a[1] - b[1])) for a, b in pairs]
    untied = [sum(pair[side] != 0 for pair in signs) for side in (0, 1)]
    agreeing = sum(first * second for first, second in signs)
    return agreeing / (untied[0] * untied[1]) ** 0.5 if all(untied) else 0.0


def ranked(scores: Sequence[float]) -> list[int]:
    """Positions by rising score; equal ones in their order."""
    return sorted(range(len(scores)), key=lambda position: scores[position])


def regret(measured: Sequence[float], scores: Sequence[float], first: int = 1) -> float:
    """How much longer than the best run the best one of the ``first`` by score took."""
    _check(measured, scores)
    return min(measured[place] for place in ranked(scores)[:first]) / min(measured) - 1


def place_of_best(measured: Sequence[float], scores: Sequence[float]) -> int:
    """Where the run that was fastest stands by score, from 1."""
    _check(measured, scores)
    return ranked(scores).index(ranked(measured)[0]) + 1


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _check(measured: Sequence[float], predicted: Sequence[float]) -> None:
    if len(measured) != len(predicted) or not measured:
        given = f"{len(measured)} measured times, {len(predicted)} predicted"
        raise InputError(given, "there must be as many of both, and one at least")
    if min(measured) <= 0:
        raise InputError(f"a measured time of {min(measured)} s", "must be more than 0")


# Measured runs as the model predicts them: on their hardware, in the default placement.


_KEPT = 4096


def prediction_of(run: MeasuredRun, efficiency: Efficiency) -> Prediction:
    """Time and memory of a run under an efficiency.

    Raises:
        InputError: the hardware is not known, or the strategy does not fit on its devices.
    """
    return predict(run.training, _topology(run), efficiency)


def step_s(run: MeasuredRun, efficiency: Efficiency) -> float:
    """Seconds of an iteration of a run; its prices are kept for other efficiencies.

    Raises:
        InputError: as of :func:`prediction_of`.
    """
    topology = _topology(run)
    columns = StrategyColumns.of((run.training.strategy,))
    training = run.training
    done = work(training.model, training.batch, columns, topology.known_device, efficiency)
    prices = _prices(training, run.hardware, efficiency.framework)
    return float(combine(done, dict(prices))[0])


@lru_cache(_KEPT)
def _prices(
    training: TrainingRun, hardware: str, framework: Framework
) -> tuple[tuple[str, float], ...]:
    """Seconds of a call of each request, by its name: they do not depend on the efficiency."""
    topology, strategy = topology_of(hardware, training.strategy.devices), training.strategy
    placement = default_placement(topology, strategy)
    requests = axis_requests(training.model, training.batch, strategy, framework)
    return tuple((one.name, call_seconds(topology, strategy, one, placement)) for one in requests)


def _topology(run: MeasuredRun) -> Topology:
    return topology_of(run.hardware, run.training.strategy.devices)
