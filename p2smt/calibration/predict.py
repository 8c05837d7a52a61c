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
from p2smt.cost.step_time import StepTime

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

    def steps(self, topology: Topology) -> list[StepTime]:
        """How each sample runs, and for how long."""
        models = {
            shape: step_model(shape.cluster(topology), footprint, shape.operation)
            for shape, footprint in self.footprints.items()
        }
        return [
            models[shape].time(sample.payload_bytes)
            for sample, shape in zip(self.samples, self.shapes, strict=True)
        ]

    def seconds(self, topology: Topology) -> Seconds:
        """The predicted time of each sample."""
        return np.array([step.seconds for step in self.steps(topology)])


def predicted_s(topology: Topology, sample: Sample) -> float:
    """The cost model's time of a sample on a topology."""
    return float(Predictor.of(topology, [sample]).seconds(topology)[0])
