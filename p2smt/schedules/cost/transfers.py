"""The transfers of one step between devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.cost.links import NOWHERE

if TYPE_CHECKING:
    from p2smt.schedules.cost.links import Route, Routes
    from p2smt.schedules.model import Step

IN_SWITCH = ("glres", "gstore", "gstorepkt")
"""Steps whose reads are added up, or whose writes are multicast, by the switch."""


class Parts(NamedTuple):
    """The transfers of a step: what it reads from other devices, what it writes and sends."""

    reads: tuple[Route, ...]
    outs: tuple[Route, ...]

    @property
    def read_latency_s(self) -> float:
        """When the first of what it reads is there, and can go on."""
        return max((route.latency_s for route in self.reads), default=0.0)

    @property
    def tail_s(self) -> float:
        """From the end of the step to when all that it writes and sends has arrived."""
        return max((route.latency_s for route in self.outs), default=0.0)

    def alone_s(self, size: float) -> float:
        """Seconds that the step takes with all links to itself."""
        if not self.reads:
            return max([size / route.bandwidth_bytes_per_s for route in self.outs], default=0.0)
        first = self.read_latency_s
        reads = [r.latency_s + size / r.bandwidth_bytes_per_s for r in self.reads]
        return max([*reads, *(first + size / r.bandwidth_bytes_per_s for r in self.outs)] or [0.0])


def parts_of(step: Step, routes: Routes) -> Parts:
    """The transfers of a step between devices; what stays on a device is free."""
    reads = [routes.between(s.rank, step.rank) for s in step.reads if s.rank != step.rank]
    outs = [routes.between(step.rank, s.rank) for s in step.writes if s.rank != step.rank]
    if step.kind in IN_SWITCH:
        reads, outs = [routes.joined(reads)], [routes.joined(outs)]
    if step.send:
        outs.append(routes.between(step.rank, step.send.target))
    return Parts(
        tuple(route for route in reads if route != NOWHERE),
        tuple(route for route in outs if route != NOWHERE),
    )
