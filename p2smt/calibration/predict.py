"""Predicted times of samples: one cost model for all samples that differ in size alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.samples import Sample, footprint_of
from p2smt.cluster.topology import Topology
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.level_use import Footprint
from p2smt.cost.step_time import Chooser, StepCostModel, StepTime

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
