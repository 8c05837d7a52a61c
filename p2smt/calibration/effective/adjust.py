"""Robust least squares in logarithms, near a start that counts as a weak measurement.

Gauss-Newton steps with damping (Marquardt 1963) on log(predicted / measured), rows weighted anew
in each step by Huber's function (1964), so that a few rows that nothing explains do not bend the
rest.  The derivative is numeric: the prediction is a black box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
LogRatios = Callable[[Vector], Vector]
"""log(predicted / measured) of every row by the logarithms of the constants."""

_STEPS, _STEP, _NEAR = 40, 1e-4, 1e-4
_GAIN = 1e-5  # of the loss: less is not worth another step
_LONGEST = 0.5  # of a step, in logarithms: what a prediction chooses may change on the way
_HUBER, _MAD = 1.345, 1.4826
_LEAST_SCALE, _MOST_SCALE = 0.02, 0.25
_MOST_UNKNOWN = 1 / 3  # standard error of a constant's logarithm, by the size of what is left
_USUAL_SCALE = 0.1  # of what is left; more is no scatter, which fewer constants would mend


@dataclass(frozen=True, slots=True)
class Box:
    """Where a solution may lie; all logarithms.  ``spread`` is how far from ``start`` it is
    expected to be."""

    start: Vector
    low: Vector
    high: Vector
    spread: Vector

    def clip(self, point: Vector) -> Vector:
        """The nearest point inside."""
        return np.clip(point, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """The solution, its log ratios of shape (rows,) and their derivative (rows, constants)."""

    point: Vector
    log_ratios: Vector
    jacobian: NDArray[np.float64]

    @property
    def error(self) -> float:
        """Mean of abs(log(predicted / measured))."""
        return float(np.abs(self.log_ratios).mean())


def adjust(log_ratios: LogRatios, box: Box, first: Vector) -> Adjusted:
    """A point of a box whose log ratios are least, sought from the ``first``."""
    point, damping = box.clip(first), 1e-3
    found = log_ratios(point)
    for _ in range(_STEPS):
        scale = _scale(found)
        weights = _weights(found, scale)
        jacobian = _jacobian(log_ratios, point, found)

        def loss(at: Vector, rows: Vector, w: Vector = weights, s: float = scale) -> float:
            away = (at - box.start) / box.spread
            return float((w * (rows / s) ** 2).sum() + (away**2).sum())

        before, moved, gained = loss(point, found), 0.0, 0.0
        while damping < 1e6:
            new = box.clip(point + _step(jacobian, found, weights / scale**2, point, box, damping))
            rows = log_ratios(new)
            gained = before - loss(new, rows)
            if gained > 0:
                moved = float(np.abs(new - point).max())
                point, found, damping = new, rows, max(damping / 10, 1e-9)
                break
            damping *= 10
        if moved < _NEAR or gained < _GAIN * before:
            break
        damping = min(damping, 1e3)
    return Adjusted(point, found, _jacobian(log_ratios, point, found))


def _step(
    jacobian: NDArray[np.float64],
    rows: Vector,
    weights: Vector,
    point: Vector,
    box: Box,
    damping: float,
) -> Vector:
    """The damped step of the constants that no bound holds back."""
    slope = jacobian.T @ (weights * rows) + (point - box.start) / box.spread**2
    bent = jacobian.T @ (weights[:, None] * jacobian) + np.diag(box.spread**-2.0)
    held = ((point <= box.low) & (slope > 0)) | ((point >= box.high) & (slope < 0))
    free = np.flatnonzero(~held)
    step = np.zeros(len(point))
    if len(free):
        part = bent[np.ix_(free, free)]
        step[free] = -np.linalg.solve(part + damping * np.diag(np.diag(part)), slope[free])
    return np.clip(step, -_LONGEST, _LONGEST)


def _scale(rows: Vector) -> float:
    """The rows' usual size, as the standard deviation of a normal distribution."""
    usual = _MAD * float(np.median(np.abs(rows)))
    return min(max(usual, _LEAST_SCALE), _MOST_SCALE)


def _weights(rows: Vector, scale: float) -> Vector:
    return _HUBER * scale / np.maximum(np.abs(rows), _HUBER * scale)


def _jacobian(log_ratios: LogRatios, point: Vector, found: Vector) -> NDArray[np.float64]:
    """Shape (rows, constants)."""
    columns = np.zeros((len(found), len(point)))
    for k in range(len(point)):
        moved = point.copy()
        moved[k] += _STEP
        columns[:, k] = (log_ratios(moved) - found) / _STEP
    return columns


def determined(found: Adjusted) -> NDArray[np.bool_]:
    """Which constants the rows determine, given those that they determine better.

    What no constant explains is the measure: rows that a fit meets closely tell more.  Constants
    are taken by the size of what no constant before them could do, so that of several that act
    alike one is determined.
    """
    rest = found.jacobian.copy()
    least = min(_scale(found.log_ratios), _USUAL_SCALE) / _MOST_UNKNOWN
    chosen = np.zeros(rest.shape[1], dtype=bool)
    for _ in range(rest.shape[1]):
        sizes = np.where(chosen, 0.0, np.linalg.norm(rest, axis=0))
        best = int(np.argmax(sizes))
        if sizes[best] < least:
            break
        chosen[best] = True
        unit = rest[:, best] / sizes[best]
        rest -= np.outer(unit, unit @ rest)
    return chosen
