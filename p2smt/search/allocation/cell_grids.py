"""Grids of node cells: a parallelism matrix inside each node, the remaining factors outside.

The matrix inside splits axis i into f_i ranks of a node; outside are o_i = a_i / f_i.  Each cell of
the grid o_1 x .. x o_k gets a host.  The coordinate of a rank along axis i is outer_i * f_i +
inner_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from p2smt.cluster.hosts import Hosts
from p2smt.cluster.topology import Topology
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, IntArray, Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.ranges import range_of_order
from p2smt.plans.solution import RankOrder, objective


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A matrix inside the nodes (rows: axes, columns: levels inside) and the grid outside."""

    inside: Matrix
    outer: tuple[int, ...]

    @property
    def factors(self) -> tuple[int, ...]:
        """How many ranks of a node each axis has: f_i."""
        return tuple(math.prod(row) for row in self.inside)

    @property
    def cells(self) -> int:
        """Number of nodes that it takes."""
        return math.prod(self.outer)

    def ranks(self, slots: IntArray) -> IntArray:
        """The rank tensor with the nodes at these places of the hull, one per cell (row-major)."""
        factors, k = self.factors, len(self.outer)
        local = _local(self.inside)
        shape = [n for pair in zip(self.outer, [1] * k, strict=True) for n in pair]
        inner = [n for pair in zip([1] * k, factors, strict=True) for n in pair]
        devices = slots.reshape(shape) * local.size + local.reshape(inner)
        sizes = [o * f for o, f in zip(self.outer, factors, strict=True)]
        return np.asarray(devices.reshape(sizes), dtype=np.int64)


def _local(inside: Matrix) -> IntArray:
    """The device in its node of each inner rank, row-major over the axes."""
    if not inside[0]:
        return np.zeros(1, dtype=np.int64)
    return Placement(inside).rank_tensor().ravel()


def inner_sizes(topology: Topology) -> tuple[int, ...]:
    """Sizes of the levels inside a node."""
    return topology.sizes[topology.node_level + 1 :]


def nodes_needed(problem: Problem) -> int:
    """Number of nodes that the ranks fill.

    Raises:
        InputError: they do not fill whole nodes.
    """
    ranks, each = math.prod(problem.axis_sizes), math.prod(inner_sizes(problem.topology))
    if ranks % each:
        rule = f"their product must be a multiple of the {each} devices of a node"
        raise InputError(f"axes of {ranks} ranks", rule, "change an axis")
    return ranks // each


def grids(problem: Problem) -> tuple[CellGrid, ...]:
    """Every grid that obeys the rules, in lexicographic order of the matrices inside.

    Raises:
        InputError: a rule speaks of a level outside the nodes.
    """
    node = problem.topology.node_level
    for rule in problem.rules:
        at_node = isinstance(rule, AxisRule) and rule.level == node
        if rule.level <= node and not at_node:
            given = f"rule on level {problem.topology.names[rule.level]}"
            text = "on named hosts rules speak of nodes and what is inside them"
            raise InputError(given, text, "leave it out")
    found = [_grid(problem, rows) for rows in _matrices(problem)]
    return tuple(one for one in sorted(found, key=lambda g: g.inside) if _obeys(one, problem))


def _grid(problem: Problem, inside: Matrix) -> CellGrid:
    outer = (size // math.prod(row) for size, row in zip(problem.axis_sizes, inside, strict=True))
    return CellGrid(inside, tuple(outer))


def _matrices(problem: Problem) -> Iterator[Matrix]:
    """All matrices inside: column products are the levels' sizes, row products divide the axes."""
    columns = [list(_columns(size, problem.axis_sizes)) for size in inner_sizes(problem.topology)]
    for chosen in product(*columns):
        rows = tuple(tuple(c[i] for c in chosen) for i in range(len(problem.axis_sizes)))
        whole = zip(problem.axis_sizes, rows, strict=True)
        if all(size % math.prod(row) == 0 for size, row in whole):
            yield rows


def _columns(size: int, axes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Ways to write a level's size as a product of divisors of the axes."""
    if not axes:
        if size == 1:
            yield ()
        return
    for factor in range(1, math.gcd(size, axes[0]) + 1):
        if size % factor == 0 and axes[0] % factor == 0:
            for rest in _columns(size // factor, axes[1:]):
                yield (factor, *rest)


def _obeys(grid: CellGrid, problem: Problem) -> bool:
    """Whether the rules hold; an entry outside the nodes is not 1 where the axis goes on there."""
    node = problem.topology.node_level
    for rule in problem.rules:
        row, split = grid.inside[rule.axis], grid.outer[rule.axis] > 1
        depth = rule.level - node
        if isinstance(rule, AxisRule):
            held = not split and all(entry == 1 for entry in row[:depth])
            if held is not rule.inside:
                return False
        elif row[depth - 1] != rule.value:
            return False
    return True


# Orders of hosts that are known beforehand: as listed, by name, by switch; and what they cost.
# Rank r lies on the host r // g of the order, on its device r % g (g devices a node): the order of
# ranks that launchers and frameworks take.


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
    steps = [
        single_time(problem.topology, ranks, problem.axis_indices(one), one.kind, one.payload_bytes)
        for one in problem.requests
    ]
    seconds = tuple(step.seconds for step in steps)
    within = range_of_order(problem, ranks, steps)
    return RankOrder(name, seconds, objective(problem, seconds), within=within)


def _hosts(problem: Problem) -> Hosts:
    hosts = problem.topology.hosts
    if hosts is None:
        rule = "names no hosts"
        remedy = "p2smt topology import makes one that does, or write hosts: in its file"
        raise InputError(f"topology {problem.topology.name}", rule, remedy)
    return hosts
