"""What an order of hosts sends over each switch's uplink, and from which rates on that matters.

Where the rates of uplinks are not known, this is what can be said: bytes per iteration in each
direction, and the oversubscription from which some uplink is busier than the nodes' own links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.algorithms import rule_of
from p2smt.cost.loads.level_use import Along
from p2smt.cost.loads.rings import node_order
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.loads.trees import group_trees
from p2smt.cost.rank_list import single_time
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, Request
from p2smt.search.allocation.terms import joins_nodes, lines_along

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class UplinkBytes:
    """The traffic of one switch's uplink: bytes per iteration out of it, and into it."""

    level: str
    switch: str
    out_bytes: float
    into_bytes: float


@dataclass(frozen=True, slots=True)
class _Moved:
    """Bytes between devices (``source[i]`` to ``target[i]``), or out of groups' entities."""

    source: IntArray
    target: IntArray
    weight: FloatArray


def uplink_crossings(problem: Problem, ranks: IntArray) -> tuple[UplinkBytes, ...]:
    """What one iteration sends over the uplink of each switch that holds hosts, outermost first.

    ``ranks``: any rank tensor (shape: axis sizes, entries: device ids).  One collective answers
    each request, by the algorithm that it takes there.
    """
    topology, found = problem.topology, []
    each = [list(_traffic(problem, request, ranks)) for request in problem.requests]
    for j in range(topology.node_level):
        out, into = (sum(moved[j][way] for moved in each) for way in (0, 1))
        for entity in _entities(topology, j):
            name = topology.hosts.switches[j][entity] if topology.hosts else ""
            traffic = float(np.asarray(out)[entity]), float(np.asarray(into)[entity])
            found.append(UplinkBytes(topology.names[j], name, *traffic))
    return tuple(found)


def _entities(topology: Topology, level: int) -> list[int]:
    under = topology.devices_under(level) // topology.devices_under(topology.node_level)
    return sorted({slot // under for slot in topology.hosts.slots}) if topology.hosts else []


def _traffic(
    problem: Problem, request: Request, ranks: IntArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Bytes out of and into each entity of every level outside nodes."""
    topology, axes = problem.topology, problem.axis_indices(request)
    lines = lines_along(ranks, axes)
    amount = float(request.payload_bytes * request.times)
    for j in range(topology.node_level):
        under, total = topology.devices_under(j), math.prod(topology.sizes[: j + 1])
        shared = _shared(problem, request, ranks, lines // under, total)
        if shared is not None:
            yield shared * amount, shared * amount
            continue
        moved = _moved(problem, request, ranks, lines)
        source, target = moved.source // under, moved.target // under
        weight = np.where(source != target, moved.weight, 0.0) * amount
        out, into = (np.bincount(ends, weight, total) for ends in (source, target))
        yield out.astype(np.float64), into.astype(np.float64)


def _rule(
    problem: Problem, request: Request, ranks: IntArray
) -> tuple[Along | None, int, Algorithm | None]:
    """What the messages follow, the members of a group, and the algorithm."""
    axes = problem.axis_indices(request)
    members = math.prod(ranks.shape[i] for i in axes)
    direct = DIRECT.get(request.kind)
    if direct is None:
        return None, members, None
    time = single_time(problem.topology, ranks, axes, request.kind, request.payload_bytes)
    names = {algorithm.value: algorithm for algorithm in Algorithm}
    algorithm = names.get(time.algorithm)
    if algorithm is Algorithm.NVLS_TREE:
        return Along.TREE, members, algorithm
    if algorithm is Algorithm.PAT:
        algorithm = Algorithm.HALVING_DOUBLING
    rule = None if algorithm is None else rule_of(algorithm, direct, members)
    return (None if rule is None else rule.along), members, algorithm


def _shared(
    problem: Problem, request: Request, ranks: IntArray, entity: IntArray, total: int
) -> FloatArray | None:
    """Where a group's share depends on its members inside alone: what entities send per byte."""
    along, members, algorithm = _rule(problem, request, ranks)
    if along is not None or request.kind is RequestKind.SEND:
        return None
    direct, found = DIRECT.get(request.kind), np.zeros(total)
    rule = rule_of(algorithm, direct, members) if algorithm and direct else None
    for row in entity:
        held, counts = np.unique(row, return_counts=True)
        if len(held) > 1:
            sent = [
                q * (members - q) / members if rule is None else rule.crossing(q) for q in counts
            ]
            found[held] += sent
    return found


def _moved(problem: Problem, request: Request, ranks: IntArray, lines: IntArray) -> _Moved:
    """The messages of one byte of payload along a ring, a path, trees or a chain of sends."""
    if request.kind is RequestKind.SEND:
        source, target = lines[:, :-1].ravel(), lines[:, 1:].ravel()
        return _Moved(source, target, np.ones(len(source)))
    along, members, _ = _rule(problem, request, ranks)
    topology = problem.topology
    each, joins = topology.devices_under(topology.node_level), joins_nodes(topology)
    chain = node_order(lines, each, by_device=joins)
    if along is Along.TREE:
        trees, flat = group_trees(chain, each), chain.ravel()
        ends = flat[trees.head[trees.child]], flat[trees.head[trees.parent]]
        both = np.concatenate(ends), np.concatenate(ends[::-1])
        return _Moved(*both, np.full(2 * len(ends[0]), _HALF))
    row = chain if joins else lines
    following = np.roll(row, -1, axis=1)
    if along is Along.PATH:
        row, following = row[:, :-1], following[:, :-1]
    passes = 2 if DIRECT[request.kind] is Collective.ALL_REDUCE else 1
    volume = 1.0 if along is Along.PATH else passes * (members - 1) / members
    return _Moved(row.ravel(), following.ravel(), np.full(row.size, volume))


def non_blocking(topology: Topology) -> bool:
    """Whether every switch's uplink carries all that the nodes under it can send, by nominal rates.

    Then no order of hosts keeps an uplink busier than the nodes' own links.
    """
    return all(ratio <= 1 for ratio in _oversubscription(topology))


def _oversubscription(topology: Topology) -> Iterator[float]:
    """What the nodes under each switch can send over what its uplink carries."""
    node = topology.node_level
    own, link = topology.uplink_parts(node), topology.levels[node].link
    for j in range(node):
        under = topology.devices_under(j) // topology.devices_under(node)
        parts, above = topology.uplink_parts(j), topology.levels[j].link
        entities = _entities(topology, j)
        for entity in entities if len(entities) > 1 else []:
            slots = [s for s in topology.hosts.slots if s // under == entity]  # type: ignore[union-attr]
            sent = (
                sum(own[s] if own else 1.0 for s in slots) * link.ports * link.nominal_bytes_per_s
            )
            carried = (parts[entity] if parts else 1.0) * above.ports * above.nominal_bytes_per_s
            yield sent / carried


def matters_from(problem: Problem, ranks: IntArray) -> float | None:
    """The oversubscription from which an uplink is busier than the nodes' own links, in an order.

    Each switch's uplink carries what its nodes can send, divided by that.  None: no request ever
    crosses a switch.
    """
    topology, least = problem.topology, math.inf
    node = topology.node_level
    link = topology.levels[node].link
    for request in problem.requests:
        step = single_time(
            topology, ranks, problem.axis_indices(request), request.kind, request.payload_bytes
        )
        busy_s = step.level_wire_s[node] * request.times
        for j, (out, into) in enumerate(_traffic(problem, request, ranks)):
            under = topology.devices_under(j) // topology.devices_under(node)
            for entity in _entities(topology, j):
                count = sum(s // under == entity for s in topology.hosts.slots)  # type: ignore[union-attr]
                worst = max(out[entity], into[entity])
                if worst > 0:
                    full = count * link.ports * link.nominal_bytes_per_s
                    least = min(least, busy_s * full / worst)
    return None if math.isinf(least) else float(least)
