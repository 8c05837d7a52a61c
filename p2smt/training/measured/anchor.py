"""Constants of one's own cluster, from iterations that were measured there.

One run gives a factor on every time.  From three runs on the links, or the host's time for each
layer, may get a constant, too, if that at least halves the error of runs that are left out: there
are never more constants than runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import FloatArray, Placement
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.prediction_errors import SHARE
from p2smt.training.strategy import Batch, Strategy

ONE_RUN_SPREAD, WORSE_GROUPS, GROUPS = 0.1927, 27, 59
"""Of published groups: how far off, as a distance of logarithms, four of five runs of four of five
are once another run of their group gives the factor, and how many get worse by it
(``make training-anchors``)."""
SEVERAL = 3
"""Runs from which on a second constant is looked for."""
_HALF = 0.5
_LINKS = np.exp2(np.arange(-32, 9) / 8)
"""Parts of their bandwidth that links may reach: 1/16 to 2, in steps of a ninth."""
_HOST_S = np.concatenate([[0.0], np.geomspace(1e-5, 4e-2, 36)])
"""Seconds of a layer more, forward and backward."""


class AnchorKind(Enum):
    """What is fitted besides the factor."""

    FACTOR = "nothing"
    LINKS = "links"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class OwnRun:
    """An iteration that somebody measured on the cluster; ``memory_bytes``: of a device.

    ``placement`` and ``experts``: where its ranks lay; None: in Megatron's order.  ``batch``: None:
    that of the question.
    """

    strategy: Strategy
    step_s: float
    memory_bytes: int | None = None
    placement: Placement | None = None
    experts: Placement | None = None
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class AnchoredRun:
    """A run with the model's time before and after, and with its memory."""

    run: OwnRun
    predicted_s: float
    scaled_s: float
    predicted_bytes: int


@dataclass(frozen=True, slots=True)
class AnchorConstants:
    """``factor``: of every time; ``links``: of every bandwidth; ``host_s``: a layer more."""

    factor: float = 1.0
    links: float = 1.0
    host_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a cluster reaches of the model, by the runs that were measured there.

    ``spread``: a time that is scaled holds to a factor of exp of it, for four of five strategies.
    """

    constants: AnchorConstants
    spread: float
    runs: tuple[AnchoredRun, ...]

    @property
    def reached(self) -> float:
        """The part of the model's speed."""
        return 1 / self.constants.factor

    def scaled(self, seconds: float) -> float:
        """A time of the model as it will be here."""
        return self.constants.factor * seconds

    def range_of(self, seconds: float) -> tuple[float, float]:
        """The band about that."""
        said = self.scaled(seconds)
        return said * math.exp(-self.spread), said * math.exp(self.spread)

    def topology(self, topology: Topology) -> Topology:
        """The cluster with its links as they are."""
        return with_links(topology, self.constants.links)

    def efficiency(self, efficiency: Efficiency) -> Efficiency:
        """The constants with the host's time as it is."""
        return with_host(efficiency, self.constants.host_s)


def with_links(topology: Topology, part: float) -> Topology:
    """A topology whose links reach a part of their bandwidth."""
    if part != 1.0:
        for level in range(len(topology.levels)):
            topology = topology.with_bandwidth_factor(level, part)
    return topology


def with_host(efficiency: Efficiency, layer_s: float) -> Efficiency:
    """An efficiency by which each layer takes so much longer, whatever its work."""
    return replace(efficiency, layer_s=efficiency.layer_s + layer_s) if layer_s else efficiency


AnchoredModel = Callable[[OwnRun, float, float], float]
"""Seconds of a run where links reach a part of theirs, and layers take so many seconds more."""


def fit_anchor(
    runs: Sequence[OwnRun], seconds: AnchoredModel, memory: Sequence[int], spread: float
) -> Anchor:
    """The constants that the runs tell.

    Args:
        runs: one at least.
        seconds: the model.
        memory: the bytes that the model says of each.
        spread: what one run leaves open, see ``ONE_RUN_SPREAD``.
    """
    fits = {kind: _Fit(runs, seconds, kind) for kind in _kinds(len(runs))}
    chosen = fits[AnchorKind.FACTOR]
    if len(runs) >= SEVERAL:
        best = min(fits.values(), key=lambda one: one.mean_left_out)
        if best.mean_left_out <= _HALF * chosen.mean_left_out:
            chosen = best
    constants, predicted = chosen.of_all()
    before = [seconds(run, 1.0, 0.0) for run in runs]
    rows = zip(runs, before, predicted, memory, strict=True)
    return Anchor(constants, _spread(chosen, spread), tuple(AnchoredRun(*row) for row in rows))


def _kinds(count: int) -> tuple[AnchorKind, ...]:
    return tuple(AnchorKind) if count >= SEVERAL else (AnchorKind.FACTOR,)


class _Fit:
    """The fit of one kind: times of every run over the values of its second constant."""

    def __init__(self, runs: Sequence[OwnRun], seconds: AnchoredModel, kind: AnchorKind) -> None:
        self.kind = kind
        places = _places(kind)
        self._logs: FloatArray = np.log(
            [[seconds(run, *place) for place in places] for run in runs]
        )
        self._measured: FloatArray = np.log([run.step_s for run in runs])

    def _told(self, by: Sequence[int]) -> tuple[int, float]:
        """Place on the grid and logarithm of the factor that some of the runs tell."""
        apart = self._measured[by, None] - self._logs[by]
        factors = apart.mean(axis=0)
        place = int(((apart - factors) ** 2).sum(axis=0).argmin())
        return place, float(factors[place])

    def of_all(self) -> tuple[AnchorConstants, list[float]]:
        """The constants by all runs, and the times that these give each."""
        place, factor = self._told(range(len(self._measured)))
        links, host_s = _places(self.kind)[place]
        times = np.exp(self._logs[:, place] + factor)
        return AnchorConstants(math.exp(factor), links, host_s), times.tolist()

    @cached_property
    def left_out(self) -> list[float]:
        """How far off each run is by the others, as a distance of logarithms."""
        every, found = range(len(self._measured)), []
        for one in every:
            place, factor = self._told([other for other in every if other != one])
            found.append(abs(float(self._logs[one, place] + factor - self._measured[one])))
        return found

    @property
    def mean_left_out(self) -> float:
        """The mean of these."""
        return float(np.mean(self.left_out))


def _places(kind: AnchorKind) -> list[tuple[float, float]]:
    """The links' part and the host's seconds of each place on the grid."""
    match kind:
        case AnchorKind.FACTOR:
            return [(1.0, 0.0)]
        case AnchorKind.LINKS:
            return [(float(part), 0.0) for part in _LINKS]
        case AnchorKind.HOST:
            return [(1.0, float(host_s)) for host_s in _HOST_S]


def _spread(chosen: _Fit, one_run: float) -> float:
    """The band: by the runs that are left out where these are enough for four of five."""
    count = len(chosen._measured)
    if count < 2:
        return one_run
    offs, place = sorted(chosen.left_out), math.ceil(SHARE * (count + 1))
    return offs[place - 1] if place <= count else max(one_run, offs[-1])
