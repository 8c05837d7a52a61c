"""A measured operation, and what it asks of the links under each algorithm.

A measurement names its groups as the cost model does: all devices of the topology are one axis,
and a :class:`Grouping` over its levels (those of size 1 do not count) forms the groups, which
all ran at once.  So the inside of every node is ``Grouping(1, 2)`` of two levels, all devices
``Grouping(0, 2)``, and one device of each node ``Grouping(0, 1, master=True)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from p2smt.cluster.topology import Algorithm, Link, LinkKind, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation, Rule, rules
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.step_time import Chooser, StepCostModel, StepTime
from p2smt.errors import InputError
from p2smt.programs.program import Grouping

MAX_BYTES = 2**62
MAX_SECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured time.

    ``payload_bytes`` is the whole vector per device (all-gather: its output; reduce-scatter:
    its input; all-to-all: all that a device holds, for every member its part; send: the
    message), ``seconds`` the median or mean of the repetitions, ``spread_s`` how far they lie
    apart (0: unknown).  ``outermost`` is the number of entities of the outermost level that
    took part where it is not the topology's (a run on 2 nodes of a cluster of 4), ``members``
    that of the devices where only some of one innermost entity did (4 of a node's 8).  ``source``
    says where it is from, for reports; ``ran`` by which of its own algorithms it ran, where that is
    known of it (None: as the topology says).
    """

    operation: Operation
    grouping: Grouping
    payload_bytes: int
    seconds: float
    spread_s: float = 0.0
    outermost: int | None = None
    source: str = ""
    members: int | None = None
    ran: tuple[Algorithm, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.payload_bytes < MAX_BYTES:
            raise InputError(f"payload {self.payload_bytes} B", "must be from 1 B to 2^62 B")
        if not 0 < self.seconds < MAX_SECONDS:
            raise InputError(f"measured time {self.seconds} s", "must be positive, at most 1e6 s")
        if not 0 <= self.spread_s < math.inf:
            raise InputError(f"spread {self.spread_s} s", "must be zero or more")

    def cluster(self, topology: Topology) -> Topology:
        """The part of the cluster that took part, running what ran."""
        part = self._part(topology)
        return part if self.ran is None else part.running(self.ran)

    def _part(self, topology: Topology) -> Topology:
        if self.members is not None:
            return _inside(topology, self.members)
        if self.outermost in (None, topology.levels[0].size):
            return topology
        return topology.with_outermost(self.outermost or 1)


def _inside(topology: Topology, members: int) -> Topology:
    """The same levels with so many devices, all in one innermost entity."""
    *outer, inner = topology.levels
    single = (
        replace(level, size=1, link=Link(LinkKind.SWITCH, level.link.pieces)) for level in outer
    )
    return replace(topology, levels=(*single, replace(inner, size=members)))


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a calibration starts from; ``wrong`` are rows left out for wrong results.

    ``sources`` say in a line each what was measured.  ``here``: by ranks of the cluster
    itself, so that the rates of the topology are a start and bound nothing.
    """

    topology: Topology
    samples: tuple[Sample, ...]
    sources: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    here: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What one sample asks of the links if it runs by one algorithm, per level from outermost.

    ``level`` is the outermost level that its groups cross, ``steps`` counts latencies,
    ``loads`` is bytes on the worst link (port), ``drawn`` bytes that one device sends over it
    (0 where nothing caps that).  ``passes`` > 0 marks a pipelined tree.
    """

    level: int
    steps: tuple[int, ...]
    loads: tuple[float, ...]
    drawn: tuple[float, ...]
    passes: int = 0

    def times(self, payload_bytes: float) -> Usage:
        """The same for a payload of so many bytes."""
        return replace(
            self,
            loads=tuple(load * payload_bytes for load in self.loads),
            drawn=tuple(drawn * payload_bytes for drawn in self.drawn),
        )


def usages(topology: Topology, sample: Sample) -> list[Usage]:
    """Steps and loads of a sample by each algorithm of the topology, as the model counts them.

    Raises:
        InputError: the grouping is not one of the topology.
    """
    units = _unit_usages(sample.cluster(topology), sample.grouping, sample.operation)
    return [unit.times(sample.payload_bytes) for unit in units]


def digits_of_all(topology: Topology) -> tuple[Digits, ...]:
    """The digits of one axis over all devices."""
    return tuple(((size, 1),) if size > 1 else () for size in topology.sizes)


def footprint_of(
    topology: Topology, grouping: Grouping, operation: Operation | None = None
) -> Footprint:
    """The footprint of the groups of ``grouping`` among all devices of ``topology``.

    In a send every device sends to the next one of its group, so a device's message leaves an
    entity by its own port; other operations spread what crosses over all ports.

    Raises:
        InputError: the topology has no such grouping.
    """
    depth = sum(size > 1 for size in topology.sizes)
    if not 0 <= grouping.outer < grouping.inner <= depth:
        raise InputError(
            f"groups over levels {grouping.outer} to {grouping.inner}",
            f"{topology.name} has {depth} levels with more than one sibling",
            "name the topology that was measured",
        )
    digits = digits_of_all(topology)
    if operation is RequestKind.SEND and not grouping.master:
        return send_footprint(topology, _inside_groups(digits, grouping))
    return regular_footprint(topology, digits, grouping)


def _inside_groups(digits: Sequence[Digits], grouping: Grouping) -> tuple[Digits, ...]:
    """The digits of the levels over which groups spread."""
    depths = accumulate((bool(level) for level in digits), initial=0)
    return tuple(
        level if grouping.outer <= depth < grouping.inner else ()
        for level, depth in zip(digits, depths, strict=False)
    )


@lru_cache(maxsize=4096)
def _unit_usages(topology: Topology, grouping: Grouping, operation: Operation) -> tuple[Usage, ...]:
    """The usages of one byte."""
    footprint = footprint_of(topology, grouping, operation)
    found = rules(topology, footprint, operation)
    return tuple(_usage(topology, footprint, rule, operation) for _, rule in found)


def _usage(topology: Topology, footprint: Footprint, rule: Rule, operation: Operation) -> Usage:
    profile = max(footprint.profiles)  # of sends, those over the outermost level
    loads, drawn = [0.0] * len(profile), [0.0] * len(profile)
    for use in footprint.uses:
        loads[use.level], drawn[use.level] = _load(topology, use, rule)
    level = next(j for j, entities in enumerate(profile) if entities > 1)
    passes = 0 if not rule.pipelined else 2 if operation is Collective.ALL_REDUCE else 1
    steps = max(rule.latencies(footprint))
    return Usage(level, steps, tuple(loads), tuple(drawn), passes)


def _load(topology: Topology, use: LevelUse, rule: Rule) -> tuple[float, float]:
    link = topology.levels[use.level].link
    capped = link.device_bandwidth_bytes_per_s is not None
    return rule.load(use, link.kind), rule.drawn(use, link.kind) if capped else 0.0


# Predicted times of samples: one cost model for all samples that differ in size alone.


Seconds = NDArray[np.float64]


def shape_of(sample: Sample) -> Sample:
    """What samples have in common that differ in payload and time alone."""
    return replace(sample, payload_bytes=1, seconds=1.0, spread_s=0.0, source="")


@dataclass(frozen=True, slots=True)
class Predictor:
    """The times of some samples on topologies that differ in rates and latencies alone."""

    samples: tuple[Sample, ...]
    shapes: tuple[Sample, ...]
    footprints: Mapping[Sample, Footprint]

    @staticmethod
    def of(topology: Topology, samples: Sequence[Sample]) -> Predictor:
        """A predictor for samples on topologies of this shape.

        Raises:
            InputError: the topology has no such groups.
        """
        shapes = tuple(shape_of(sample) for sample in samples)
        footprints = {
            shape: footprint_of(shape.cluster(topology), shape.grouping, shape.operation)
            for shape in dict.fromkeys(shapes)
        }
        return Predictor(tuple(samples), shapes, footprints)

    def choosers(self, topology: Topology) -> Mapping[Sample, Chooser | None]:
        """Who chooses how each shape runs on a topology."""
        return {shape: model.chooser for shape, model in self._models(topology).items()}

    def _models(self, topology: Topology) -> Mapping[Sample, StepCostModel]:
        return {
            shape: step_model(shape.cluster(topology), footprint, shape.operation)
            for shape, footprint in self.footprints.items()
        }

    def steps(
        self, topology: Topology, choosers: Mapping[Sample, Chooser | None] | None = None
    ) -> list[StepTime]:
        """How each sample runs, and for how long; ``choosers``: those of another topology."""
        models = self._models(topology)
        if choosers is not None:
            models = {s: replace(model, chooser=choosers[s]) for s, model in models.items()}
        return [
            models[shape].time(sample.payload_bytes)
            for sample, shape in zip(self.samples, self.shapes, strict=True)
        ]

    def seconds(
        self, topology: Topology, choosers: Mapping[Sample, Chooser | None] | None = None
    ) -> Seconds:
        """The predicted time of each sample."""
        return np.array([step.seconds for step in self.steps(topology, choosers)])


def predicted_s(topology: Topology, sample: Sample) -> float:
    """The cost model's time of a sample on a topology."""
    return float(Predictor.of(topology, [sample]).seconds(topology)[0])
