"""Connections of ranks over the uplinks of nodes and switches: whose are crossed, and how often.

A ring (or a send's chain) has a connection from each rank to the next, an all-to-all one for each
ordered pair of a group.  All connections of a request carry as many bytes, so that the uplink with
most of them, for its bandwidth, is the one that decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.rings import node_order
from p2smt.parallelism.placement import FloatArray, IntArray


def crossings(
    topology: Topology, ranks: IntArray, axes: Sequence[int], kind: RequestKind
) -> tuple[FloatArray, ...]:
    """Per level from the outermost to that of the nodes: connections over each entity's uplink.

    Shape (2, entities of the hull): out of each, and into it.  ``ranks`` is a rank tensor (shape:
    axis sizes, entries: device ids), ``axes`` those of the request, by index.
    """
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    lines = ranks.transpose([*rest, *axes]).reshape(-1, members)
    levels = range(topology.node_level + 1)
    if kind is RequestKind.ALL_TO_ALL:
        return tuple(_pairs(topology, lines, j) for j in levels)
    if kind is RequestKind.SEND:
        source, target = lines[:, :-1].ravel(), lines[:, 1:].ravel()
    else:
        ring = _ring(topology, lines)
        source, target = ring.ravel(), np.roll(ring, -1, axis=1).ravel()
    return tuple(_edges(topology, source, target, j) for j in levels)


def _ring(topology: Topology, lines: IntArray) -> IntArray:
    """The members of each group in the order in which the library's rings visit them."""
    if topology.library and not topology.known_library.joins_nodes:
        return lines
    return node_order(lines, topology.devices_under(topology.node_level), by_device=True)


def _edges(topology: Topology, source: IntArray, target: IntArray, j: int) -> FloatArray:
    under, count = topology.devices_under(j), math.prod(topology.sizes[: j + 1])
    apart = source // under != target // under
    ends = [np.bincount(side[apart] // under, minlength=count) for side in (source, target)]
    return np.array(ends, dtype=float)


def _pairs(topology: Topology, lines: IntArray, j: int) -> FloatArray:
    """Of q members of p in an entity, each sends to the p - q others."""
    under, count = topology.devices_under(j), math.prod(topology.sizes[: j + 1])
    found, members = np.zeros(count), lines.shape[1]
    for row in lines:
        inside = np.bincount(row // under, minlength=count)
        found += inside * (members - inside)
    return np.stack([found, found])
