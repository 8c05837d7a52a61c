"""Load of messages between the siblings of one ring, torus or full-mesh level.

Messages go by the shortest path, dimension by dimension; half-way ties take the positive
direction.  A ring is a torus of one dimension.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Level, LinkKind
from p2smt.parallelism.placement import IntArray

FloatArray = npt.NDArray[np.float64]


def worst_link(level: Level, source: IntArray, target: IntArray, weight: FloatArray) -> float:
    """The largest load on one link in one direction.

    ``source`` and ``target`` are sibling indices plus ``size`` times the parent entity, so
    that several parents can be routed at once; ``weight`` is the load of each message.
    """
    if not len(source):
        return 0.0
    if level.link.kind is LinkKind.FULL_MESH:
        _, link = np.unique(source * level.size + target % level.size, return_inverse=True)
        return float(np.bincount(link, weights=weight).max())
    dims = level.link.torus or (level.size,)
    return max(_dimension_load(dims, d, source, target, weight) for d in range(len(dims)))


def _coordinate(index: IntArray, dims: tuple[int, ...], d: int) -> tuple[IntArray, int]:
    stride = int(np.prod(dims[d + 1 :], dtype=np.int64))
    return index // stride % dims[d], stride


def _dimension_load(
    dims: tuple[int, ...], d: int, source: IntArray, target: IntArray, weight: FloatArray
) -> float:
    """Largest load on the links along dimension d: earlier dimensions are already corrected."""
    at, stride = _coordinate(source, dims, d)
    to, _ = _coordinate(target, dims, d)
    ahead = (to - at) % dims[d]
    forward = 2 * ahead <= dims[d]
    hops = np.where(forward, ahead, dims[d] - ahead)
    # Nodes on the way: coordinates before d from the target, after d from the source.
    line = target // (stride * dims[d]) * (stride * dims[d]) + source % stride
    loads = np.zeros(2 * (int(max(source.max(), target.max())) + int(np.prod(dims)) + 1))
    for hop in range(int(hops.max(initial=0))):
        moving = hops > hop
        step = np.where(forward, hop, -hop)
        node = line + (at + step) % dims[d] * stride
        np.add.at(loads, (2 * node + forward)[moving], weight[moving])
    return float(loads.max())
