"""The constants of a library on a topology, fitted to the times of several tables together.

The library's choice of algorithm and protocol rests on nominal rates, so it stays while the
constants move: a rate that is raised above its nominal one is raised in what the fit ends at.  A
constant that the times do not determine keeps its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.samples import Predictor, Sample, shape_of
from p2smt.cluster.library.model import family_of
from p2smt.cluster.link import ANY, Algorithm, Link
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.library.ways import hop_s
from p2smt.cost.step_time import StepTime

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


# Robust least squares in logarithms, near a start that counts as a weak measurement.
# Gauss-Newton steps with damping (Marquardt 1963) on log(predicted / measured), rows weighted anew
# in each step by Huber's function (1964), so that a few rows that nothing explains do not bend the
# rest.  The derivative is numeric: the prediction is a black box.


Vector = NDArray[np.float64]
LogRatios = Callable[[Vector], Vector]
"""log(predicted / measured) of every row by the logarithms of the constants."""

_STEPS, _STEP, _NEAR = 40, 1e-4, 1e-4
_GAIN = 1e-5  # of the loss: less is not worth another step
_LONGEST = 0.5  # of a step, in logarithms: what a prediction chooses may change on the way
_HUBER, _MAD_adjust = 1.345, 1.4826
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
    usual = _MAD_adjust * float(np.median(np.abs(rows)))
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


# The constants of a topology that measured times can determine, and topologies that have them.
# With a library the links keep their nominal rates: what is fitted is which part of a rate an
# algorithm reaches, what a hop of a protocol takes on a link, and what a call takes.


LEAST_S = 1e-8
"""Nothing that takes less is measured: no constant is fitted to a shorter time."""
LEAST_EFFICIENCY, MOST_EFFICIENCY = 1e-4, 1e3
MOST_S = 1.0
_DIGITS = 6


class Quantity(Enum):
    """What a constant says; its value is the word in files and reports."""

    EFFICIENCY = "efficiency"
    HOP = "hop"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant: of the level with an index (None: of the whole topology).

    ``name`` is an algorithm (or send, all-to-all) for an efficiency, a protocol for a hop, an
    operation for a call.  Efficiencies are parts of the nominal bandwidth, the others seconds.
    """

    quantity: Quantity
    name: str
    level: int | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value of a fit that does not know the nominal rate."""
        if self.quantity is Quantity.EFFICIENCY:
            return LEAST_EFFICIENCY, MOST_EFFICIENCY
        return LEAST_S, MOST_S


def with_constants(topology: Topology, values: Mapping[Constant, float]) -> Topology:
    """The topology with these constants in place of its own; without any it stays as it is.

    An efficiency above 1 raises the link's nominal rate so that the largest becomes 1 and every
    other way keeps its speed.
    """
    if not values:
        return topology
    levels = list(topology.levels)
    for j in {constant.level for constant in values if constant.level is not None}:
        mine = {c: value for c, value in values.items() if c.level == j}
        levels[j] = replace(levels[j], link=_with_link(levels[j].link, mine))
    calls = dict(topology.calls)
    calls |= {c.name: v for c, v in values.items() if c.quantity is Quantity.CALL}
    return replace(topology, levels=tuple(levels), calls=tuple(calls.items()), calibrated=True)


def _with_link(link: Link, values: Mapping[Constant, float]) -> Link:
    parts = dict(link.efficiency)
    parts |= {c.name: v for c, v in values.items() if c.quantity is Quantity.EFFICIENCY}
    hops = dict(link.hops)
    hops |= {c.name: v for c, v in values.items() if c.quantity is Quantity.HOP}
    most = max(parts.values(), default=1.0)
    if most > 1:
        link = _faster(link, most)
        parts = {name: rounded(part / most) for name, part in ({ANY: 1.0} | parts).items()}
    return replace(link, efficiency=tuple(parts.items()), hops=tuple(hops.items()))


def _faster(link: Link, factor: float) -> Link:
    pieces = tuple(
        replace(p, bandwidth_bytes_per_s=factor * p.bandwidth_bytes_per_s) for p in link.pieces
    )
    cap = link.device_bandwidth_bytes_per_s
    raised = None if cap is None else factor * cap
    return replace(link, pieces=pieces, device_bandwidth_bytes_per_s=raised)


def rounded(value: float) -> float:
    """Six digits: all that a measurement can tell, and a file that people can read."""
    if not value:
        return value
    return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))


# What a fit may turn: constants that move together, from where the topology has them.


TELLING, LONG = 0.4, 10.0
"""A run tells a rate if the transfer alone, at the rate so far, is this part of its time at least,
or if it takes so many times as long as the shortest one of its shape: else latencies that are a
little off would pass for a rate that is far off."""
_SPREAD = {Quantity.EFFICIENCY: 1.0, Quantity.HOP: 1.5, Quantity.CALL: 1.5}


@dataclass(frozen=True, slots=True)
class Knob:
    """Constants that one factor scales; ``starts`` are their values before.

    ``guess`` is the factor by which the times alone would have it.
    """

    constants: tuple[Constant, ...]
    starts: tuple[float, ...]
    guess: float = 1.0

    @property
    def spread(self) -> float:
        """How far from 1 the logarithm of the factor is expected to be."""
        return _SPREAD[self.constants[0].quantity]

    @property
    def bounds(self) -> tuple[float, float]:
        """Logarithms of the least and the largest factor."""
        lows, highs = zip(*(constant.bounds for constant in self.constants), strict=True)
        low = max(math.log(a / b) for a, b in zip(lows, self.starts, strict=True))
        high = min(math.log(a / b) for a, b in zip(highs, self.starts, strict=True))
        return min(low, 0.0), max(high, 0.0)

    def values(self, factor: float) -> dict[Constant, float]:
        """The constants scaled."""
        return {c: factor * s for c, s in zip(self.constants, self.starts, strict=True)}


def knobs_of(
    topology: Topology, samples: Sequence[Sample], steps: Sequence[StepTime]
) -> list[Knob]:
    """What these samples could determine, by how each of them runs.

    An efficiency for each algorithm that loads a link long enough to tell, one factor on the hops
    of each network link, and the cost of a call for each operation.
    """
    runs = list(zip(samples, steps, strict=True))
    reached: dict[tuple[Constant, float], list[float]] = {}
    telling: dict[tuple[Constant, float], int] = {}
    for run, long in zip(runs, _long(samples), strict=True):
        for constant, start, part in _efficiencies(topology, *run):
            reached.setdefault((constant, start), []).append(part)
            known = telling.get((constant, start), 0)
            telling[constant, start] = known + (long or part >= TELLING)
    calls = dict.fromkeys(sample.operation.value for sample in samples)
    told = {one: parts for one, parts in reached.items() if telling[one] >= min(2, len(parts))}
    return [
        *(Knob((c,), (start,), _usual_best(parts)) for (c, start), parts in told.items()),
        *_hop_knobs(topology, runs),
        *(knob for name in calls for knob in _call_knobs(topology, name)),
    ]


def _long(samples: Sequence[Sample]) -> list[bool]:
    """Whether each takes many times as long as the shortest of its shape."""
    shapes = [shape_of(sample) for sample in samples]
    shortest: dict[Sample, float] = {}
    for shape, sample in zip(shapes, samples, strict=True):
        shortest[shape] = min(sample.seconds, shortest.get(shape, sample.seconds))
    return [
        sample.seconds >= LONG * shortest[shape]
        for shape, sample in zip(shapes, samples, strict=True)
    ]


def _efficiencies(
    topology: Topology, sample: Sample, step: StepTime
) -> Iterator[tuple[Constant, float, float]]:
    """The efficiency that a run shows of each link that it loads, what it is so far, and which
    part of the rate so far the run would reach if it did nothing but transfer."""
    for j, rate in enumerate(step.level_s_per_byte):
        if rate > 0:
            link = topology.levels[j].link
            name = _listed(topology, link, sample, step)
            start = link.efficiency_of(name, step.algorithm, *_made_of(step))
            if name not in dict(link.efficiency):
                start = min(start, _left_by_library(topology, j, name))
            part = rate * sample.payload_bytes / sample.seconds
            yield Constant(Quantity.EFFICIENCY, name, j), start, part


def _left_by_library(topology: Topology, j: int, name: str) -> float:
    """The part of a level's rate that its library leaves an exchange between nodes."""
    if j != topology.node_level or name != RequestKind.ALL_TO_ALL.value:
        return math.inf
    link = topology.levels[j].link
    rate = topology.known_library.exchange_rate * topology.devices_under(j) / link.ports
    return rate / link.nominal_bytes_per_s


def _made_of(step: StepTime) -> tuple[str, ...]:
    """What a tree of nodes whose switches reduce has the efficiency of, unless it has its own."""
    return (Algorithm.NVLS.value,) if step.algorithm == Algorithm.NVLS_TREE.value else ()


def _usual_best(parts: Sequence[float]) -> float:
    """The second largest: the largest may be a slip."""
    return sorted(parts)[-2:][0]


def _listed(topology: Topology, link: Link, sample: Sample, step: StepTime) -> str:
    """What the efficiency of a run on a link is listed under.

    That is the algorithm, and the operation where a library has one algorithm for each.  A tree of
    nodes whose switches reduce shares that of a tree between them, unless the link has one of its
    own.
    """
    operation, known = sample.operation.value, dict(link.efficiency)
    library = topology.known_library
    if isinstance(sample.operation, RequestKind) or operation in known or library.fixed:
        return str(operation)
    shared = step.algorithm == Algorithm.NVLS_TREE.value and link.network
    return str(Algorithm.TREE.value) if shared and step.algorithm not in known else step.algorithm


def _hop_knobs(topology: Topology, runs: Sequence[tuple[Sample, StepTime]]) -> Iterator[Knob]:
    for j in range(len(topology.levels)):
        used = [run for run in runs if run[1].level_s_per_byte[j] > 0]
        kinds = dict.fromkeys(found for run in used for found in _hops(topology, *run))
        for kind, family, protocol in kinds:
            start = hop_s(topology, j, protocol, family, kind)
            if start > 0:
                yield Knob((Constant(Quantity.HOP, f"{kind}-{protocol}", j),), (start,))


def _hops(topology: Topology, sample: Sample, step: StepTime) -> Iterator[tuple[str, str, str]]:
    """What hops that a run may pay are listed under, their family, and the protocol.

    A ring pays a tree's between nodes of which each has one rank.
    """
    known = {found.value: found for found in Algorithm}
    family = family_of(known.get(step.algorithm))
    if topology.known_library.fixed:
        yield sample.operation.value, family, step.protocol
        return
    yield family, family, step.protocol
    if family == family_of(Algorithm.RING):
        tree = family_of(Algorithm.TREE)
        yield tree, tree, step.protocol


def _call_knobs(topology: Topology, operation: str) -> Iterator[Knob]:
    library = topology.known_library
    start = dict(topology.calls).get(operation, library.call_s(operation))
    if start > 0:
        yield Knob((Constant(Quantity.CALL, operation),), (start,))
