"""Constants by kinds of layers, fitted to the runs of all frameworks and devices together.

One part of the peak for each framework and device (:func:`parts`); all other constants, the
*shape*, are common to all runs, but for what the core of attention reaches, which each chip has
of its own.  The shape is fitted by steps (:func:`fit_shape`): seconds as powers of every constant,
nearby; constants moved one by one while the error falls; seconds computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from p2smt.cluster.link import Device
from p2smt.parallelism.placement import BoolArray, FloatArray
from p2smt.training.efficiencies.efficiency_files import BY_KINDS, PEAKS
from p2smt.training.efficiencies.frameworks import framework, topology_of
from p2smt.training.efficiency import Efficiency, LayerConstants
from p2smt.training.formulas.quantities import Quantities, given, quantities, timed
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import call_prices
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.pipeline import combine, work_of
from p2smt.training.prediction import DISPATCH_REQUEST
from p2smt.training.strategy import PEAK_OF

FRACTIONS = np.linspace(0.3, 1.0, 71).round(2)
"""Parts of the peak that a fit chooses from."""
_COMPUTED = np.geomspace(0.29, 1.0, 12)
"""Parts at which seconds are computed; between them they go by powers."""
USUAL, PULL = 0.55, 0.5
"""A part of the peak is drawn to the usual one as by half a run: runs that launches or the network
bound say little of it, and shall not carry it to an end of its range."""
CAP = 0.4
"""Errors beyond it count no more: a run that other causes slow down shall not bend the rest."""
START: Mapping[str, float] = {
    **{f"core_{chip}": 0.5 for chip in ("h100", "b200", "b300")},
    "memory": 0.65,
    "edge": 256.0,
    "quantised": 4.0,
    "state_bytes": 50.0,
    **{f"host_{part}_s": 2e-3 for part in ("attention", "mlp", "experts")},
    "host_mamba_s": 5e-3,
    "host_expert_s": 0.3e-3,
    "dispatch": 0.75,
    "hides": 0.75,
}
"""Where the fit of the shape begins: round numbers."""
_PARTS = ("core_h100", "core_b200", "core_b300", "memory", "dispatch", "hides")

CORE: Mapping[str, str] = {
    "h100": "core_h100",
    "b200": "core_b200",
    "gb200": "core_b200",
    "gb300": "core_b300",
}
"""Which of these a device's core of attention is: chips of B300 have twice the exponentials."""
Shape = Mapping[str, float]
"""Constants of all layers by name; ``core_*`` of a chip."""


def constants(shape: Shape, hardware: str) -> LayerConstants:
    """The shape as constants on a device."""
    own = {field.name for field in fields(LayerConstants)}
    named: dict[str, Any] = {name: value for name, value in shape.items() if name in own}
    return LayerConstants(core=shape[CORE[hardware]], **named)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run with all that does not depend on constants; ``call_s`` at a full rate of dispatch."""

    run: MeasuredRun
    columns: StrategyColumns
    counted: Quantities
    device: Device
    efficiency: Efficiency
    call_s: Mapping[str, float]

    @staticmethod
    def of(run: MeasuredRun) -> PreparedRun:
        """The run at every part of the peak that is computed."""
        training = run.training
        layers = LayerConstants(dispatch=1.0)
        start = Efficiency(
            *(run.hardware, run.hardware, framework(run.framework)),
            fraction=1.0,
            layer_s=0.0,
            runs=0,
            error=0.0,
            layers=layers,
        )
        columns = StrategyColumns.of((training.strategy,) * len(_COMPUTED))
        counted = quantities(training.model, training.batch, columns, start.framework, start)
        topology = topology_of(run.hardware, training.strategy.devices)
        call_s = call_prices(training, topology, start, None, None)
        return PreparedRun(run, columns, counted, topology.known_device, start, call_s)

    def seconds(self, shape: Shape) -> FloatArray:
        """Seconds of an iteration at each of these parts."""
        layers = constants(shape, self.run.hardware)
        known = replace(self.efficiency, layers=layers)
        values = given(self.counted, self.columns, self.device, known)
        parts = {"eta": _COMPUTED[:, None], "eta_low": _COMPUTED[:, None]}
        call_s = dict(self.call_s)
        if self.run.training.strategy.dispatcher != "flex" and DISPATCH_REQUEST in call_s:
            call_s[DISPATCH_REQUEST] /= layers.dispatch
        return combine(work_of(timed(self.counted, {**values, **parts}), self.columns), call_s)


class RunFit:
    """Runs whose seconds are known at any shape; equal trainings are computed once.

    ``told_by``: the runs that tell constants, as a mask: all but those ``apart``.
    """

    def __init__(self, told: Sequence[MeasuredRun], apart: Sequence[MeasuredRun] = ()) -> None:
        runs = self.runs = (*told, *apart)
        self.told_by = np.arange(len(runs)) < len(told)
        self._measured_s = np.array([run.step_s for run in runs])
        own = [(run.framework, run.hardware, run.training) for run in runs]
        first = {key: at for at, key in reversed(list(enumerate(own)))}
        self._prepared = {key: PreparedRun.of(self.runs[at]) for key, at in first.items()}
        self._row = [list(first).index(key) for key in own]
        sets = [(run.framework, run.hardware) for run in runs]
        self.sets = {key: np.array([one == key for one in sets]) for key in dict.fromkeys(sets)}
        alike = [(*key, _peak(run), run.group) for key, run in zip(sets, runs, strict=True)]
        many = Counter(alike[: len(told)])
        many.update(set(alike) - set(many))
        self._weights = np.array([many[one] ** -0.5 for one in alike])
        self._known: dict[tuple[float, ...], FloatArray] = {}

    def powers(self, shape: Shape) -> FloatArray:
        """Logarithms of predicted over measured seconds: (runs, parts of the peak)."""
        key = tuple(shape.values())
        if key not in self._known:
            each = [np.log(one.seconds(shape)) for one in self._prepared.values()]
            at, ends = np.log(FRACTIONS), np.log(_COMPUTED)
            curves = np.array([np.interp(at, ends, one) for one in each])
            self._known[key] = curves[self._row] - np.log(self._measured_s)[:, None]
        return self._known[key]

    def parts(self, powers: FloatArray, told_by: BoolArray) -> dict[tuple[str, str], int]:
        """The part of the peak of every set that some of the runs tell, by its place."""
        off = np.abs(np.expm1(powers)) * told_by[:, None]
        pull = PULL * np.abs(np.log(FRACTIONS / USUAL))
        return {
            key: int((off[mine].sum(axis=0) + pull).argmin()) for key, mine in self.sets.items()
        }

    def errors(self, powers: FloatArray, parts: Mapping[tuple[str, str], int]) -> FloatArray:
        """Relative errors of all runs with these parts."""
        places = np.zeros(len(self.runs), dtype=np.int64)
        for key, mine in self.sets.items():
            places[mine] = parts[key]
        return np.asarray(np.expm1(powers[np.arange(len(places)), places]))

    def loss(self, powers: FloatArray, told_by: BoolArray) -> float:
        """Mean error of some runs, those alike counted as the root of their number."""
        off = np.minimum(np.abs(self.errors(powers, self.parts(powers, told_by))), CAP)
        return float((self._weights * off)[told_by].sum() / self._weights[told_by].sum())


DRAW = 0.01
"""How much constants are drawn to where they begin: one that few runs tell stays there."""
ROUNDS, STEPS, FAR, NEAR = 4, (0.2, 0.08, 0.03), 0.4, 0.05


def fit_shape(fit: RunFit, told_by: BoolArray, start: Shape = START) -> Shape:
    """The shape with the least loss of some runs, from round numbers on."""
    shape, least = dict(start), fit.loss(fit.powers(start), told_by)
    for _ in range(ROUNDS):
        moved = _moved(fit, shape, told_by)
        for _ in range(3):
            tried = _times(shape, moved)
            loss = fit.loss(fit.powers(tried), told_by) + _drawn(tried)
            if loss < least:
                shape, least = tried, loss
                break
            moved = {name: move / 2 for name, move in moved.items()}
        else:
            break
    return shape


def _drawn(shape: Shape) -> float:
    """What constants lose that lie far from where they begin."""
    return DRAW * sum(float(np.log(shape[name] / start)) ** 2 for name, start in START.items())


def _times(shape: Shape, moves: Mapping[str, float]) -> dict[str, float]:
    """The shape with constants multiplied; parts stay parts."""
    found = {name: value * float(np.exp(moves.get(name, 0.0))) for name, value in shape.items()}
    return {name: min(one, 1.0) if name in _PARTS else one for name, one in found.items()}


def _moved(fit: RunFit, shape: Shape, told_by: BoolArray) -> dict[str, float]:
    """How far each constant moves, as a logarithm, where seconds go by their powers."""
    now = fit.powers(shape)
    slopes = {name: (fit.powers(_times(shape, {name: -NEAR})) - now) / -NEAR for name in shape}
    moves, least = dict.fromkeys(shape, 0.0), fit.loss(now, told_by) + _drawn(shape)
    for step in STEPS:
        falls = True
        while falls:
            falls = False
            for name, slope in slopes.items():
                for move in (step, -step):
                    if abs(moves[name] + move) > FAR:
                        continue
                    tried = _times(shape, {**moves, name: moves[name] + move})
                    loss = fit.loss(now + move * slope, told_by) + _drawn(tried)
                    if loss < least:
                        now, least, falls = now + move * slope, loss, True
                        moves[name] += move
    return moves


def _peak(run: MeasuredRun) -> str:
    peak = PEAK_OF[run.training.strategy.dtype]
    return "bf16" if peak == "fp16" else peak


# What a fit says: of all runs, and of runs whose model or device it did not see.


@dataclass(frozen=True, slots=True)
class KindFit:
    """An efficiency by kinds of layers, its runs, and their relative errors: by the constants of
    all runs; by the shape of all and the part of other models; and by those that no run of their
    model, or of their device, told at all."""

    efficiency: Efficiency
    runs: tuple[MeasuredRun, ...]
    fitted: FloatArray
    other_parts: FloatArray
    other_models: FloatArray
    other_devices: FloatArray


def fit_by_kinds(
    runs: Sequence[MeasuredRun], apart: Sequence[MeasuredRun] = ()
) -> tuple[KindFit, ...]:
    """The constants of every framework and device that has runs; what is left out is left out of
    the fit of the shape, too.

    ``apart``: runs that no constant is fitted to, which only get errors; their sets have others.
    """
    fit = RunFit(runs, apart)
    told_by = fit.told_by
    shape = fit_shape(fit, told_by)
    powers = fit.powers(shape)
    parts = fit.parts(powers, told_by)
    errors = fit.errors(powers, parts)
    by_parts = errors_by_other_models(fit, shape)
    models, devices = errors_by_other_models(fit), errors_by_other_devices(fit)
    every = (errors, by_parts, models, devices)
    found = []
    for (name, hardware), mine in fit.sets.items():
        fraction = float(FRACTIONS[parts[name, hardware]])
        told = int((mine & told_by).sum())
        error = float(np.abs(models[mine & told_by]).mean())
        efficiency = _efficiency(name, hardware, shape, fraction, told, error)
        rows = tuple(run for run, own in zip(fit.runs, mine, strict=True) if own)
        found.append(KindFit(efficiency, rows, *(one[mine] for one in every)))
    return tuple(found)


def errors_by_other_models(fit: RunFit, shape: Shape | None = None) -> FloatArray:
    """Relative errors of all runs by constants that no run of their model told; with a shape, by
    it and parts of the peak that none told."""
    groups = np.array([run.group for run in fit.runs])
    found = np.zeros(len(groups))
    for group in dict.fromkeys(groups.tolist()):
        others = fit.told_by & (groups != group)
        powers = fit.powers(shape or fit_shape(fit, others))
        own = groups == group
        found[own] = fit.errors(powers, fit.parts(powers, others))[own]
    return found


def errors_by_other_devices(fit: RunFit) -> FloatArray:
    """The same by those that no run on their device told: a device without runs takes what the
    default framework reaches on the nearest one."""
    devices = np.array([run.hardware for run in fit.runs])
    every = dict.fromkeys(devices.tolist())
    found = np.zeros(len(devices))
    for device in every:
        others, own = fit.told_by & (devices != device), devices == device
        known = [one for one in every if one != device and (BY_KINDS[0], one) in fit.sets]
        near = nearest(device, known)
        shape = dict(fit_shape(fit, others))
        shape[CORE[device]] = shape[CORE[near]]
        powers = fit.powers(shape)
        place = fit.parts(powers, others)[BY_KINDS[0], near]
        found[own] = np.expm1(powers[own, place])
    return found


def nearest(device: str, known: Sequence[str]) -> str:
    """Of known devices that of the same chip, else that whose peak of 16 bits is nearest."""

    def far(one: str) -> tuple[bool, float]:
        return (CORE[one] != CORE[device], abs(np.log(PEAKS[one] / PEAKS[device])))

    return min(known, key=far)


def _efficiency(
    name: str, hardware: str, shape: Shape, fraction: float, runs: int, error: float
) -> Efficiency:
    return Efficiency(
        name=f"{name}-{hardware}",
        device=hardware,
        framework=framework(name),
        fraction=fraction,
        layer_s=0.0,
        runs=runs,
        error=error,
        layers=constants(shape, hardware),
    )


# What a prediction has to be better than: a count of operations.


def one_utilisation(runs: Sequence[MeasuredRun]) -> tuple[FloatArray, FloatArray]:
    """Relative errors of runs by their operations at one utilisation: the one that is best for
    them, and the one that is best for the runs of other models (of all, where there is one)."""
    reached = np.array([utilisation(run) for run in runs])
    groups = np.array([run.group for run in runs])
    others = np.array([_best_use(_or_all(reached, groups != group)) for group in groups])
    return reached / _best_use(reached) - 1, reached / others - 1


def _or_all(reached: FloatArray, some: BoolArray) -> FloatArray:
    return reached[some] if some.any() else reached


def _best_use(reached: FloatArray) -> float:
    uses = np.linspace(0.05, 1.0, 191)
    return float(uses[np.abs(reached / uses[:, None] - 1).mean(axis=1).argmin()])


def utilisation(run: MeasuredRun) -> float:
    """The part of the peak that the model's operations took."""
    training, strategy = run.training, run.training.strategy
    device = topology_of(run.hardware, strategy.devices).known_device
    tokens = training.batch.sequences * training.batch.tokens
    done = training.model.token_flops(training.batch.tokens) * tokens
    return done / (strategy.devices * device.peak_flops(PEAK_OF[strategy.dtype]) * run.step_s)
