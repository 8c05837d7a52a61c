"""What lies around an answer on named hosts: other bandwidths, and the orders that are near it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import HostsNear, OrderNear, Solution, objective
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
from p2smt.search.sensitivity import changes, perturbed
from p2smt.search.solve import as_named
from p2smt.solvers.ask import Solver
from p2smt.units import plain

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
