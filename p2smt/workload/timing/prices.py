"""Seconds of one call of a request on a placement, by the topology's library."""

from __future__ import annotations

from p2smt.cluster.topology import Topology
from p2smt.cost.rank_list import single_time
from p2smt.cost.scene import Scene
from p2smt.parallelism.expressed import matrix_of
from p2smt.parallelism.placement import IntArray, Placement, default_ranks
from p2smt.workload.requests import AxisRequest
from p2smt.workload.strategy import AXES, Strategy


def default_placement(topology: Topology, strategy: Strategy) -> Placement | None:
    """The matrix of Megatron's order, over all of ``AXES``; None if no matrix expresses it."""
    matrix = matrix_of(default_ranks(strategy.sizes), topology.sizes)
    return None if matrix is None else Placement(matrix)


def call_seconds(
    topology: Topology, strategy: Strategy, request: AxisRequest, placement: Placement | None
) -> float:
    """Seconds of the single collective, or the send, that answers a request.

    ``placement`` has a row for each of ``AXES``; None: ranks in Megatron's order lie on the devices
    in theirs, whether or not a matrix expresses that.
    """
    axes = [AXES.index(axis) for axis in request.axes]
    if placement is None:
        placement = default_placement(topology, strategy)
    if placement is None:
        ranks: IntArray = default_ranks(strategy.sizes)
        return single_time(topology, ranks, axes, request.kind, request.payload_bytes).seconds
    scene = Scene.of(topology, placement, axes)
    return scene.fixed_time(request.kind, request.payload_bytes).seconds
