"""The hosts of a job in the best order for a plan whose degrees and matrix in the nodes are fixed.

The sum of calls, which a search over hosts makes least, is not the iteration: it proposes orders,
those that everyone knows stand beside, and the iteration of each decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from p2smt.cluster.allocation import allocated, as_known, check_stated
from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.interop.places import PlacedPlan, RankPlace, placed
from p2smt.interop.trainers.trainer import expert_devices
from p2smt.parallelism.placement import FixedEntry, IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.problem import allocation_problem, plan_problem
from p2smt.plans.sides import plan_sides
from p2smt.plans.solution import objective, rank_hosts
from p2smt.plans.training.file_model import ExpertRanksBlock, TrainingBlock
from p2smt.result import SearchLimits
from p2smt.search.allocation.cell_grids import (
    CellGrid,
    by_name,
    grids,
    host_slots,
    sorted_hosts,
)
from p2smt.search.allocation.local_search import filled
from p2smt.search.allocation.solve_on_hosts import solve_on_hosts
from p2smt.training.iteration import call_prices, predict_with
from p2smt.training.plan_block import efficiency_in, run_of

PLANS_OWN = "the plan has only the hosts that it was made on; give -t a topology that has it"
"""What helps where a plan's own cluster lacks a host of the job."""
SEARCH_S = 1.5
"""Seconds of the search for an order, which a job waits for."""
MAX_PRICED = 8
"""Most orders whose iterations are compared."""


class TooFewHostsError(InputError):
    """A job has fewer hosts than a plan fills."""


@dataclass(frozen=True, slots=True)
class OrderedHosts:
    """A plan with its ranks on the hosts of a job.

    plan: ranks as in the plan, on these hosts.  idle: hosts without a rank, as they were listed.
    seconds: an iteration of a training (``trained``), of other plans the time of one collective a
    request; and ``listed_s`` the same on the first hosts as listed.  Both None: nothing says what
    an order costs, and it is the one that was given.  compared: how many orders have a price.
    """

    plan: PlacedPlan
    idle: tuple[str, ...]
    seconds: float | None = None
    listed_s: float | None = None
    trained: bool = False
    compared: int = 1


def order_hosts(
    plan: AnyPlan,
    hosts: Sequence[str],
    topology: Topology | None = None,
    *,
    per_host: int | None = None,
    source: str = "plan",
) -> OrderedHosts:
    """The order of these hosts in which the plan's degrees and matrices take the least time.

    Args:
        plan: by :func:`~p2smt.api.files.read_plan`.
        hosts: those of the job, as listed; there may be more than the ranks fill.
        topology: of a cluster that has them by name; None: the plan's, or the cluster in the plan.
        per_host: as of :func:`~p2smt.interop.places.placed`.
        source: what messages call the plan.

    Raises:
        TooFewHostsError: the ranks fill more.
        InputError: a host is not in the topology or is named twice, nodes are not alike, or nobody
            stated the bandwidth of some uplinks.
    """
    given = placed(plan, source, per_host=per_host)
    cluster = topology or cluster_of(plan, source)
    needed = len({place.host for place in given.places})
    if len(hosts) < needed:
        rule = f"{source} fills {needed} hosts of {given.per_host} devices"
        raise TooFewHostsError(f"{len(hosts)} hosts", rule, "take more, or plan for these")
    if cluster.hosts is None:
        if given.problem.topology.hosts is not None:
            rule = "names no hosts, and those of the plan have names"
            raise InputError(f"topology {cluster.name}", rule, "drop -t, or name a cluster's file")
        found = placed(plan, source, hosts[:needed], per_host)
        return OrderedHosts(found, tuple(hosts[needed:]))
    check_stated(cluster)
    names = as_known(hosts, cluster.hosts.names)
    there = allocated(cluster, names, PLANS_OWN if topology is None else "")
    return _searched(given, names, there)


def cluster_of(plan: AnyPlan, source: str) -> Topology:
    """The cluster that a plan was found for, with the hosts that it leaves idle.

    Raises:
        InputError: the plan is not well formed; names ``source``.
    """
    sides = plan_sides(plan, source)
    problem = plan_problem(sides[0].plan, source)[0]
    return allocation_problem(plan, problem, source).topology


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What of a plan is fixed: the matrix in its nodes, and which cell each of its nodes is."""

    plan: PlacedPlan
    grid: CellGrid
    slots: IntArray

    def moved(self, devices: IntArray, slots: IntArray) -> IntArray:
        """The same devices with the nodes of the plan's cells at other places."""
        each = self.plan.problem.topology.devices_under(self.plan.problem.topology.node_level)
        place = dict(zip(self.slots.tolist(), slots.tolist(), strict=True))
        nodes = np.array([place[node] for node in (devices // each).ravel().tolist()])
        return np.asarray(nodes.reshape(devices.shape) * each + devices % each, dtype=np.int64)


def _searched(plan: PlacedPlan, hosts: Sequence[str], there: Topology) -> OrderedHosts:
    mine = plan.problem.topology
    inside = [top.sizes[top.node_level + 1 :] for top in (mine, there)]
    if inside[0] != inside[1]:
        rule = f"{plan.source} has nodes of {list(inside[0])} devices by level"
        raise InputError(f"nodes of {list(inside[1])} in {there.name}", rule, "plan for these")
    fixed = _fixed(plan)
    price = _price(fixed, there)
    problem = _problem(fixed, there)
    listed = host_slots(problem, hosts)
    orders = [*_proposed(problem, fixed.grid, hosts), listed[: fixed.grid.cells]]
    orders = list({tuple(slots.tolist()): slots for slots in orders}.values())
    seconds = [price(slots) for slots in orders]
    best = int(np.argmin(seconds))
    found = _placed_on(fixed, there, orders[best])
    idle = tuple(name for name in hosts if name not in set(found.hosts))
    trained = _training(plan) is not None
    listed_s = price(listed[: fixed.grid.cells])
    return OrderedHosts(found, idle, seconds[best], listed_s, trained, len(orders))


def _fixed(plan: PlacedPlan) -> _Fixed:
    """The grid of the plan's nodes.

    Raises:
        InputError: its ranks form none.
    """
    ranks, each = plan.where.rank_tensor(), plan.problem.topology
    size = each.devices_under(each.node_level)
    for grid in grids(replace(plan.problem, rules=())):
        corners = np.ix_(*(np.arange(o) * f for o, f in zip(grid.outer, grid.factors, strict=True)))
        slots = (ranks[corners] // size).ravel()
        if np.array_equal(grid.ranks(slots), ranks):
            return _Fixed(plan, grid, slots)
    rule = "has nodes whose ranks are no grid, so their hosts cannot be exchanged"
    raise InputError(plan.source, rule, "solve on the hosts of the job")


def _problem(fixed: _Fixed, there: Topology) -> Problem:
    """The plan's requests on the hosts of the job, the matrix in the nodes fixed."""
    plan, first = fixed.plan.problem, there.node_level + 1
    rules = tuple(
        FixedEntry(axis, first + level, entry)
        for axis, row in enumerate(fixed.grid.inside)
        for level, entry in enumerate(row)
    )
    return Problem(there, plan.axes, plan.requests, plan.objective, rules=rules)


def _proposed(problem: Problem, grid: CellGrid, hosts: Sequence[str]) -> Iterator[IntArray]:
    """Orders worth a price: that of the search, and the known ones."""
    requests = tuple(one for one in problem.requests if not isinstance(one.kind, Dispatch))
    if requests:
        limits, asked = SearchLimits(time_limit_s=SEARCH_S), replace(problem, requests=requests)
        found = solve_on_hosts(asked, hosts, limits=limits, programs=False)
        if found.best is not None:
            names = rank_hosts(found.problem.topology, found.best.ranks) or ()
            cells = grid.ranks(np.arange(grid.cells)).ravel() // (len(names) // grid.cells)
            first = np.unique(cells, return_index=True)[1]  # a rank of each cell
            yield host_slots(problem, [names[rank] for rank in first])
    known = [host_slots(problem, some) for some in (sorted_hosts(problem, hosts), by_name(hosts))]
    yield from islice(filled(grid, known), MAX_PRICED)


def _price(fixed: _Fixed, there: Topology) -> Callable[[IntArray], float]:
    """What the plan takes with its nodes at given places: an iteration, or its requests."""
    given, block = fixed.plan, _training(fixed.plan)
    if block is not None:
        return _iteration(fixed, there, block)

    def seconds(slots: IntArray) -> float:
        ranks, problem = fixed.moved(given.where.rank_tensor(), slots), given.problem
        found = (
            _call_s(there, ranks, problem.axis_indices(one), one.kind, one.payload_bytes)
            for one in problem.requests
        )
        return objective(problem, tuple(found))

    return seconds


def _training(plan: PlacedPlan) -> TrainingBlock | None:
    return plan.plan.training if isinstance(plan.plan, PlanModel) else None


def _iteration(fixed: _Fixed, there: Topology, block: TrainingBlock) -> Callable[[IntArray], float]:
    """Seconds of an iteration of the training, one collective for each request."""
    given = fixed.plan
    run, constants = run_of(block, given.source), efficiency_in(block, given.source)
    device = given.problem.topology.known_device
    attention = given.where.rank_tensor()  # its axes are those of the strategy, in their order
    experts = expert_devices(block, run.strategy)
    experts = attention if experts is None else experts

    def seconds(slots: IntArray) -> float:
        where = [_listed(fixed.moved(one, slots)) for one in (attention, experts)]
        call_s = call_prices(run, there, constants, *where)
        return predict_with(run, device, constants, call_s).time.iteration_s

    return seconds


def _listed(devices: IntArray) -> RankList:
    return RankList(tuple(devices.ravel().tolist()), tuple(devices.shape))


def _call_s(
    there: Topology, ranks: IntArray, axes: Sequence[int], kind: AnyKind, payload_bytes: int
) -> float:
    """Seconds of one collective, or of a send; nothing is sent along axes of one device."""
    if all(ranks.shape[axis] == 1 for axis in axes):
        return 0.0
    return single_time(there, ranks, axes, kind, payload_bytes).seconds


def _placed_on(fixed: _Fixed, there: Topology, slots: IntArray) -> PlacedPlan:
    """The plan with its nodes at these places of the hosts of the job."""
    given = fixed.plan
    devices = fixed.moved(given.where.rank_tensor(), slots)
    each, names = given.per_host, rank_hosts(there, devices.ravel().tolist()) or ()
    places = tuple(
        RankPlace(rank, name, device % each, device)
        for rank, (name, device) in enumerate(zip(names, devices.ravel().tolist(), strict=True))
    )
    problem = replace(given.problem, topology=there, rules=())
    hosts = tuple(name for name in there.hosts.names if name in set(names)) if there.hosts else ()
    return replace(
        _experts_moved(fixed, slots),
        problem=problem,
        where=_listed(devices),
        hosts=hosts,
        places=places,
        experts=None,
    )


def _experts_moved(fixed: _Fixed, slots: IntArray) -> PlacedPlan:
    """The plan with the experts of a mixture on the same nodes as attention."""
    given, block = fixed.plan, _training(fixed.plan)
    if block is None or not isinstance(given.plan, PlanModel):
        return given
    devices = expert_devices(block, run_of(block, given.source).strategy)
    if devices is None:
        return given
    ranks = ExpertRanksBlock(expert_ranks=fixed.moved(devices, slots).ravel().tolist())
    training = block.model_copy(update={"placement": ranks})
    return replace(given, plan=given.plan.model_copy(update={"training": training}))
