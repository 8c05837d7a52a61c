"""What an answer on named hosts says besides where ranks lie and what that costs: their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import Matrix


@dataclass(frozen=True, slots=True)
class Allocation:
    """An answer on the hosts that a job got.

    ``topology`` is the cluster of the hosts that the job got; ``listed`` are those as they were
    given, ``idle`` those of them that have no rank.
    ``inside`` is the parallelism matrix inside each node: rows are the axes, columns the levels
    inside nodes, outermost first.  ``with_programs_s`` is the objective with the best programs
    found on the same ranks, instead of one collective per request (None: none is faster, or none
    was looked for).
    """

    topology: Topology
    listed: tuple[str, ...]
    idle: tuple[str, ...]
    inside: Matrix
    with_programs_s: float | None = None


def rank_hosts(topology: Topology, ranks: Sequence[int]) -> tuple[str, ...] | None:
    """The name of the host of each rank, given its device; None where nodes have no names."""
    hosts = topology.hosts
    if hosts is None:
        return None
    each = topology.devices_under(topology.node_level)
    names = dict(zip(hosts.slots, hosts.names, strict=True))
    return tuple(names[device // each] for device in ranks)
