"""Rank orders beside the best one: what each would cost, and how far it is from the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.nodes.allocation import allocated
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, default_ranks
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import SAME, Solution
from p2smt.result import SearchLimits, Status, known_bound
from p2smt.search.allocation.orders import exchange, named_orders, row_major_grid
from p2smt.search.allocation.solve import solve_on_hosts
from p2smt.search.comparison.figures import OrderFigures, figures
from p2smt.search.comparison.tensors import MEGATRON, MEGATRON_ORDER, launch_devices, of_axis_order
from p2smt.search.joint import ProgressCallback
from p2smt.search.solve import as_named, solve
from p2smt.solvers.solver import Solver

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
        orders: rank tensors by name (:func:`standard_orders`,
            :mod:`p2smt.search.comparison.tensors`).
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
