"""The constants of a library on a topology, fitted to the times of several tables together.

The library's choice of algorithm and protocol rests on nominal rates, so it stays while the
constants move: a rate that is raised above its nominal one is raised in what the fit ends at.  A
constant that the times do not determine keeps its value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.calibration.effective.adjust import Adjusted, Box, Vector, adjust, determined
from p2smt.calibration.effective.constants import (
    LEAST_S,
    Constant,
    Quantity,
    rounded,
    with_constants,
)
from p2smt.calibration.effective.knobs import Knob, knobs_of
from p2smt.calibration.predict import Predictor
from p2smt.calibration.samples import Sample
from p2smt.cluster.topology import Topology

_FAR = 0.25  # of logarithms: a start so far off may lead to another solution
_OUTLYING, _SCALES, _MAD = 0.3, 5.0, 1.4826  # of abs(log(predicted / measured))


@dataclass(frozen=True, slots=True)
class FittedConstant:
    """A constant after a fit, and its value ``before``; one that is not ``fitted`` kept that."""

    constant: Constant
    value: float
    fitted: bool
    before: float


@dataclass(frozen=True, slots=True)
class EffectiveFit:
    """A topology fitted to samples, whose times it predicts as ``predicted_s``.

    ``outliers`` are the indices of those that it cannot explain, being off by more than a factor of
    ``outlying``; they count in every error.
    """

    topology: Topology
    constants: tuple[FittedConstant, ...]
    predicted_s: tuple[float, ...]
    outliers: tuple[int, ...]
    outlying: float


def fit_constants(
    topology: Topology, samples: Sequence[Sample], above_nominal: bool = False
) -> EffectiveFit:
    """The fit; rates stop at the nominal ones unless they may be ``above_nominal``.

    Raises:
        InputError: a sample whose groups the topology does not have.
    """
    predictor = Predictor.of(topology, samples)
    knobs = knobs_of(topology, samples, predictor.steps(topology))
    values = _fit(predictor, topology, knobs, bounded=not above_nominal)
    values = {constant: rounded(value) for constant, value in values.items()}
    fitted = with_constants(topology, values)
    predicted = predictor.seconds(fitted)
    constants = [
        FittedConstant(constant, values.get(constant, start), constant in values, start)
        for knob in knobs
        for constant, start in zip(knob.constants, knob.starts, strict=True)
    ]
    outliers, outlying = _outliers(predicted, samples)
    return EffectiveFit(fitted, tuple(constants), tuple(predicted.tolist()), outliers, outlying)


def _fit(
    predictor: Predictor, topology: Topology, knobs: Sequence[Knob], bounded: bool
) -> dict[Constant, float]:
    """Values of the constants that the samples determine."""
    active = list(knobs)
    while active:
        found = _adjusted(predictor, topology, active, bounded)
        known = determined(found)
        kept = [
            knob
            for knob, ok, at in zip(active, known, found.point, strict=True)
            if ok and not _vanishing(knob, at)
        ]
        if len(kept) == len(active):
            return _values(active, found.point)
        active = kept
    return {}


def _vanishing(knob: Knob, at: float) -> bool:
    """Whether a time fell to the least that could be measured."""
    if knob.constants[0].quantity is Quantity.EFFICIENCY:
        return False
    return min(knob.values(float(np.exp(at))).values()) <= 1.01 * LEAST_S


def _values(knobs: Sequence[Knob], point: Vector) -> dict[Constant, float]:
    scaled = (knob.values(float(np.exp(at))) for knob, at in zip(knobs, point, strict=True))
    return {constant: value for found in scaled for constant, value in found.items()}


def _adjusted(
    predictor: Predictor, topology: Topology, knobs: Sequence[Knob], bounded: bool
) -> Adjusted:
    measured = np.log([sample.seconds for sample in predictor.samples])
    choosers = predictor.choosers(topology)

    def log_ratios(point: Vector) -> Vector:
        moved = with_constants(topology, _values(knobs, point))
        return np.asarray(np.log(predictor.seconds(moved, choosers)) - measured)

    low, high = np.array([knob.bounds for knob in knobs]).T
    if bounded:
        high = np.array([min(h, _nominal(k)) for h, k in zip(high, knobs, strict=True)])
    start = np.zeros(len(knobs))
    box = Box(start, low, high, np.array([knob.spread for knob in knobs]))
    guess = box.clip(np.log([knob.guess for knob in knobs]))
    tries = [start, guess] if np.abs(guess).max() > _FAR else [start]
    return min((adjust(log_ratios, box, first) for first in tries), key=lambda found: found.error)


def _nominal(knob: Knob) -> float:
    """Logarithm of the factor that brings an efficiency to 1; no bound for others."""
    if knob.constants[0].quantity is not Quantity.EFFICIENCY:
        return float("inf")
    return float(-np.log(knob.starts[0]))


def _outliers(predicted: Vector, samples: Sequence[Sample]) -> tuple[tuple[int, ...], float]:
    """Those that are off by more than a factor, and that factor."""
    off = np.abs(np.log(predicted / np.array([sample.seconds for sample in samples])))
    limit = max(_OUTLYING, _SCALES * _MAD * float(np.median(off)))
    return tuple(int(i) for i in np.flatnonzero(off > limit)), math.exp(limit)
