"""The constants of a topology that measured times can determine, and topologies that have them.

With a library the links keep their nominal rates: what is fitted is which part of a rate an
algorithm reaches, what a hop of a protocol takes on a link, and what a call takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from p2smt.cluster.link import ANY, Link
from p2smt.cluster.topology import Topology

LEAST_S = 1e-8
"""Nothing that takes less is measured: no constant is fitted to a shorter time."""
LEAST_EFFICIENCY, MOST_EFFICIENCY = 1e-4, 1e3
MOST_S = 1.0
_DIGITS = 6


class Quantity(Enum):
    """What a constant says; its value is the word in files and reports."""

    EFFICIENCY = "efficiency"
    HOP = "hop"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant: of the level with an index (None: of the whole topology).

    ``name`` is an algorithm (or send, all-to-all) for an efficiency, a protocol for a hop, an
    operation for a call.  Efficiencies are parts of the nominal bandwidth, the others seconds.
    """

    quantity: Quantity
    name: str
    level: int | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value of a fit that does not know the nominal rate."""
        if self.quantity is Quantity.EFFICIENCY:
            return LEAST_EFFICIENCY, MOST_EFFICIENCY
        return LEAST_S, MOST_S


def with_constants(topology: Topology, values: Mapping[Constant, float]) -> Topology:
    """The topology with these constants in place of its own; without any it stays as it is.

    An efficiency above 1 raises the link's nominal rate so that the largest becomes 1 and every
    other way keeps its speed.
    """
    if not values:
        return topology
    levels = list(topology.levels)
    for j in {constant.level for constant in values if constant.level is not None}:
        mine = {c: value for c, value in values.items() if c.level == j}
        levels[j] = replace(levels[j], link=_with_link(levels[j].link, mine))
    calls = dict(topology.calls)
    calls |= {c.name: v for c, v in values.items() if c.quantity is Quantity.CALL}
    return replace(topology, levels=tuple(levels), calls=tuple(calls.items()), calibrated=True)


def _with_link(link: Link, values: Mapping[Constant, float]) -> Link:
    parts = dict(link.efficiency)
    parts |= {c.name: v for c, v in values.items() if c.quantity is Quantity.EFFICIENCY}
    hops = dict(link.hops)
    hops |= {c.name: v for c, v in values.items() if c.quantity is Quantity.HOP}
    most = max(parts.values(), default=1.0)
    if most > 1:
        link = _faster(link, most)
        parts = {name: rounded(part / most) for name, part in ({ANY: 1.0} | parts).items()}
    return replace(link, efficiency=tuple(parts.items()), hops=tuple(hops.items()))


def _faster(link: Link, factor: float) -> Link:
    pieces = tuple(
        replace(p, bandwidth_bytes_per_s=factor * p.bandwidth_bytes_per_s) for p in link.pieces
    )
    cap = link.device_bandwidth_bytes_per_s
    raised = None if cap is None else factor * cap
    return replace(link, pieces=pieces, device_bandwidth_bytes_per_s=raised)


def rounded(value: float) -> float:
    """Six digits: all that a measurement can tell, and a file that people can read."""
    if not value:
        return value
    return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))
