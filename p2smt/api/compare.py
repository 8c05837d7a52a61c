"""The public function `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from p2smt.errors import InputError
from p2smt.interop.rank_orders import read_order
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits
from p2smt.search import comparison
from p2smt.search.comparison import Comparison, compare_orders, on_hosts, standard_orders
from p2smt.search.joint import ProgressCallback
from p2smt.solvers.ask import Solver

OrderGiven = str | Sequence[object]
"""An order of ranks: a text, as on the command line; a list of ranks or of hosts; a mesh."""


def compare(
    problem: Problem,
    orders: Sequence[str] | Mapping[str, OrderGiven | IntArray] | None = None,
    hosts: Sequence[str] | None = None,
    *,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Rank orders side by side, with their distance to the best one.

    Args:
        problem: cluster, axes and requests.
        orders: texts as the command line takes them (names of standard orders, files, orders of
            axes such as ``tp-cp-ep-dp-pp``); or by name such a text, the launched rank of each rank
            (a list or a tensor over the axes), or a list of hosts.  None: the standard ones.
        hosts: the hosts that the job got, where the topology names hosts; None: all.
        limits: of the search for the best order.
        solver: ``cpsat`` or ``z3``.
        progress: called with (best objective so far or None, proved bound), in seconds.

    Raises:
        InputError: an order that does not fit, or as for ``solve`` and ``solve_on_hosts``.
    """
    listed: tuple[str, ...] | None = None
    if problem.topology.hosts is not None or hosts is not None:
        problem, listed = on_hosts(problem, hosts)
    else:
        PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    known = standard_orders(problem, listed)
    found = known if not orders else named_orders(orders, problem, listed, known)
    return compare_orders(problem, found, listed, limits=limits, solver=solver, progress=progress)


def named_orders(
    orders: Sequence[str] | Mapping[str, OrderGiven | IntArray],
    problem: Problem,
    listed: Sequence[str] | None,
    known: Mapping[str, IntArray],
) -> dict[str, IntArray]:
    """The rank tensors of orders as :func:`compare` takes them, by their names."""
    found: dict[str, IntArray] = {}
    given: list[tuple[str, OrderGiven | IntArray]] = (
        list(orders.items()) if isinstance(orders, Mapping) else [("", text) for text in orders]
    )
    for label, order in given:
        if isinstance(order, str):
            name, ranks = read_order(order, problem, listed, known)
        else:
            name, ranks = label, _of_values(order, problem, listed, f"order {label[:40]!r}")
        name = label or name
        if name in found:
            raise InputError(f"order {name[:60]!r}", "is named twice", "name it NAME=..")
        found[name] = ranks
    return found


def _of_values(
    order: Sequence[object] | IntArray, problem: Problem, listed: Sequence[str] | None, source: str
) -> IntArray:
    if not isinstance(order, np.ndarray) and order and all(isinstance(x, str) for x in order):
        return comparison.of_hosts(problem, [str(name) for name in order], source)
    mesh = np.asarray(order)
    if mesh.dtype.kind not in "iu":
        raise InputError(source, "holds no whole numbers, nor names of hosts")
    return comparison.of_mesh(problem, mesh, comparison.launch_devices(problem, listed), source)
