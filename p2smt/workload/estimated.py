"""A prediction beside what it is of, and the figures that follow from both."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import Placement
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.prediction import Prediction
from p2smt.workload.run import TrainingRun


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What the model of cost says of a training run on a cluster.

    ``placement`` None: the default order of ranks, which no matrix expresses there.
    ``capacity_bytes``: what a device may hold.
    """

    run: TrainingRun
    topology: Topology
    efficiency: Efficiency
    placement: Placement | None
    prediction: Prediction
    capacity_bytes: int

    @property
    def iteration_s(self) -> float:
        """Seconds of an iteration."""
        return self.prediction.time.iteration_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens that all devices train on in a second."""
        return self.prediction.tokens_per_s

    @property
    def missing_bytes(self) -> int:
        """Bytes that a device lacks; 0: it fits."""
        return max(0, self.prediction.memory.total - self.capacity_bytes)

    @property
    def fits(self) -> bool:
        """Whether its memory suffices."""
        return self.missing_bytes == 0
