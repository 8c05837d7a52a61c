"""A solution as plain data for ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from p2smt.plans.file import plan_data, timed_steps
from p2smt.plans.solution import Alternative, RankOrder, RequestAnswer, Solution, faster_orders


def solution_data(solution: Solution) -> dict[str, Any]:
    """The fields that tools rely on; ``plan`` is the plan file of the best alternative.

    The bounds are null for a rank list, which has none; its plan file has 0 there.
    """
    best = solution.best
    return {
        "status": solution.status.value,
        "interrupted": solution.interrupted,
        "conflict": list(solution.conflict),
        "notes": list(solution.notes),
        "objective": solution.problem.objective,
        "objective_s": None if best is None else best.objective_s,
        "bound_s": solution.bound_s if solution.bounded else None,
        "physical_bound_s": solution.physical_bound_s if solution.bounded else None,
        "plan": None if best is None else plan_data(solution, best),
        "ranking": solution.ranking.value,
        "alternatives": [alternative_data(a) for a in solution.alternatives],
        "default_layout": _rank_order(solution.default),
        "compared_layout": _rank_order(solution.compared),
        "faster_layouts": [order.name for order in faster_orders(solution)],
        "sensitivity": [
            {
                **{key: getattr(p, key) for key in ("level", "factor", "winner_s", "optimum_s")},
                "holds": p.holds,
                "status": p.status.value,
            }
            for p in solution.sensitivity
        ],
        "stats": {**asdict(solution.stats), "counters": dict(solution.stats.counters)},
    }


def alternative_data(alternative: Alternative) -> dict[str, Any]:
    """An alternative without its groups."""
    matrix = alternative.matrix
    return {
        "matrix": matrix and [list(row) for row in matrix],
        "ranks": None if matrix else list(alternative.ranks),
        "objective_s": alternative.objective_s,
        "status": alternative.status.value,
        "peak_bytes": alternative.peak_bytes,
        "programs": [None if r.program is None else str(r.program) for r in alternative.requests],
        "chunks": [r.chunks for r in alternative.requests],
        "checked_on": [r.checked for r in alternative.requests],
        "seconds": [r.seconds for r in alternative.requests],
        "steps": [_steps(r) for r in alternative.requests],
    }


def _steps(answer: RequestAnswer) -> list[dict[str, Any]]:
    """Per step: instruction, time, and the level whose worst link bounds it with its load."""
    keys = ("instruction", "seconds", "bottleneck", "load_bytes")
    return [{key: step[key] for key in keys} for step in timed_steps(answer)]


def _rank_order(order: RankOrder | None) -> dict[str, Any] | None:
    return None if order is None else asdict(order)
