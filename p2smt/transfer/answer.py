"""What is asked of a transfer, and its answer: the plan, its time with latencies, and its proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status
from p2smt.transfer.bound import relayed_bound_s
from p2smt.transfer.buckets import BucketTimes, bucket_count, bucket_times
from p2smt.transfer.classes import TransferMoves, check_devices, find_moves
from p2smt.transfer.layouts import WeightLayout
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import PortMap, check_places
from p2smt.transfer.search import OPTIMAL_WITHIN, PlannedMoves, gap_of, plan_moves

CHUNK_BYTES = 4 * 2**20
"""What is sent at once of a piece, so that the next on its way can pass it on."""


@dataclass(frozen=True)
class TransferQuestion:
    """Two layouts of the same tensors, the devices of their ranks, and the bytes of an element.

    ``nominal``: ports pass what their links are said to, not what sends were measured to reach.
    ``memory_bytes``: the most that a device stages at once, beside both copies of the weights.

    Raises:
        InputError: devices are too few, named twice, or none of the cluster's; nobody stated the
            bandwidth of a level between them.
    """

    topology: Topology
    before: WeightLayout
    after: WeightLayout
    sources: Sequence[int]
    targets: Sequence[int]
    item_bytes: int
    nominal: bool = False
    memory_bytes: int | None = None
    limits: SearchLimits = field(default_factory=SearchLimits)

    def __post_init__(self) -> None:
        if self.item_bytes < 1:
            raise InputError(f"elements of {self.item_bytes} bytes", "must have 1 or more")
        for layout, devices, what in (
            (self.before, self.sources, "source"),
            (self.after, self.targets, "target"),
        ):
            check_devices(layout, devices, what)
            check_places(self.topology, devices, what)
        check_stated(self.topology, self._crossed())

    def _crossed(self) -> Sequence[str]:
        """The levels of which the devices lie in several entities."""
        used = np.array([*self.sources, *self.targets])
        return [
            level.name
            for j, level in enumerate(self.topology.levels)
            if len(np.unique(used // self.topology.devices_under(j))) > 1
        ]

    @cached_property
    def ports(self) -> PortMap:
        """The ports, at the rates that are asked for."""
        return PortMap(self.topology, "nominal" if self.nominal else "send")

    @cached_property
    def moves(self) -> TransferMoves:
        """The classes."""
        return find_moves(self.before, self.after, self.sources, self.targets)


@dataclass(frozen=True)
class TransferAnswer:
    """A plan, and what it comes to."""

    question: TransferQuestion
    found: PlannedMoves

    @cached_property
    def buckets(self) -> BucketTimes:
        """As many buckets as the cap on staging asks for, and the time of their bytes.

        Raises:
            InputError: no number of buckets keeps to the cap.
        """
        asked, pieces = self.question, self.found.pieces
        count = 1
        if asked.memory_bytes is not None:
            count = bucket_count(pieces, asked.item_bytes, asked.memory_bytes)
        return bucket_times(pieces, asked.ports, asked.item_bytes, count)

    @property
    def gap(self) -> Fraction | None:
        """How much longer than the bound the bytes take, as a part of it; None: none is proved."""
        return gap_of(self.buckets.bandwidth_s, self.found.certificate.bound_s)

    @property
    def status(self) -> Status:
        """OPTIMAL by the certificate alone, else FEASIBLE."""
        best = self.gap is not None and self.gap <= OPTIMAL_WITHIN
        return Status.OPTIMAL if best else Status.FEASIBLE

    @cached_property
    def relayed_bound_s(self) -> Fraction | None:
        """Seconds that no plan is below, not even one whose devices pass on for their neighbours.

        None: the time ran out.
        """
        asked = self.question
        known = self.found.certificate
        return relayed_bound_s(asked.moves, asked.ports, asked.item_bytes, known, asked.limits)

    @cached_property
    def fill_s(self) -> float:
        """Seconds that latencies and the filling of the longest chain add, in every bucket."""
        asked, count = self.question, self.buckets.count
        return fill_s(asked.ports, self.found.pieces, asked.item_bytes, count)

    @cached_property
    def received(self) -> Mapping[int, int]:
        """Bytes that each device gets."""
        found = Counter[int]()
        for (_, target), payload in self.found.replay.sent.items():
            found[target] += payload
        return found


def find_transfer(question: TransferQuestion) -> TransferAnswer:
    """The fastest plan found, with the best bound that is proved."""
    found = plan_moves(question.moves, question.ports, question.item_bytes, question.limits)
    return TransferAnswer(question, found)


def fill_s(ports: PortMap, pieces: Sequence[TreePiece], item_bytes: int, buckets: int = 1) -> float:
    """Seconds until the last device of the longest way gets a first chunk, in all buckets.

    Every edge of a way adds the latency of its link, and each but the first, whose time is that of
    the bytes, the time of a chunk.
    """
    costs: dict[tuple[int, int], tuple[float, float]] = {}
    longest = 0.0
    for piece in pieces:
        chunk = min(CHUNK_BYTES, -(-(piece.stop - piece.start) // buckets) * item_bytes)
        came: dict[int, float] = {}
        for edge in piece.edges:
            latency, per_byte = _known(costs, ports, edge)
            before = came.get(edge[0])
            came[edge[1]] = latency + (0.0 if before is None else before + chunk * per_byte)
        longest = max(longest, *came.values())
    return longest * buckets


def _edge_cost(ports: PortMap, source: int, target: int) -> tuple[float, float]:
    """Latency of a message, and seconds per byte."""
    used = ports.message(source, target)
    link = ports.topology.levels[min(port.level for port in used)].link
    fastest = max(link.pieces, key=lambda piece: piece.bandwidth_bytes_per_s)
    return fastest.latency_s, max(float(1 / ports.rate(port)) for port in used)


def _known(
    costs: dict[tuple[int, int], tuple[float, float]], ports: PortMap, edge: tuple[int, int]
) -> tuple[float, float]:
    if edge not in costs:
        costs[edge] = _edge_cost(ports, *edge)
    return costs[edge]
