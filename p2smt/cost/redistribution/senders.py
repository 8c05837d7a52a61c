"""Which holder sends a block, where a level has more latency than one outside it.

The nearest holders load every uplink least.  They pay the latency of the levels at which they and
their takers part, and there others may be faster.  So besides the nearest those are priced whose
messages meet only at levels of at most so much latency, for every such limit; the fastest send.

What any choice takes is bounded by limits, too: within one, messages pay no less latency, and over
the uplinks of a level go no fewer than the fewest that may.  Where that bound is the time of the
choice, no other is faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.loads.sources import meeting_levels, nearest_sources, sources_meeting
from p2smt.cost.redistribution.permutes import (
    PermuteLoads,
    counted_footprint,
    counts_suffice,
    quick_levels,
)
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import IntArray


@dataclass(frozen=True, slots=True)
class Senders:
    """Who sends to each device, how long that takes, and what any choice takes at least."""

    sources: IntArray
    time: StepTime
    least_s: float


class SenderChoice:
    """The choice among these (ascending) devices of a topology."""

    def __init__(self, topology: Topology, devices: IntArray) -> None:
        self._topology, self._devices = topology, devices
        self._limits = quick_levels(topology)
        counted = counts_suffice(topology) and not topology.library and topology.hosts is None
        self._loads = PermuteLoads(topology, devices) if counted else None

    @property
    def matters(self) -> bool:
        """Whether others than the nearest holders may be faster, for their latency."""
        return bool(self._limits)

    def fastest(self, held: IntArray, taken: IntArray, payload_bytes: int) -> Senders:
        """The senders of the blocks ``held`` to those who take them."""
        nearest = nearest_sources(self._topology, self._devices, held, taken)
        best, time = nearest, self._time(nearest, payload_bytes)
        least_s = time.seconds
        met = set(self._met(nearest).tolist())
        for at in self._limits:
            if met <= at:
                continue  # the nearest are within the limit, and load the least
            sources = self._within(held, taken, at, self._busy())
            if sources is not None:
                other = self._time(sources, payload_bytes)
                best, time = (best, time) if time.seconds <= other.seconds else (sources, other)
                least_s = min(least_s, self._least_s(held, taken, at, sources, payload_bytes))
        return Senders(best, time, least_s)

    def _within(
        self, held: IntArray, taken: IntArray, at: frozenset[int], weights: FloatArray
    ) -> IntArray | None:
        """The sources of least weight whose messages meet at these levels only."""
        allowed = [*(j in at for j in range(len(weights))), True]
        weighed = np.where(allowed, np.append(weights, 0.0), np.inf)
        return sources_meeting(self._topology, self._devices, held, taken, weighed)

    def _busy(self) -> FloatArray:
        """How long a message keeps the uplinks of all levels busy, by where it meets."""
        levels = self._topology.levels
        each = [
            self._topology.devices_under(j) / (level.link.ports * level.link.bandwidth_bytes_per_s)
            for j, level in enumerate(levels)
        ]
        return np.cumsum(each[::-1])[::-1]

    def _met(self, sources: IntArray) -> IntArray:
        """The levels at which some message meets."""
        found = np.unique(meeting_levels(self._topology, sources, self._devices))
        return found[found < len(self._topology.levels)]

    def _time(self, sources: IntArray, payload_bytes: int) -> StepTime:
        apart = sources != self._devices
        footprint = explicit_send(self._topology, sources[apart], self._devices[apart])
        return step_model(self._topology, footprint, RequestKind.SEND).time(payload_bytes)

    def _least_s(
        self,
        held: IntArray,
        taken: IntArray,
        at: frozenset[int],
        found: IntArray,
        payload_bytes: int,
    ) -> float:
        """What every choice within a limit takes at least, of which one was ``found``."""
        if self._loads is None:
            return 0.0
        loads = self._loads.loads(held, taken[None, :], int(held.max()) + 1)[0]
        for j in range(len(self._topology.levels)):
            loads[0, j] = max(loads[0, j], self._fewest(held, taken, at, j))
        loads[1] = 0.0
        loads[1, self._met(found)] = 1.0
        footprint = counted_footprint(self._topology, loads)
        model = step_model(self._topology, footprint, RequestKind.SEND)
        return model.time(payload_bytes).seconds

    def _fewest(self, held: IntArray, taken: IntArray, at: frozenset[int], level: int) -> float:
        """The load of a level's busiest port, if the fewest messages are spread evenly."""
        levels = len(self._topology.levels)
        crossing = (np.arange(levels) <= level).astype(float)
        sources = self._within(held, taken, at, crossing)
        assert sources is not None
        under, ports = self._topology.devices_under(level), self._topology.levels[level].link.ports
        messages = int((sources // under != self._devices // under).sum())
        if ports >= under:
            return under / ports * min(messages, 1)
        return -(-messages // len(np.unique(self._devices // under)))
