"""Rank orders side by side as plain data, for ``compare --json`` and ``solve --json``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from p2smt.cost.unheeded import topology_notes
from p2smt.plans.solution import Solution
from p2smt.report.orders.unstated import network_lines
from p2smt.result import known_bound

if TYPE_CHECKING:
    from p2smt.search.comparison.compare import ComparedOrder, Comparison
    from p2smt.search.comparison.figures import Decisive, OrderFigures


def comparison_data(found: Comparison) -> dict[str, Any]:
    """The fields that tools rely on: those of the best order, and ``orders``.

    Where bandwidths are not stated there are no times: they are null.
    """
    best, known = found.best, found.times_known
    figures = found.best_figures
    objective_s = None if best.best is None else best.best.objective_s
    bound_s = known_bound(best.bound_s, objective_s) if best.bounded else None
    return {
        "status": best.status.value,
        "interrupted": best.interrupted,
        "notes": [*topology_notes(found.problem.topology), *best.notes, *network_lines(found)],
        "objective": found.problem.objective,
        "objective_s": objective_s if known else None,
        "bound_s": bound_s if known else None,
        "requests": [str(one) for one in found.problem.requests],
        "orders": orders_data(found),
        "best": None if figures is None else _figures_data(figures, known),
        "idle": None if best.allocation is None else list(best.allocation.idle),
        "uplinks_stated": known,
    }


def orders_data(found: Comparison) -> list[dict[str, Any]]:
    """Each order with its distance to the best."""
    return [_order(one, found.times_known) for one in found.orders]


def _order(one: ComparedOrder, known: bool) -> dict[str, Any]:
    return {
        **_figures_data(one.figures, known),
        "gap": one.gap if known else None,
        "bound_gap": one.bound_gap if known else None,
    }


def _figures_data(one: OrderFigures, known: bool) -> dict[str, Any]:
    matrix = one.order.matrix
    return {
        "name": one.order.name,
        "objective_s": one.order.objective_s if known else None,
        "seconds": list(one.order.seconds) if known else None,
        "bottlenecks": [_decisive(each) for each in one.decisive] if known else None,
        "crossings": dict(one.crossings),
        "matters_from": _finite(one.matters_from),
        "matrix": matrix and [list(row) for row in matrix],
        "hosts": None if one.hosts is None else list(one.hosts),
    }


def _decisive(one: Decisive) -> dict[str, Any]:
    return {
        "regime": one.regime,
        "level": one.level,
        "owner": one.owner,
        "load_bytes": one.load_bytes,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


HOST_KEYS = ("hosts", "idle", "inside", "with_programs_s", "orders")


def hosts_data(solution: Solution, found: Comparison | None) -> dict[str, Any]:
    """What an answer on named hosts says besides; nulls for others."""
    allocation = solution.allocation
    if allocation is None or found is None:
        return dict.fromkeys(HOST_KEYS)
    figures = found.best_figures
    hosts = None if figures is None else figures.hosts
    return {
        "hosts": None if hosts is None else list(hosts),
        "idle": list(allocation.idle),
        "inside": [list(row) for row in allocation.inside],
        "with_programs_s": allocation.with_programs_s,
        "orders": orders_data(found),
    }
