"""Times of collectives (or of a send) on ranks in any order, device by device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.library.registry import library_of
from p2smt.cost.link_bounds import lines_bound_s
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.step_time import StepCostModel, StepTime
from p2smt.parallelism.placement import IntArray


def single_time(
    topology: Topology,
    ranks: IntArray,
    axes: Sequence[int],
    kind: RequestKind,
    payload_bytes: int,
) -> StepTime:
    """Time of the one collective that answers a request along these axes (by index).

    ``ranks`` is any rank tensor: shape = axis sizes, entries = device ids.  The members of a
    group are in the order of their ranks, which the topology's library follows strictly or node
    by node (:func:`p2smt.cost.loads.footprint_explicit.explicit_footprint`).
    """
    return _single_model(topology, ranks, axes, kind).time(payload_bytes)


def single_bound_s(
    topology: Topology,
    ranks: IntArray,
    axes: Sequence[int],
    kind: RequestKind,
    payload_bytes: int,
) -> float:
    """Seconds that the links allow such a send or all-to-all at best."""
    return lines_bound_s(topology, _lines(ranks, axes), kind, payload_bytes)


def groups_model(
    topology: Topology, groups: Sequence[IntArray], operation: Operation
) -> StepCostModel:
    """Everything about a step on these groups but its payload: an array for each size of groups.

    Members are device ids in communicator order.
    """
    joins_nodes = not topology.library or library_of(topology.library).joins_nodes
    return step_model(topology, explicit_footprint(topology, groups, joins_nodes), operation)


def _single_model(
    topology: Topology, ranks: IntArray, axes: Sequence[int], kind: RequestKind
) -> StepCostModel:
    lines = _lines(ranks, axes)
    if kind is RequestKind.SEND:
        footprint = explicit_send(topology, lines[:, :-1].ravel(), lines[:, 1:].ravel())
        return step_model(topology, footprint, RequestKind.SEND)
    operation: Operation = DIRECT.get(kind) or RequestKind.ALL_TO_ALL
    return groups_model(topology, [lines], operation)


def _lines(ranks: IntArray, axes: Sequence[int]) -> IntArray:
    """The groups along these axes, a row each, in the order of their ranks."""
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    return ranks.transpose([*rest, *axes]).reshape(-1, members)
