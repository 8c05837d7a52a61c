"""What decides the time of a request: latency, the nodes' cards, their links, or another level.

The time is split into what the bytes take on the worst link of each step and what is left of it,
the latency: hops, the cost of the call, and what fills the pipeline of algorithms whose chunks
follow each other.  Bytes at the level that joins nodes
go through the nodes' network cards; further in they use links inside a node; further out the links
of racks or pods, called by their level.  The regime is the largest of these parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.cost.step_time import StepTime


@dataclass(frozen=True, slots=True)
class Decisive:
    """What decides the time of a request: the largest part of it (``regime``), and the link that
    bounds it: its level, the switch or host whose uplink it is where these have names and
    connections tell it (those of rings, sends and all-to-alls), and its load in one direction."""

    regime: str | None
    level: str | None
    owner: str | None
    load_bytes: float


LATENCY = "latency"
CARDS = "cards"
NODE_LINKS = "node links"


def regime(topology: Topology, steps: Sequence[StepTime], chunks: int = 1) -> str | None:
    """The largest part of a request's time, by its name; None where nothing takes time.

    ``steps`` are those of one of so many chunks.
    """
    parts = regime_parts(topology, steps, chunks)
    return max(parts, key=lambda name: parts[name], default=None)


def regime_parts(
    topology: Topology, steps: Sequence[StepTime], chunks: int = 1
) -> dict[str, float]:
    """Seconds by regime; together they are the time (:mod:`p2smt.cost.step_time`)."""
    found: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        _add(found, topology, step, 1)
    if chunks > 1 and steps:
        _add_period(found, topology, steps, chunks - 1)
    return {name: seconds for name, seconds in found.items() if seconds > 0}


def _add(found: defaultdict[str, float], topology: Topology, step: StepTime, times: int) -> None:
    """A step's time: its bytes on the worst link, and the rest."""
    if step.level is not None:
        found[level_regime(topology, step.level)] += times * step.wire_s
    found[LATENCY] += times * (step.seconds - (0.0 if step.level is None else step.wire_s))


def _add_period(
    found: defaultdict[str, float], topology: Topology, steps: Sequence[StepTime], times: int
) -> None:
    """What each chunk after the first adds: the slowest step, or the busiest level."""
    slowest = max(steps, key=lambda step: step.seconds)
    busy_s = np.sum([step.level_wire_s for step in steps], axis=0)
    level = int(busy_s.argmax())
    if slowest.seconds > busy_s[level]:
        _add(found, topology, slowest, times)
    else:
        found[level_regime(topology, level)] += times * float(busy_s[level])


def level_regime(topology: Topology, level: int) -> str:
    """The regime of bytes on the links of the level with this index."""
    if level == topology.node_level:
        return CARDS
    return NODE_LINKS if level > topology.node_level else topology.names[level]
