"""Time of one collective (or of a send) on ranks in any order, device by device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.library.registry import library_of
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import IntArray


def single_time(
    topology: Topology,
    ranks: IntArray,
    axes: Sequence[int],
    kind: RequestKind,
    payload_bytes: int,
    joins_nodes: bool | None = None,
) -> StepTime:
    """Time of the one collective that answers a request along these axes (by index).

    ``ranks`` is any rank tensor: shape = axis sizes, entries = device ids.  The members of a
    group are in the order of their ranks; ``joins_nodes``: see
    :func:`p2smt.cost.loads.footprint_explicit.explicit_footprint`.  None: as the topology's library
    does; without a library nodes are joined.
    """
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    lines = ranks.transpose([*rest, *axes]).reshape(-1, members)
    if kind is RequestKind.SEND:
        footprint = explicit_send(topology, lines[:, :-1].ravel(), lines[:, 1:].ravel())
        return step_model(topology, footprint, RequestKind.SEND).time(payload_bytes)
    operation: Operation = DIRECT.get(kind) or RequestKind.ALL_TO_ALL
    if joins_nodes is None:
        joins_nodes = not topology.library or library_of(topology.library).joins_nodes
    footprint = explicit_footprint(topology, lines, joins_nodes)
    return step_model(topology, footprint, operation).time(payload_bytes)
