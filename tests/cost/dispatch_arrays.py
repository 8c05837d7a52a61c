"""What a dispatch takes on many placements of its axis at once: a closed form of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.cost import dispatch
from p2smt.cost.dispatch import START_S, reached
from p2smt.cost.loads import footprint
from p2smt.parallelism.placement import FloatArray, IntArray


def device_loads(rows: IntArray, kind: Dispatch) -> FloatArray:
    """What a rank sends over each level, in units of the bytes of its tokens.

    ``rows`` has the entries of the axis in placement matrices, levels last and the outermost first;
    the result has the same shape.
    """
    spanned = np.cumprod(rows, axis=-1)
    return kind.imbalance * reached(spanned, kind) * (spanned - 1) / spanned


def dispatch_s(
    topology: Topology,
    rows: IntArray,
    payload_bytes: npt.ArrayLike,
    kind: Dispatch,
    strides: IntArray | None = None,
) -> FloatArray:
    """Seconds of a dispatch for many placements of its axis at once.

    Args:
        topology: the cluster; the ports of an entity are shared evenly by its devices.
        rows: entries of the axis in the placement matrices, shape (.., levels).
        payload_bytes: the bytes of a rank's tokens, of a shape that goes with (..).
        kind: experts, active ones, groups, and the imbalance.
        strides: of the axis's digit at each level, shaped as ``rows``; None: innermost.  They
            matter between the siblings of a ring or torus alone.
    """
    rows = np.asarray(rows)
    strides = np.ones_like(rows) if strides is None else strides
    loads, spanned = device_loads(rows, kind), np.cumprod(rows, axis=-1)
    worst = np.zeros(rows.shape[:-1])
    for j, level in enumerate(topology.levels):
        link, under = level.link, topology.devices_under(j)
        rate, draw = dispatch._rates(topology, link)
        closed, drawn = spanned[..., j] == rows[..., j], loads[..., j] / draw
        if link.kind is LinkKind.SWITCH:
            seconds = np.maximum(loads[..., j] * under / link.ports / rate, drawn)
        else:
            pairs = _pairs(topology, j, rows[..., j], strides[..., j])
            copies = kind.imbalance * reached(spanned[..., j], kind) / rows[..., j]
            seconds = np.maximum(copies * under * pairs / rate, np.where(closed, drawn, 0.0))
        worst = np.maximum(worst, seconds)
    start = np.where(spanned[..., -1] > 1, START_S * topology.call_factor, 0.0)
    return np.asarray(worst * np.asarray(payload_bytes) + start)


def _pairs(topology: Topology, j: int, counts: IntArray, strides: IntArray) -> FloatArray:
    """The worst link's load between siblings where each sends each other one of its group 1."""
    level = topology.levels[j]
    both = np.stack(np.broadcast_arrays(counts, strides), axis=-1)
    distinct, where = np.unique(both.reshape(-1, 2), axis=0, return_inverse=True)
    found = [_pairs_load(level, ((count, stride),)) for count, stride in distinct.tolist()]
    return np.asarray(found)[where].reshape(both.shape[:-1])


def _pairs_load(level: Level, digits: tuple[tuple[int, int], ...]) -> float:
    """Worst link of a level with one unit from each sibling to each other one of its group."""
    return footprint._pairs_load(level, footprint._span(level.size, digits, "varying"))
