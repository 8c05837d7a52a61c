"""The public function `solve_on_hosts`, and what it does where nobody stated a bandwidth.

Uplinks of unknown bandwidth are taken as non-blocking, so that every order of the hosts takes the
same time in bandwidth.  Then the matrix inside the nodes is the one of least time, and of its
orders the one that loads these uplinks least: that which still is best when they do block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from p2smt.cluster.allocation import allocated, check_stated
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import plain_kind
from p2smt.errors import InputError
from p2smt.parallelism.placement import FixedEntry, IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import HostsNear, OrderNear, Solution, objective, rank_alternative
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid, grids
from p2smt.search.allocation.grid_question import asked, switch_tree
from p2smt.search.allocation.host_search import (
    FEW_ORDERS,
    MOST_CELLS,
    every_order,
    fastest_on_hosts,
    number_of_orders,
)
from p2smt.search.allocation.local_search import order_seconds
from p2smt.search.allocation.solve_grid import ticks_of
from p2smt.search.allocation.terms import term
from p2smt.search.joint import ProgressCallback
from p2smt.search.sensitivity import changes, perturbed
from p2smt.search.solve import as_named
from p2smt.solvers.ask import Solver
from p2smt.units import plain

_SLOW = 2.0**-10
"""Part of a non-blocking uplink's bandwidth with which uplinks decide every time."""


def solve_on_hosts(
    problem: Problem,
    hosts: Sequence[str] | None = None,
    *,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    programs: bool = True,
    sensitivity: bool = False,
    within: float | None = None,
    progress: ProgressCallback | None = None,
) -> Solution:
    """The matrix inside the nodes and the order of hosts outside of least time.

    Args:
        problem: axes and requests on a topology that names its hosts.
        hosts: those that the job got, in the order in which they are listed; None: all.  There may
            be more than the ranks fill: which of them stay idle is part of the answer.
        limits: wall-clock limit, seed and workers; a proved optimum depends on none of them.
            Without a limit a search ends after a minute (two of them where bandwidths are
            assumed); programs get a second at least.
        solver: ``cpsat`` or ``z3``.
        programs: also look for programs that are faster than one collective on the same ranks;
            none are sought where a bandwidth is assumed.
        sensitivity: solve again with each level's bandwidth 20 % off, and with the cost of calls
            50 % off if the topology names a library; each takes as long as the limits say.
        within: also list every order that takes at most so much longer than the best (0.05: five
            per cent): ``near`` of the allocation.
        progress: called with (best objective so far or None, proved bound), in seconds.

    The objective is that of one collective per request, device by device; bound and status speak
    of every matrix inside and every order.  Where bandwidths are assumed, ``optimal`` says of both
    that they are proved: the least time on uplinks that do not block, and with that matrix inside
    the nodes the least load of uplinks.

    Raises:
        InputError: the topology names no hosts or lacks one, there are too few of them, the
            ranks do not fill whole nodes, or a request is a dispatch; there are too many orders to
            list, or a bandwidth that times depend on is assumed.
        EncodingBug: an answer of the solver failed the independent check.
    """
    for request in problem.requests:
        plain_kind(request.kind, "is not placed on named hosts, whose order is searched")
    limits = limits or SearchLimits()
    known = problem.topology.hosts
    if sensitivity or within is not None:
        listed = known.names if hosts is None and known else tuple(hosts or ())
        given = replace(problem, topology=allocated(problem.topology, listed))
        check_stated(given.topology)
        if within is not None:
            check_listed(given, within)
    found = _solved(problem, hosts, limits, solver, programs, progress)
    if within is not None:
        found = with_near(found, within, limits)
    return with_sensitivity(found, problem, limits, solver) if sensitivity else found


def _solved(
    problem: Problem,
    hosts: Sequence[str] | None,
    limits: SearchLimits,
    solver: Solver | str,
    programs: bool,
    progress: ProgressCallback | None,
) -> Solution:
    """The answer alone."""
    known, watch = problem.topology.hosts, StopWatch.start(limits)
    stated = known is None or not known.assumed
    first = fastest_on_hosts(
        problem, hosts, limits, solver, programs=programs and stated, progress=progress
    )
    if known is None or stated or first.allocation is None or first.interrupted:
        return first
    slow = replace(problem, topology=_slowed(problem.topology, known.assumed))
    slow = replace(slow, rules=(*problem.rules, *_fixed(first, problem)))
    second = fastest_on_hosts(slow, hosts, watch.left(), solver)
    return _on_stated(problem, first, second)


def _slowed(topology: Topology, levels: Sequence[str]) -> Topology:
    for name in levels:
        topology = topology.with_bandwidth_factor(topology.names.index(name), _SLOW)
    return topology


def _fixed(found: Solution, problem: Problem) -> list[FixedEntry]:
    """Rules that fix the matrix inside the nodes."""
    inside = () if found.allocation is None else found.allocation.inside
    first = problem.topology.node_level + 1
    return [
        FixedEntry(i, first + j, entry)
        for i, row in enumerate(inside)
        for j, entry in enumerate(row)
    ]


def _on_stated(problem: Problem, first: Solution, second: Solution) -> Solution:
    """The order of the second at the costs of the first."""
    order, placed, known = second.best, second.allocation, first.allocation
    hosts = second.problem.topology.hosts
    if order is None or hosts is None or placed is None or known is None:
        return first
    named = as_named(problem)
    used = replace(named, topology=allocated(named.topology, hosts.names))
    answer = rank_alternative(used, RankList(order.ranks, used.axis_sizes))
    no_slower = answer.objective_s <= first.alternatives[0].objective_s * (1 + SAME)
    proved = no_slower and {first.status, second.status} == {Status.OPTIMAL}
    return replace(
        first,
        problem=used,
        alternatives=(answer,),
        status=Status.OPTIMAL if proved else Status.FEASIBLE,
        interrupted=second.interrupted,
        allocation=replace(placed, topology=known.topology),
    )


# What lies around an answer: other bandwidths, and the orders that are near it.


_RESOLUTION = 2.0**32
"""Ticks of the best order."""


def with_sensitivity(
    found: Solution, problem: Problem, limits: SearchLimits, solver: Solver | str = Solver.CPSAT
) -> Solution:
    """The answer with what becomes of it where a bandwidth, or the cost of calls, is off.

    ``problem``: on the hosts that ``found`` was asked of; each change is solved for them again.
    """
    best, allocation = found.best, found.allocation
    if best is None or allocation is None or found.interrupted:
        return found
    watch = StopWatch.start(limits)

    def again(changed: Problem) -> Solution:
        return fastest_on_hosts(changed, allocation.listed, watch.left(), solver)

    named = as_named(problem)
    try:
        cases = perturbed(named, found.problem, best, again)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    cut = len(cases) < len(changes(named.topology))
    return replace(found, sensitivity=cases, interrupted=cut)


def check_listed(problem: Problem, within: float) -> None:
    """Raise InputError where there are too many orders to say which are near the best.

    ``problem``: on the hosts of the job.
    """
    every = _number(problem)
    if every is None or every > FEW_ORDERS:
        many = f"more than {FEW_ORDERS:,}" if every is None else f"{every:,}"
        rule = f"lists orders of hosts where at most {FEW_ORDERS:,} are possible, not {many}"
        given = f"--within {plain(100 * within, 6)}%"
        raise InputError(given, rule, "name fewer hosts, or drop it")


def _number(problem: Problem) -> int | None:
    """How many orders there are, over all matrices inside; None: they are not counted."""
    tree, every = switch_tree(problem.topology), grids(problem)
    if any(grid.cells > MOST_CELLS for grid in every):
        return None
    return sum(number_of_orders(tree, grid.cells) for grid in every)


def with_near(found: Solution, within: float, limits: SearchLimits) -> Solution:
    """The answer with every order that takes at most ``1 + within`` of its time.

    All orders are looked at: those whose loads alone take longer are out, the others are costed
    device by device.  Hosts under one switch change nothing among themselves and count once; orders
    of the same times of all requests, such as rotations of a ring, stand together.
    """
    allocation, best = found.allocation, found.best
    if allocation is None or best is None or found.interrupted:
        return found
    problem, watch = replace(found.problem, topology=allocation.topology), StopWatch.start(limits)
    kept: dict[object, OrderNear] = {}
    looked, status = 0, Status.COMPLETE
    try:
        for grid, ticks, slots in _ticked(problem, best.objective_s):
            if watch.expired():
                status = Status.TRUNCATED
                break
            looked += 1
            if ticks <= _RESOLUTION * (1 + within):
                _keep(kept, problem, grid, slots, best.objective_s * (1 + within) * (1 + SAME))
    except KeyboardInterrupt:
        status, found = Status.TRUNCATED, replace(found, interrupted=True)
    orders = sorted(kept.values(), key=lambda one: one.objective_s)
    near = HostsNear(within, status, tuple(orders), looked)
    return replace(found, allocation=replace(allocation, near=near))


def _ticked(problem: Problem, best_s: float) -> Iterator[tuple[CellGrid, int, IntArray]]:
    """Every order of every grid, with the least that it takes in ticks of the best."""
    tree, tick_s = switch_tree(problem.topology), best_s / _RESOLUTION or 1.0
    pool_of = tree.pool_of()
    for grid in grids(problem):
        every = every_order(tree, grid.cells)
        slots = next(every_order(tree, grid.cells))
        terms = [term(problem, grid, one, slots) for one in problem.requests]
        question = asked(problem, grid, terms, tree, tick_s).problem
        for slots in every:
            pools = [pool_of[slot] for slot in slots.tolist()]
            rows = tuple(tuple(int(p == at) for p in range(len(tree.pools))) for at in pools)
            yield grid, ticks_of(question, rows), slots


def _keep(
    kept: dict[object, OrderNear], problem: Problem, grid: CellGrid, slots: IntArray, most_s: float
) -> None:
    """Cost an order, and keep it where it is near: once for all with the same times."""
    seconds = tuple(order_seconds(problem, grid.ranks(slots)))
    if (whole_s := objective(problem, seconds)) > most_s:
        return
    key = grid.inside, tuple(float(f"{one:.9g}") for one in seconds)
    if key in kept:
        kept[key] = replace(kept[key], alike=kept[key].alike + 1)
        return
    each = problem.topology.devices_under(problem.topology.node_level)
    hosts = tuple(problem.topology.host_of(slot * each) for slot in slots.tolist())
    kept[key] = OrderNear(whole_s, seconds, grid.inside, hosts)
