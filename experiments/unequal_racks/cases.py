"""The cluster, the question and the rank orders of the study, with the times predicted of them.

An order is the host of each rank, one rank a host; ranks are row-major over the axes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from experiments.testbed.model import topology
from experiments.testbed.spec import NetworkSpec
from experiments.testbed.written.results import rounded
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.parallelism.placement import IntArray, ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Solution
from p2smt.search.allocation.cell_grids import (
    ALPHABETICAL,
    EXCHANGED,
    SORTED,
    host_order,
    order_cost,
)
from p2smt.search.allocation.solve_on_hosts import solve_on_hosts

RACKS = (3, 2, 1)
HOSTS = ("n1", "n3", "n5", "n2", "n6", "n4")
"""Rack by rack: names that do not follow the racks."""
STAGES, REPLICAS = ParallelismAxis("pp", 2), ParallelismAxis("dp", 3)
CHOSEN = "chosen"
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Order:
    """A rank order under its name; ``hosts[r]`` is the host of rank r."""

    name: str
    hosts: tuple[str, ...]


def network(bytes_per_s: float) -> NetworkSpec:
    """Racks of 3, 2 and 1 nodes; every link, also that of a rack, has this rate."""
    return NetworkSpec(RACKS, bytes_per_s, bytes_per_s, HOSTS)


def question(spec: NetworkSpec, payload_bytes: int) -> Problem:
    """All-reduces along the axis of 3, sends along that of 2, one rank a node.

    The links are the nominal ones and Gloo's constants those of its description: nothing is
    fitted to a measurement.
    """
    requests = (
        Request(RequestKind.ALL_REDUCE, (REPLICAS.name,), payload_bytes),
        Request(RequestKind.SEND, (STAGES.name,), payload_bytes),
    )
    return Problem(topology(spec, 1), (STAGES, REPLICAS), requests)


def orders(problem: Problem, solution: Solution) -> tuple[Order, ...]:
    """The orders that are measured: alphabetical, sorted by rack in two ways, and the answer."""
    hosts = problem.topology.hosts
    names = () if hosts is None else hosts.names
    best = solution.best
    if best is None:
        raise RuntimeError("there is no answer")
    return (
        _order(problem.topology, ALPHABETICAL, host_order(problem, sorted(names))),
        _order(problem.topology, SORTED, host_order(problem, names)),
        _order(problem.topology, EXCHANGED, host_order(problem, names, exchanged=True)),
        _order(solution.problem.topology, CHOSEN, best.placement.rank_tensor()),
    )


def _order(found: Topology, name: str, ranks: IntArray) -> Order:
    return Order(name, tuple(found.host_of(device) for device in ranks.ravel().tolist()))


def solved(problem: Problem) -> Solution:
    """The answer of the search, programs left out."""
    return solve_on_hosts(problem, programs=False)


def predicted_s(problem: Problem, hosts: Sequence[str]) -> list[float]:
    """Seconds of each request with ranks on these hosts."""
    cost = order_cost(problem, host_order(problem, hosts), "")
    return [rounded(seconds, DIGITS) for seconds in cost.seconds]


def alone_s(problem: Problem, hosts: Sequence[str]) -> list[float]:
    """Seconds of each group's all-reduce while the other group is idle."""
    request = problem.requests[0]
    rows = host_order(problem, hosts)
    given = (0,), request.kind, request.payload_bytes
    times = (single_time(problem.topology, row, *given).seconds for row in rows)
    return [rounded(seconds, DIGITS) for seconds in times]


def every_order(problem: Problem) -> list[tuple[float, int]]:
    """The objective of every order of the hosts, and how many orders have it; the best first."""
    hosts = problem.topology.hosts
    names = () if hosts is None else hosts.names
    found = Counter(
        rounded(order_cost(problem, host_order(problem, each), "").objective_s, DIGITS)
        for each in permutations(names)
    )
    return sorted(found.items())


def groups(problem: Problem) -> tuple[IntArray, IntArray]:
    """The ranks of each all-reduce, and of each line along which a send goes."""
    ranks = np.arange(STAGES.size * REPLICAS.size).reshape(problem.axis_sizes)
    return ranks, ranks.T
