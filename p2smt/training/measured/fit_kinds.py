"""Constants by kinds of layers: one part of the peak for each precision, of a framework and device.

All other constants are common to all runs (:class:`~p2smt.training.efficiency.LayerConstants`).
Each part is the one, in steps, with the least mean relative error of the runs in that precision;
the error that is told is that of runs whose whole model was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import BoolArray, FloatArray
from p2smt.training.efficiencies.frameworks import framework, topology_of
from p2smt.training.efficiency import Efficiency, LayerConstants
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import call_prices
from p2smt.training.measured.mixtures import by_group
from p2smt.training.measured.run import MeasuredRun
from p2smt.training.pipeline import combine, work
from p2smt.training.strategy import PEAK_OF

FRACTIONS = np.linspace(0.3, 1.0, 71).round(2)
CORE: Mapping[str, float] = {
    "h100": 0.60,
    "b200": 0.38,
    "gb200": 0.38,
    "gb300": 0.67,
    "mi355x": 0.38,
}
"""Part of the peak of 16 bits that the core of attention reaches: fitted; the chips of B300 and
GB300 have twice the exponentials of B200's."""
_WIDE = "bf16"
MODELS = 2
"""Whose runs in a precision tell a part of its peak; of fewer, runs in all precisions do."""


@dataclass(frozen=True, slots=True)
class KindFit:
    """An efficiency by kinds of layers, and its runs with predictions: by the constants of all, and
    by those of the other models."""

    efficiency: Efficiency
    runs: tuple[MeasuredRun, ...]
    fitted_s: tuple[float, ...]
    left_out_s: tuple[float, ...]

    def errors(self, left_out: bool = True) -> FloatArray:
        """Relative errors of the runs."""
        found = np.array(self.left_out_s if left_out else self.fitted_s)
        return np.asarray(found / np.array([run.step_s for run in self.runs]) - 1)


def fit_by_kinds(runs: Sequence[MeasuredRun]) -> tuple[KindFit, ...]:
    """The constants of every framework and device that has runs."""
    return tuple(_fit(*key, these) for key, these in by_group(runs).items())


def _fit(framework_name: str, hardware: str, runs: Sequence[MeasuredRun]) -> KindFit:
    start = Efficiency(
        name=f"{framework_name}-{hardware}",
        device=hardware,
        framework=framework(framework_name),
        fraction=1.0,
        layer_s=0.0,
        runs=len(runs),
        error=0.0,
        layers=LayerConstants(core=CORE[hardware]),
    )
    curves = [seconds_by_fraction(run, start) for run in runs]
    measured = np.array([run.step_s for run in runs])
    peaks = np.array([_peak(run) for run in runs])
    groups = np.array([run.group for run in runs])
    ratios = np.array(curves) / measured[:, None]
    best = {
        peak: _best(ratios[_told_by(peaks == peak, groups)])
        for peak in dict.fromkeys(peaks.tolist())
    }
    fitted = [ratios[row, best[peaks[row]]] for row in range(len(runs))]
    left_out = []
    for row in range(len(runs)):
        others = groups != groups[row]
        chosen = _told_by(others & (peaks == peaks[row]), groups, others)
        left_out.append(ratios[row, _best(ratios[chosen])] if chosen.any() else fitted[row])
    fractions = {peak: float(FRACTIONS[at]) for peak, at in best.items()}
    wide = fractions.get(_WIDE) or max(fractions.values())
    low = tuple(sorted((peak, part) for peak, part in fractions.items() if peak != _WIDE))
    error = float(np.abs(np.array(left_out) - 1).mean())
    layers = LayerConstants(core=CORE[hardware], low=low)
    efficiency = replace(start, fraction=wide, error=error, layers=layers)
    return KindFit(
        efficiency, tuple(runs), tuple(fitted * measured), tuple(np.array(left_out) * measured)
    )


def _told_by(
    mine: BoolArray, groups: npt.NDArray[np.str_], among: BoolArray | None = None
) -> BoolArray:
    """The runs that tell a part: those in its precision, unless they are of one model alone.

    What one model tells of a precision measures that model; then all runs tell it together.
    """
    several = len(set(groups[mine].tolist())) >= MODELS
    everything = np.ones_like(mine) if among is None else among
    return mine if several else everything


def _peak(run: MeasuredRun) -> str:
    peak = PEAK_OF[run.training.strategy.dtype]
    return _WIDE if peak == "fp16" else peak


def _best(ratios: FloatArray) -> int:
    """The fraction with the least mean error of some runs, by its place."""
    return int(np.abs(ratios - 1).mean(axis=0).argmin())


def seconds_by_fraction(run: MeasuredRun, efficiency: Efficiency) -> list[float]:
    """Seconds of an iteration at each of ``FRACTIONS`` of the peak in the run's precision."""
    training = run.training
    topology = topology_of(run.hardware, training.strategy.devices)
    prices: Mapping[str, float] = call_prices(training, topology, efficiency, None, None)
    columns = StrategyColumns.of((training.strategy,))
    found = []
    for fraction in FRACTIONS.tolist():
        tried = _at(efficiency, fraction)
        done = work(training.model, training.batch, columns, topology.known_device, tried)
        found.append(float(combine(done, prices)[0]))
    return found


def _at(efficiency: Efficiency, fraction: float) -> Efficiency:
    assert efficiency.layers
    layers = replace(efficiency.layers, low=(("fp4", fraction), ("fp8", fraction)))
    return replace(efficiency, fraction=fraction, layers=layers)


def one_utilisation(runs: Iterable[MeasuredRun]) -> list[float]:
    """Relative errors of the runs by their operations at one utilisation, fitted to them."""
    rows = list(runs)
    ideal = []
    for run in rows:
        training = run.training
        device = topology_of(run.hardware, training.strategy.devices).known_device
        peak = device.peak_flops(PEAK_OF[training.strategy.dtype])
        tokens = training.batch.sequences * training.batch.tokens
        done = training.model.token_flops(training.batch.tokens) * tokens
        ideal.append(done / (training.strategy.devices * peak * run.step_s))
    ratios = np.array(ideal)
    uses = np.linspace(0.05, 1.0, 191)
    best = uses[np.abs(ratios[None] / uses[:, None] - 1).mean(axis=1).argmin()]
    return [float(ratio / best - 1) for ratio in ratios]
