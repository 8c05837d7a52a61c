"""Which values of the mesh's digits the devices of an entity have, where these form a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.cluster.topology import Topology
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import BoolArray, IntArray

FREE = -1


@dataclass(frozen=True, slots=True)
class Boxes:
    """Entities of one level whose devices have a box of digit values in every order of devices.

    ``fixed[order][e, digit]`` is the value that all devices of entity e have, or FREE: every value
    occurs, with every value of the other free digits.  ``rate`` is into each entity, bytes per
    second.  ``kept``: which of the level's entities with devices these are.
    """

    fixed: tuple[IntArray, ...]
    rate: FloatArray
    kept: BoolArray


def boxes_of(topology: Topology, frame: Frame, into: FloatArray, level: int) -> Boxes:
    """The boxes of a level; ``into`` are rates of all its entities."""
    devices = np.array(sorted(frame.orders[0]), dtype=np.int64)
    names, starts, count = np.unique(
        devices // topology.devices_under(level), return_index=True, return_counts=True
    )
    places, fixed = frame.coordinates(), []
    kept = np.ones(len(names), dtype=bool)
    for order in frame.orders:
        here, is_box = _fixed(frame, places[np.argsort(np.array(order))], starts, count)
        kept &= is_box
        fixed.append(here)
    kept &= into[names] > 0
    return Boxes(tuple(one[kept] for one in fixed), into[names[kept]], kept)


def _fixed(
    frame: Frame, places: IntArray, starts: IntArray, count: IntArray
) -> tuple[IntArray, BoolArray]:
    """Fixed values, and whether the entity's devices fill the box that these leave.

    They do if there are as many of them as in the box, since no two have the same values.
    """
    low = np.minimum.reduceat(places, starts, axis=0)
    high = np.maximum.reduceat(places, starts, axis=0)
    fixed = np.where(low == high, low, FREE)
    ways = np.where(low == high, 1, np.array(frame.sizes)).prod(axis=1)
    return fixed, np.asarray(ways == count)
