"""Where a cluster's levels cut the axes of a mesh."""

from __future__ import annotations

import numpy as np

from p2smt.arrays.ends import Splits
from p2smt.arrays.mesh import Mesh
from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import IntArray


def level_splits(topology: Topology, mesh: Mesh) -> Splits:
    """Per axis its factors at the levels, outermost first, those of 1 left out.

    Of a mesh whose devices a placement matrix gave these are the matrix's rows.  A level cuts an
    axis after its least part that alone says, of the axis, under which entity a device is.
    """
    devices = mesh.device_array()
    widths = [topology.devices_under(level) for level in range(len(topology.levels))]
    return tuple(_factors(devices, axis, widths) for axis in range(len(mesh.axes)))


def _factors(devices: IntArray, axis: int, widths: list[int]) -> tuple[int, ...]:
    before, found = 1, []
    for width in widths:
        part = _least_part(np.moveaxis(devices // width, axis, 0))
        if part > before:
            found.append(part // before)
            before = part
    return tuple(found) or (1,)


def _least_part(entities: IntArray) -> int:
    """The least divisor k of the first axis such that its k blocks have one entity each.

    Such divisors are closed under gcd, and one of an entity is one of every entity around it, so
    that each divides those of the levels further in.
    """
    size = len(entities)
    for part in range(1, size + 1):
        if size % part == 0:
            blocks = entities.reshape(part, size // part, *entities.shape[1:])
            if (blocks == blocks[:, :1]).all():
                return part
    return size
