"""Predicted times of samples: one cost model for all samples that differ in size alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.samples import Sample, footprint_of
from p2smt.cluster.topology import Topology
from p2smt.cost.algorithms import Operation
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.level_use import Footprint
from p2smt.cost.step_time import StepTime
from p2smt.programs.program import Grouping

Seconds = NDArray[np.float64]
_Place = tuple[int | None, Grouping]


@dataclass(frozen=True, slots=True)
class Predictor:
    """The times of some samples on topologies that differ in rates and latencies alone."""

    samples: tuple[Sample, ...]
    footprints: dict[_Place, Footprint]

    @staticmethod
    def of(topology: Topology, samples: Sequence[Sample]) -> Predictor:
        """A predictor for samples on topologies of this shape.

        Raises:
            InputError: the topology has no such groups.
        """
        places = {(sample.outermost, sample.grouping): sample for sample in samples}
        footprints = {
            place: footprint_of(sample.cluster(topology), sample.grouping)
            for place, sample in places.items()
        }
        return Predictor(tuple(samples), footprints)

    def steps(self, topology: Topology) -> list[StepTime]:
        """How each sample runs, and for how long."""
        models = {}
        found = []
        for sample in self.samples:
            place = (sample.outermost, sample.grouping)
            key: tuple[_Place, Operation] = (place, sample.operation)
            if key not in models:
                cluster = sample.cluster(topology)
                models[key] = step_model(cluster, self.footprints[place], sample.operation)
            found.append(models[key].time(sample.payload_bytes))
        return found

    def seconds(self, topology: Topology) -> Seconds:
        """The predicted time of each sample."""
        return np.array([step.seconds for step in self.steps(topology)])


def predicted_s(topology: Topology, sample: Sample) -> float:
    """The cost model's time of a sample on a topology."""
    return float(Predictor.of(topology, [sample]).seconds(topology)[0])
