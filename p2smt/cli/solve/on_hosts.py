"""`p2smt solve` on the hosts of an allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.parallelism.request import Problem
    from p2smt.result import SearchLimits
    from p2smt.solvers.questions import Solver

_INSTEAD = {
    "--compare": "`p2smt compare` puts your orders side by side",
    "--top": "the answer is one order; drop it",
    "--within": "orders of equal time are not listed; drop it",
    "--pipeline": "programs on named hosts run in one chunk; drop it",
    "--explain": "the orders beside the answer show what it gains; drop it",
    **dict.fromkeys(
        ("--processes", "--engine", "--scheduler", "--journal", "--budget"),
        "orders of hosts are searched in one piece; drop it",
    ),
    "--sensitivity": "change the bandwidth in the file and solve again",
}


def refuse(options: Mapping[str, object]) -> None:
    """Refuse what has no meaning on named hosts.

    Raises:
        InputError: an option is given; names it and what to do instead.
    """
    from p2smt.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(name, "does not apply to a topology that names hosts", _INSTEAD[name])


def answer(
    problem: Problem,
    hosts: Sequence[str],
    limits: SearchLimits,
    solver: Solver,
    output: str | None,
    *,
    as_json: bool,
) -> int:
    """Solve on these hosts, and show the answer beside the orders that everyone has."""
    from p2smt.cli.solve.show import finish, live
    from p2smt.search.allocation.solve import solve_on_hosts
    from p2smt.search.comparison import beside, on_hosts, standard_orders

    with live() as progress:
        found = solve_on_hosts(problem, hosts, limits=limits, solver=solver, progress=progress)
    placed, listed = on_hosts(problem, hosts)
    orders = beside(placed, standard_orders(placed, listed), found)
    return finish(found, output, as_json=as_json, beside=orders)
