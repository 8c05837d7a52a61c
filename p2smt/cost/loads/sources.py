"""Who sends a block to whom, where it has as many holders as takers: the nearest first.

Entities are laminar: matching inside the innermost ones first leaves, for every uplink at once, no
more messages than its takers lack holders, the least that any choice can leave.  It is no choice
that pays the least latency, where that of a level is more than that of one outside it: then a
holder further away may answer sooner.
"""

from __future__ import annotations

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import IntArray


def nearest_sources(
    topology: Topology, devices: IntArray, held: IntArray, taken: IntArray
) -> IntArray:
    """The device that sends to each of these devices, which are ascending.

    ``held[i]`` and ``taken[i]`` number the block that ``devices[i]`` has, and the one it gets;
    each block has as many holders as takers.
    """
    source = np.full(len(held), -1, dtype=np.int64)
    sending, taking = np.arange(len(held)), np.arange(len(held))
    widths = [topology.devices_under(j) for j in reversed(range(len(topology.levels)))]
    for under in [*widths, topology.devices]:
        entity = devices // under
        count = int(entity[-1]) + 1
        givers = _numbered(held[sending] * count + entity[sending])
        takers = _numbered(taken[taking] * count + entity[taking])
        _, first, second = np.intersect1d(givers, takers, assume_unique=True, return_indices=True)
        source[taking[second]] = sending[first]
        sending, taking = np.delete(sending, first), np.delete(taking, second)
        if not len(sending):
            break
    return np.asarray(devices[source], dtype=np.int64)


def _numbered(key: IntArray) -> IntArray:
    """A number for each (key, how often it came before): no two are equal."""
    order = np.argsort(key, kind="stable")
    places = np.arange(len(key))
    fresh = np.diff(key[order], prepend=-1) != 0
    before = np.empty_like(places)
    before[order] = places - np.maximum.accumulate(np.where(fresh, places, 0))
    return np.asarray(key * (len(key) + 1) + before, dtype=np.int64)


def sources_meeting(
    topology: Topology, devices: IntArray, held: IntArray, taken: IntArray, weights: FloatArray
) -> IntArray | None:
    """The sources that weigh least together; None: there are none that may send.

    ``weights[j]`` is that of a message between siblings of level j, infinite where none may meet
    there; the last one that of a device to itself.  The rest is that of :func:`nearest_sources`.
    """
    from scipy.optimize import linear_sum_assignment  # not loaded where the nearest send

    source = np.empty(len(held), dtype=np.int64)
    for block in np.unique(held):
        holders, takers = np.flatnonzero(held == block), np.flatnonzero(taken == block)
        meeting = meeting_levels(topology, devices[takers][:, None], devices[holders][None, :])
        try:
            rows, columns = linear_sum_assignment(weights[meeting])
        except ValueError:  # no choice has a finite weight
            return None
        source[takers[rows]] = holders[columns]
    return np.asarray(devices[source], dtype=np.int64)


def meeting_levels(topology: Topology, one: IntArray, other: IntArray) -> IntArray:
    """The level at whose siblings two devices part; the number of levels: they are the same."""
    found = np.full(np.broadcast_shapes(one.shape, other.shape), len(topology.levels))
    for j in reversed(range(len(topology.levels))):
        under = topology.devices_under(j)
        found[one // under != other // under] = j
    return found
