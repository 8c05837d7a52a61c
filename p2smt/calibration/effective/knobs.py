"""What a fit may turn: constants that move together, from where the topology has them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.calibration.effective.constants import Constant, Quantity
from p2smt.calibration.predict import shape_of
from p2smt.calibration.samples import Sample
from p2smt.cluster.link import Algorithm, Link
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.library.model import family_of
from p2smt.cost.library.registry import library_of
from p2smt.cost.library.ways import hop_s
from p2smt.cost.step_time import StepTime

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
            part = rate * sample.payload_bytes / sample.seconds
            yield Constant(Quantity.EFFICIENCY, name, j), start, part


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
    library = library_of(topology.library)
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
    if library_of(topology.library).fixed:
        yield sample.operation.value, family, step.protocol
        return
    yield family, family, step.protocol
    if family == family_of(Algorithm.RING):
        tree = family_of(Algorithm.TREE)
        yield tree, tree, step.protocol


def _call_knobs(topology: Topology, operation: str) -> Iterator[Knob]:
    library = library_of(topology.library)
    start = dict(topology.calls).get(operation, library.call_s(operation))
    if start > 0:
        yield Knob((Constant(Quantity.CALL, operation),), (start,))
