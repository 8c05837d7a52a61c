"""What a rank order costs with one collective per request, and what decides it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.nodes.blocking import unstated_levels
from p2smt.cluster.nodes.hosts import Hosts
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.loads.crossings import crossings
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.rank_list import single_time
from p2smt.cost.regime import regime
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.expressed import matrix_of
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.allocation import rank_hosts
from p2smt.plans.solution import RankOrder, objective


@dataclass(frozen=True, slots=True)
class Decisive:
    """What decides the time of a request: the largest part of it (``regime``), and the link that
    bounds it: its level, the switch or host whose uplink it is where these have names and
    connections tell it (those of rings, sends and all-to-alls), and its load in one direction."""

    regime: str | None
    level: str | None
    owner: str | None
    load_bytes: float


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """A rank order with its times, what decides each request, and what it asks of uplinks.

    ``crossings``: by level outside the nodes (that of the nodes where there is none), how many
    connections of all requests join ranks under different entities of it.  ``matters_from``:
    the least oversubscription of uplinks that nobody stated the bandwidth of, from which they slow
    the order down; infinite if they never do, None if all are stated.  ``hosts`` are those of the
    ranks.
    """

    order: RankOrder
    decisive: tuple[Decisive, ...]
    crossings: tuple[tuple[str, int], ...]
    matters_from: float | None
    hosts: tuple[str, ...] | None


def figures(problem: Problem, ranks: IntArray, name: str) -> OrderFigures:
    """The figures of a rank tensor under a name."""
    topology = problem.topology
    steps = [
        single_time(topology, ranks, problem.axis_indices(one), one.kind, one.payload_bytes)
        for one in problem.requests
    ]
    crossed = [
        crossings(topology, ranks, problem.axis_indices(one), one.kind) for one in problem.requests
    ]
    seconds = tuple(step.seconds for step in steps)
    even = None if topology.uneven else matrix_of(ranks, topology.sizes)
    return OrderFigures(
        RankOrder(name, seconds, objective(problem, seconds), even),
        tuple(
            _decisive(topology, *of) for of in zip(steps, crossed, problem.requests, strict=True)
        ),
        tuple(_counted(topology, crossed)),
        _matters_from(topology, steps),
        rank_hosts(topology, ranks.ravel().tolist()),
    )


def _decisive(
    topology: Topology, step: StepTime, crossed: Sequence[FloatArray], request: Request
) -> Decisive:
    j = step.level
    if j is None:
        return Decisive(regime(topology, [step]), None, None, 0.0)
    owner, load_bytes = None, step.load_bytes
    counted = step.algorithm == Algorithm.RING.value or not request.kind.has_programs
    if topology.hosts is not None and j <= topology.node_level and counted:
        owner, part = _busiest(topology, topology.hosts, crossed[j], j)
        load_bytes *= part
    return Decisive(regime(topology, [step]), topology.names[j], owner, load_bytes)


def _busiest(topology: Topology, hosts: Hosts, counts: FloatArray, j: int) -> tuple[str, float]:
    """The entity whose uplink has most connections for its bandwidth, and the part of the level's
    bandwidth that it has."""
    parts = topology.uplink_parts(j) or (1.0,) * counts.shape[1]
    worst = int((counts.max(axis=0) / np.array(parts)).argmax())
    name = hosts.at(worst) if j == topology.node_level else hosts.switches[j][worst]
    return name, parts[worst]


def _counted(topology: Topology, crossed: Sequence[Sequence[FloatArray]]) -> list[tuple[str, int]]:
    """The connections over the uplinks of each level outside the nodes, or of the nodes."""
    node = topology.node_level
    levels = range(node) if node > 0 else range(node + 1)
    return [(topology.names[j], round(sum(one[j][0].sum() for one in crossed))) for j in levels]


def _matters_from(topology: Topology, steps: Sequence[StepTime]) -> float | None:
    """The oversubscription at which the uplinks of an assumed level take as long as the rest."""
    assumed = unstated_levels(topology)
    if not assumed:
        return None
    found = math.inf
    for step in steps:
        wire = dict(zip(topology.names, step.level_wire_s, strict=True))
        rest_s = max((wire[name] for name in wire if name not in assumed), default=0.0)
        for name in assumed:
            if wire[name] > 0:
                found = min(found, max(1.0, rest_s / wire[name]))
    return found
