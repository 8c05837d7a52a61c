"""A run's prediction as a value: its requests, their times, and what the whole takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import AnyKind
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Request
from p2smt.result import Status
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.memory_verdict import MemoryVerdict, memory_verdict
from p2smt.training.on_hosts import HostRanks

# What the model says of a strategy: time and memory, by their parts.


@dataclass(frozen=True, slots=True)
class PricedRequest:
    """A request of an axis with its seconds per iteration on the slowest stage.

    Its ``calls`` are those of that stage too.  What is done once is of the first stage, whose
    backward pass is the last to end.
    """

    request: AxisRequest
    call_s: float
    visible_s: float
    hidden_s: float


@dataclass(frozen=True, slots=True)
class TimeParts:
    """Seconds of an iteration; their sum is the iteration."""

    compute_s: float
    bubble_s: float
    communication_s: tuple[tuple[str, float], ...]  # visible, by axis
    optimizer_s: float

    @property
    def iteration_s(self) -> float:
        """The whole."""
        return sum(
            (self.compute_s, self.bubble_s, self.optimizer_s, *(s for _, s in self.communication_s))
        )


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """Bytes of a device, that of the stage which needs most."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    stage: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.parameters + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True, slots=True)
class Prediction:
    """Time and memory of an iteration under one strategy and placement.

    ``requests`` are those of the slowest stage, which make its time; other stages may have more of
    them, or others (:func:`~p2smt.training.pipeline.axis_requests`).
    """

    time: TimeParts
    memory: MemoryParts
    requests: tuple[PricedRequest, ...]
    model_flops: float
    """Floating-point operations of the model in an iteration, nothing computed twice."""
    tokens: int
    """Of an iteration, in all sequences."""
    devices: int
    peak_flops: float
    """Flop/s of a device, by its vendor."""

    @property
    def tokens_per_s(self) -> float:
        """Tokens that all devices together train on in a second."""
        return self.tokens / self.time.iteration_s

    @property
    def device_flops_per_s(self) -> float:
        """Flop/s of the model on a device: work that is done again does not count."""
        return self.model_flops / self.devices / self.time.iteration_s

    @property
    def utilization(self) -> float:
        """The part of the peak that the model's own operations take (MFU, arXiv 2204.02311)."""
        return self.device_flops_per_s / self.peak_flops


# A prediction beside what it is of, and the figures that follow from both.


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What the model of cost says of a training run on a cluster.

    ``placement`` None: the default order of ranks, which no matrix expresses there.
    ``capacity_bytes``: what a device may hold.  ``experts``: the placement of a mixture's experts.
    ``on_hosts``: where ranks lie on named hosts, in the place of both.  ``ranks``: where they lie
    on devices without host names, as no matrix has them, in the place of both.
    """

    run: TrainingRun
    topology: Topology
    efficiency: Efficiency
    placement: Placement | None
    prediction: Prediction
    capacity_bytes: int
    experts: Placement | None = None
    on_hosts: HostRanks | None = None
    ranks: RankList | None = None

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

    @property
    def memory_verdict(self) -> MemoryVerdict:
        """Whether it surely does, or runs so near to the capacity failed, too."""
        return memory_verdict(self.prediction.memory.total, self.capacity_bytes)


@dataclass(frozen=True, slots=True)
class BestRun:
    """The best of what a search looked at; OPTIMAL: no other is faster.

    ``found`` None: there is none, or it was not searched for, and ``reason`` says why.
    """

    found: RunEstimate | None
    status: Status
    reason: str = ""


# Requests of an iteration, and what each of them hides under.


DISPATCH_REQUEST = "ep dispatch"
"""The request that moves tokens to experts, or back."""


class Cover(Enum):
    """The work under which communication hides, as far as that takes at least as long."""

    NOTHING = "nothing"
    PRODUCT = "the matrix product beside it"
    ATTENTION = "attention of the blocks before"
    FORWARD = "forward of the first micro-batch"
    BACKWARD = "backward of the last micro-batch"
    LAYERS_BACKWARD = "backward of the layers before"
    COMPUTE = "forward and backward of the layers before"


@dataclass(frozen=True, slots=True)
class AxisRequest:
    """What a device asks of some axes in an iteration: ``calls`` times ``payload_bytes``.

    ``name`` tells it in tables ("tp forward"); ``payload_bytes`` is the whole vector, as in
    :class:`~p2smt.parallelism.request.Request`.  ``closed``: a send whose last rank sends to the
    first one, too.
    """

    name: str
    kind: AnyKind
    axes: tuple[str, ...]
    payload_bytes: int
    calls: int
    cover: Cover
    closed: bool = False

    @property
    def as_request(self) -> Request:
        """The same as a request of a problem."""
        return Request(self.kind, self.axes, self.payload_bytes, self.calls)
