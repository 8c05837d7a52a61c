"""Orders of hosts that are known beforehand: as listed, by name, by switch; and what they cost.

Rank r lies on the host r // g of the order, on its device r % g (g devices a node): the order of
ranks that launchers and frameworks take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from p2smt.cluster.nodes.hosts import Hosts
from p2smt.cost.rank_list import single_time
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import RankOrder, objective
from p2smt.search.allocation.grids import inner_sizes, nodes_needed

LISTED, ALPHABETICAL = "listed", "alphabetical"
SORTED, EXCHANGED = "sorted by leaf", "sorted, axes exchanged"


def host_order(problem: Problem, hosts: Sequence[str], exchanged: bool = False) -> IntArray:
    """The rank tensor (shape: axis sizes, entries: device ids) of an order of hosts.

    The first of them that the ranks fill are taken.  ``exchanged``: the hosts fill the grid of node
    cells with its axes in the reverse significance.

    Raises:
        InputError: a host is not in the topology, there are too few, or the ranks of a node do not
            form a grid, so that there is nothing to exchange.
    """
    needed, each = nodes_needed(problem), math.prod(inner_sizes(problem.topology))
    if len(hosts) < needed:
        ranks = f"axes of {math.prod(problem.axis_sizes)} ranks"
        rule = f"need {needed} hosts of {each} devices"
        raise InputError(f"{len(hosts)} hosts", f"{ranks} {rule}", "name more hosts")
    slots = host_slots(problem, hosts)[:needed]
    if exchanged:
        outer = row_major_grid(problem)
        if outer is None:
            rule = "the ranks of a node are no block of the axes"
            raise InputError("axes exchanged", rule, "take the order as it is")
        slots = exchange(slots, outer)
    devices = slots[:, None] * each + np.arange(each)
    return np.asarray(devices.reshape(problem.axis_sizes), dtype=np.int64)


def exchange(slots: IntArray, outer: Sequence[int]) -> IntArray:
    """Places in row-major order of a grid, filled with its axes in the reverse significance."""
    return slots.reshape(tuple(reversed(outer))).transpose().ravel()


def host_slots(problem: Problem, hosts: Sequence[str]) -> IntArray:
    """The place in the hull of each host.

    Raises:
        InputError: the topology names no such host.
    """
    known = _hosts(problem)
    place = dict(zip(known.names, known.slots, strict=True))
    for name in hosts:
        if name not in place:
            raise InputError(f"host {name[:80]!r}", f"is not in {problem.topology.name}")
    return np.array([place[name] for name in hosts], dtype=np.int64)


def row_major_grid(problem: Problem) -> tuple[int, ...] | None:
    """The grid of node cells where a node has successive ranks; None: these are no block."""
    each, outer = math.prod(inner_sizes(problem.topology)), []
    for size in reversed(problem.axis_sizes):
        factor = math.gcd(size, each)
        if factor not in (size, each):
            return None
        outer.append(size // factor)
        each //= factor
    return tuple(reversed(outer))


def sorted_hosts(problem: Problem, names: Sequence[str]) -> tuple[str, ...]:
    """These hosts in the order of the switches that they are under."""
    slots = host_slots(problem, names)
    return tuple(names[i] for i in np.argsort(slots, kind="stable"))


def by_name(names: Sequence[str]) -> tuple[str, ...]:
    """The hosts in alphabetical order."""
    return tuple(sorted(names))


def baselines(problem: Problem, listed: Sequence[str]) -> tuple[RankOrder, ...]:
    """The orders that an answer is compared with, costed device by device, under their names.

    The one with exchanged axes is there where it differs from the one without.
    """
    return tuple(order_cost(problem, ranks, name) for name, ranks in named_orders(problem, listed))


def named_orders(problem: Problem, listed: Sequence[str]) -> Iterator[tuple[str, IntArray]]:
    """The rank tensors of the same orders, by name."""
    yield LISTED, host_order(problem, listed)
    yield ALPHABETICAL, host_order(problem, by_name(listed))
    leaves = sorted_hosts(problem, listed)
    yield SORTED, host_order(problem, leaves)
    outer = row_major_grid(problem)
    if outer is not None and sum(size > 1 for size in outer) > 1:
        yield EXCHANGED, host_order(problem, leaves, exchanged=True)


def order_cost(problem: Problem, ranks: IntArray, name: str) -> RankOrder:
    """A rank tensor under a name, with the time of one collective per request."""
    seconds = tuple(
        single_time(
            problem.topology, ranks, problem.axis_indices(one), one.kind, one.payload_bytes
        ).seconds
        for one in problem.requests
    )
    return RankOrder(name, seconds, objective(problem, seconds))


def _hosts(problem: Problem) -> Hosts:
    hosts = problem.topology.hosts
    if hosts is None:
        rule = "names no hosts"
        remedy = "p2smt topology import makes one that does, or write hosts: in its file"
        raise InputError(f"topology {problem.topology.name}", rule, remedy)
    return hosts
