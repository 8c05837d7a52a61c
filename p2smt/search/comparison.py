"""Rank orders beside the best one: what each would cost, and how far it is from the optimum."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.allocation import allocated, as_known, unstated_levels
from p2smt.cluster.hosts import Hosts
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.demand import plain_kind
from p2smt.cost.bounds import single_time
from p2smt.cost.loads.rings import crossings
from p2smt.cost.regime import Decisive, regime
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError, did_you_mean
from p2smt.parallelism.placement import FloatArray, IntArray, Placement, default_ranks
from p2smt.parallelism.rank_list import matrix_of
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.ranges import range_of_order
from p2smt.plans.solution import RankOrder, Solution, objective, rank_hosts
from p2smt.result import SAME, SearchLimits, Status, known_bound
from p2smt.search.allocation.cell_grids import (
    exchange,
    host_order,
    host_slots,
    inner_sizes,
    named_orders,
    row_major_grid,
)
from p2smt.search.allocation.solve_on_hosts import solve_on_hosts
from p2smt.search.joint import ProgressCallback
from p2smt.search.solve import as_named, solve
from p2smt.solvers.ask import Solver

DEFAULT, EXCHANGED = "default", "axes exchanged"
BEST = "best"


@dataclass(frozen=True, slots=True)
class ComparedOrder:
    """An order with its distances: ``gap`` to the best one found, ``bound_gap`` to what is proved
    (its time over that, less one); None where nothing is known."""

    figures: OrderFigures
    gap: float | None
    bound_gap: float | None

    @property
    def name(self) -> str:
        """What the order is called."""
        return self.figures.order.name


@dataclass(frozen=True, slots=True)
class Comparison:
    """Orders side by side, in the order given; ``best`` is the answer that they are compared with,
    ``best_figures`` its own (None: none was found).

    All are costed with one collective per request.  On a regular cluster without named hosts the
    answer is the best matrix: orders that no matrix expresses may be faster, and its bound does not
    hold for them.
    """

    problem: Problem
    orders: tuple[ComparedOrder, ...]
    best: Solution
    best_figures: OrderFigures | None

    @property
    def status(self) -> Status:
        """Whether the best one is proved to be the best."""
        return self.best.status

    @property
    def times_known(self) -> bool:
        """Whether every bandwidth is stated, so that times mean something."""
        hosts = self.problem.topology.hosts
        return hosts is None or not hosts.assumed


def on_hosts(problem: Problem, hosts: Sequence[str] | None) -> tuple[Problem, tuple[str, ...]]:
    """The problem on the hosts that are listed (None: all that the topology names)."""
    known = problem.topology.hosts
    listed = tuple(hosts) if hosts is not None else known.names if known else ()
    return replace(problem, topology=allocated(problem.topology, listed)), listed


def standard_orders(problem: Problem, listed: Sequence[str] | None) -> dict[str, IntArray]:
    """The orders that everyone has: those of hosts, or the default one of a cluster without names.

    With the axes of Megatron-LM its own order is among them.
    """
    found = dict(_orders_of_nodes(problem) if listed is None else named_orders(problem, listed))
    if set(problem.axis_names) <= set(MEGATRON) and len(problem.axes) > 1:
        start = launch_devices(problem, listed)
        found[MEGATRON_ORDER] = of_axis_order(problem, MEGATRON_ORDER, start)
    return found


def _orders_of_nodes(problem: Problem) -> Iterator[tuple[str, IntArray]]:
    """The default order, and the one whose nodes fill the grid of nodes the other way."""
    ranks = default_ranks(problem.axis_sizes)
    yield DEFAULT, ranks
    outer = row_major_grid(problem) if problem.topology.node_level >= 0 else None
    if outer is not None and sum(size > 1 for size in outer) > 1:
        each = problem.topology.devices_under(problem.topology.node_level)
        nodes = exchange(np.arange(ranks.size // each), outer)
        yield EXCHANGED, (nodes[:, None] * each + np.arange(each)).reshape(ranks.shape)


def compare_orders(
    problem: Problem,
    orders: Mapping[str, IntArray],
    listed: Sequence[str] | None = None,
    *,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Rank tensors by name beside the best order.

    Args:
        problem: on the hosts that are listed (:func:`on_hosts`), where hosts have names.
        orders: rank tensors by name (:func:`standard_orders`).
        listed: the hosts in the order listed; None: nodes have no names.
        limits: of the search for the best order.
        solver: ``cpsat`` or ``z3``.
        progress: as for ``solve``.

    Raises:
        InputError: there is no order, or as for ``solve`` and ``solve_on_hosts``.
    """
    if not orders:
        raise InputError("compare", "needs an order", "name one, or none for the standard ones")
    if listed is None:
        single = replace(problem, max_length=1, pipeline=1)
        best = solve(single, top=1, limits=limits, solver=solver, progress=progress)
    else:
        best = solve_on_hosts(
            problem, listed, limits=limits, solver=solver, programs=False, progress=progress
        )
    return beside(problem, orders, best)


def beside(problem: Problem, orders: Mapping[str, IntArray], best: Solution) -> Comparison:
    """Rank tensors by name beside an answer that is at hand."""
    named = as_named(problem)
    every = [figures(named, ranks, name) for name, ranks in orders.items()]
    return Comparison(
        named, tuple(_compared(one, best) for one in every), best, _best_figures(best)
    )


def _best_figures(best: Solution) -> OrderFigures | None:
    answer = best.best
    if answer is None:
        return None
    return figures(best.problem, answer.placement.rank_tensor(), BEST)


def _compared(one: OrderFigures, best: Solution) -> ComparedOrder:
    """Its gaps; a bound of matrices is none of what no matrix expresses."""
    own_s, answer = one.order.objective_s, best.best
    gap = _over(own_s, None if answer is None else answer.objective_s)
    bound_s = known_bound(best.bound_s, own_s) if best.bounded else None
    if best.allocation is None and one.order.matrix is None:
        bound_s = None
    return ComparedOrder(one, gap, _over(own_s, bound_s))


def _over(value_s: float, least_s: float | None) -> float | None:
    """A time over another, less one; rounding alone is nothing."""
    if least_s is None or least_s <= 0:
        return None
    over = value_s / least_s - 1
    return 0.0 if abs(over) < SAME else over


# What a rank order costs with one collective per request, and what decides it.


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """A rank order with its times, what decides each request, and what it asks of uplinks.

    ``crossings``: by level outside the nodes (that of the nodes where there is none), how many
    connections of all requests join ranks under different entities of it.  ``matters_from``:
    the least oversubscription of uplinks that nobody stated the bandwidth of, from which they slow
    the order down; infinite if they never do, None if all are stated.  ``hosts`` are those of the
    ranks.  ``wire_s``: of each request, seconds that an execution takes of the fullest link of each
    level.
    """

    order: RankOrder
    decisive: tuple[Decisive, ...]
    crossings: tuple[tuple[str, int], ...]
    matters_from: float | None
    hosts: tuple[str, ...] | None
    wire_s: tuple[tuple[float, ...], ...]


def figures(problem: Problem, ranks: IntArray, name: str) -> OrderFigures:
    """The figures of a rank tensor under a name."""
    topology = problem.topology
    steps = [
        single_time(topology, ranks, problem.axis_indices(one), one.kind, one.payload_bytes)
        for one in problem.requests
    ]
    crossed = [
        crossings(topology, ranks, problem.axis_indices(one), plain_kind(one.kind))
        for one in problem.requests
    ]
    seconds = tuple(step.seconds for step in steps)
    even = None if topology.uneven else matrix_of(ranks, topology.sizes)
    return OrderFigures(
        RankOrder(
            name,
            seconds,
            objective(problem, seconds),
            even,
            within=range_of_order(problem, ranks, steps),
        ),
        tuple(
            _decisive(topology, *of) for of in zip(steps, crossed, problem.requests, strict=True)
        ),
        tuple(_counted(topology, crossed)),
        _matters_from(topology, steps),
        rank_hosts(topology, ranks.ravel().tolist()),
        tuple(step.level_wire_s for step in steps),
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


# Rank tensors (shape: axis sizes, entries: device ids) of orders that people write.
# Ranks are *launched* host by host in the order of the hosts, and on each in the order of its
# devices: launched rank v is device v % g of host v // g.  On a cluster whose nodes have no names
# it is device v.  A mesh says for each coordinate which launched rank has it.


MEGATRON = ("tp", "cp", "ep", "dp", "pp")
"""The dimensions of Megatron-LM; one that is no axis has size 1."""
MEGATRON_ORDER = "-".join(MEGATRON)
_ORDER = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z][A-Za-z0-9_]*)*")


def launch_devices(problem: Problem, hosts: Sequence[str] | None) -> IntArray:
    """The device of each launched rank; ``hosts``: in the order in which they are listed."""
    if hosts is not None:
        return host_order(problem, hosts).ravel()
    return np.arange(problem.topology.devices, dtype=np.int64)


def of_mesh(problem: Problem, mesh: IntArray, start: IntArray, source: str) -> IntArray:
    """Of a tensor of launched ranks, its dimensions being the axes; or of a flat list of them.

    Raises:
        InputError: another shape, or not each launched rank once.
    """
    sizes = problem.axis_sizes
    if mesh.ndim > 1 and mesh.shape != sizes:
        rule = f"the axes have sizes {list(sizes)}"
        raise InputError(f"{source} of shape {list(mesh.shape)}", rule, "order its dimensions so")
    if mesh.size != start.size or not np.array_equal(np.sort(mesh.ravel()), np.arange(start.size)):
        rule = f"must hold each launched rank 0..{start.size - 1} once"
        given = f"{source} with {mesh.size} entries"
        raise InputError(given, rule, _without(mesh, start.size))
    return np.asarray(start[mesh.reshape(sizes)])


def _without(mesh: IntArray, ranks: int) -> str:
    """What to do about entries that are not each rank once."""
    missing = np.setdiff1d(np.arange(ranks), mesh)
    if len(missing):
        return f"{missing[0]} is missing: ranks count from 0, host by host as they are launched"
    return "leave out what it holds beside them"


def of_matrix(problem: Problem, rows: Sequence[Sequence[int]], source: str) -> IntArray:
    """Of a parallelism matrix; it needs a regular cluster.

    Raises:
        InputError: the cluster is not regular, or sizes do not fit.
    """
    if problem.topology.uneven:
        rule = "a matrix needs a cluster whose switches hold equal numbers of hosts"
        raise InputError(source, rule, "give a rank list or a list of hosts")
    placement = Placement(tuple(map(tuple, rows)))
    placement.check(problem.topology.sizes, problem.axis_sizes)
    return placement.rank_tensor()


def is_axis_order(problem: Problem, text: str) -> bool:
    """Whether a text reads like an order of axes: words with dashes, one of them an axis."""
    names = {*problem.axis_names, *MEGATRON}
    words = text.split("-")
    return bool(_ORDER.fullmatch(text)) and not names.isdisjoint(words) and len(words) > 1


def of_axis_order(problem: Problem, text: str, start: IntArray) -> IntArray:
    """Of an order such as ``tp-cp-ep-dp-pp``: the first axis varies fastest over launched ranks.

    Raises:
        InputError: an axis is missing or named twice, or a word is none.
    """
    words = text.split("-")
    names, given = problem.axis_names, f"order {text[:80]!r}"
    if unknown := [word for word in words if word not in (*names, *MEGATRON)]:
        rule = f"{unknown[0][:40]!r} is no axis"
        known = f"the axes are {', '.join(names)}"
        remedy = did_you_mean(unknown[0], names)
        raise InputError(given, rule, f"{known}; {remedy}" if remedy else known)
    if len(set(words)) != len(words):
        raise InputError(given, "names an axis twice", "name each once")
    if missing := [name for name in names if name not in words]:
        raise InputError(given, f"lacks the axis {missing[0]}", "name each axis once")
    slowest_first = [names.index(word) for word in reversed(words) if word in names]
    shape = [problem.axis_sizes[i] for i in slowest_first]
    return start.reshape(shape).transpose(np.argsort(slowest_first))


def of_hosts(problem: Problem, names: Sequence[str], source: str) -> IntArray:
    """Of hosts in order, each with a node's ranks; or of the host of each rank.

    Raises:
        InputError: hosts that the topology lacks, too few, or with other numbers of ranks.
    """
    if problem.topology.hosts is None:
        rule = "its hosts cannot be found: the topology names none"
        raise InputError(source, rule, "give a rank list, or a topology that names hosts")
    names = as_known(names, problem.topology.hosts.names)
    count = Counter(names)
    if max(count.values()) == 1:
        return host_order(problem, names)
    ranks, each = math.prod(problem.axis_sizes), math.prod(inner_sizes(problem.topology))
    if len(names) != ranks or set(count.values()) != {each}:
        rule = f"must name each host once, or for each of {ranks} ranks, {each} times each host"
        remedy = "list the hosts, or a host for each rank as SLURM_HOSTFILE has"
        raise InputError(f"{source} with {len(names)} entries", rule, remedy)
    seen: Counter[str] = Counter()
    local = []
    for name in names:
        local.append(seen[name])
        seen[name] += 1
    devices = host_slots(problem, names) * each + np.array(local)
    return np.asarray(devices.reshape(problem.axis_sizes), dtype=np.int64)


def of_places(problem: Problem, places: Sequence[tuple[str, int]], source: str) -> IntArray:
    """Of the host and the device there of each rank.

    Raises:
        InputError: hosts that the topology lacks, or not each device of a host once.
    """
    if problem.topology.hosts is None:
        rule = "its hosts cannot be found: the topology names none"
        raise InputError(source, rule, "give a rank list, or a topology that names hosts")
    each = math.prod(inner_sizes(problem.topology))
    local = np.array([device for _, device in places], dtype=np.int64)
    if local.max() >= each:
        rule = f"has local rank {local.max()}, and a node {each} devices"
        raise InputError(source, rule, "count the devices of each host from 0")
    hosts = as_known([host for host, _ in places], problem.topology.hosts.names)
    devices = host_slots(problem, hosts) * each + local
    if len(devices) != math.prod(problem.axis_sizes) or len(np.unique(devices)) != len(devices):
        rule = f"must have {math.prod(problem.axis_sizes)} ranks, each on a device of its own"
        remedy = "it reads like what p2smt export --to csv writes"
        raise InputError(f"{source} with {len(devices)} ranks", rule, remedy)
    return devices.reshape(problem.axis_sizes)
