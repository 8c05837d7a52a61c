"""A solution as plain data for ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from p2smt.cluster.nodes.blocking import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.cost.by_choice import NamedWay
from p2smt.cost.regime import regime
from p2smt.cost.unheeded import topology_notes
from p2smt.plans.file import plan_data
from p2smt.plans.solution import (
    Alternative,
    Gain,
    RankOrder,
    RequestAnswer,
    Solution,
    faster_orders,
    timed_steps,
)
from p2smt.plans.untimed import without_times
from p2smt.report.explained.explanation_data import explanation_data
from p2smt.report.orders.order_data import hosts_data
from p2smt.report.orders.unstated import network_lines
from p2smt.result import known_bound

_CHANGED = ("what", "level", "factor", "winner_s", "optimum_s")

if TYPE_CHECKING:
    from p2smt.search.comparison.compare import Comparison


def solution_data(solution: Solution, beside: Comparison | None = None) -> dict[str, Any]:
    """The fields that tools rely on; ``plan`` is the plan file of the best alternative.

    ``beside``: the orders that an answer on named hosts is compared with.  The bounds are null
    where none is known, as for a rank list; the plan file has 0 there.
    """
    best, topology = solution.best, solution.problem.topology
    objective_s = None if best is None else best.objective_s
    bounded, links_s = solution.bounded, solution.physical_bound_s
    if beside is not None and not beside.times_known:
        objective_s, bounded = None, False
    return {
        "status": solution.status.value,
        "interrupted": solution.interrupted,
        "conflict": list(solution.conflict),
        "notes": [
            *topology_notes(topology),
            *solution.notes,
            *(network_lines(beside) if beside else ()),
        ],
        "objective": solution.problem.objective,
        "objective_s": objective_s,
        "bound_s": known_bound(solution.bound_s, objective_s) if bounded else None,
        "physical_bound_s": known_bound(links_s, objective_s) if bounded else None,
        "plan": None if best is None else plan_data(solution, best),
        "ranking": solution.ranking.value,
        "alternatives": [alternative_data(a, topology) for a in solution.alternatives],
        **_gain_data(solution.gain),
        **_near_data(solution),
        "default_layout": _rank_order(solution.default, topology),
        "compared_layout": _rank_order(solution.compared, topology),
        "faster_layouts": [order.name for order in faster_orders(solution)],
        "sensitivity": [
            {
                **{key: getattr(p, key) for key in _CHANGED},
                "holds": p.holds,
                "status": p.status.value,
            }
            for p in solution.sensitivity
        ],
        "explanation": explanation_data(solution.explanation),
        **hosts_data(solution, beside),
        "stats": {**asdict(solution.stats), "counters": dict(solution.stats.counters)},
    }


def _gain_data(gain: Gain | None) -> dict[str, Any]:
    """What is gained over the default layout, whether who measures would find it, and by what."""
    if gain is None:
        keys = ("gain", "gain_measurable", "accuracy", "accuracy_basis", "accuracy_unknown")
        empty: dict[str, Any] = dict.fromkeys((*keys, "program_gain", "gain_by_choice"))
        return {**empty, "named_algorithms": []}
    known, programs = gain.accuracy, gain.programs
    named = () if programs is None else programs.named
    return {
        "gain": gain.over_default,
        "gain_measurable": gain.measurable,
        "accuracy": known.error,
        "accuracy_basis": None if known.basis is None else known.basis.value,
        "accuracy_unknown": known.unknown or None,
        "program_gain": None if programs is None else programs.over_singles,
        "gain_by_choice": None if programs is None else programs.by_choice,
        "named_algorithms": [{"request": str(one), **named_data(way)} for one, way in named],
    }


def named_data(way: NamedWay) -> dict[str, Any]:
    """A way that a library has and does not choose; seconds are of one execution."""
    return {
        "algorithm": way.cheapest.algorithm,
        "protocol": way.cheapest.protocol,
        "seconds": way.cheapest.seconds,
        "settings": way.settings or None,
        "chosen_algorithm": way.chosen.algorithm,
        "chosen_protocol": way.chosen.protocol,
        "chosen_s": way.chosen.seconds,
    }


def _near_data(solution: Solution) -> dict[str, Any]:
    """How many placements are near the optimum; each one, where they were asked for."""
    near, best = solution.near, solution.best
    if near is None:
        keys = ("near_optimal", "near_optimal_status", "near_optimal_within")
        return dict.fromkeys((*keys, "near_optimal_placements"))
    least_s = best.objective_s if best is not None else 0.0
    topology = solution.problem.topology
    listed = [_near_placement(one, topology, least_s) for one in near.alternatives]
    return {
        "near_optimal": len(near.alternatives),
        "near_optimal_status": near.status.value,
        "near_optimal_within": near.within,
        "near_optimal_placements": listed if near.listed else None,
    }


def _near_placement(alternative: Alternative, topology: Topology, least_s: float) -> dict[str, Any]:
    """A placement with the programs that make it so fast, and how much slower than the best."""
    keys = ("matrix", "objective_s", "status", "programs", "chunks", "seconds", "regime")
    data = alternative_data(alternative, topology)
    gap = alternative.objective_s / least_s - 1 if least_s > 0 else 0.0
    return {**{key: data[key] for key in keys}, "gap": max(0.0, gap)}


def alternative_data(alternative: Alternative, topology: Topology) -> dict[str, Any]:
    """An alternative on its topology, without its groups."""
    matrix = alternative.matrix
    data = {
        "matrix": matrix and [list(row) for row in matrix],
        "ranks": None if matrix else list(alternative.ranks),
        "objective_s": alternative.objective_s,
        "status": alternative.status.value,
        "peak_bytes": alternative.peak_bytes,
        "programs": [None if r.program is None else str(r.program) for r in alternative.requests],
        "chunks": [r.chunks for r in alternative.requests],
        "checked_on": [r.checked for r in alternative.requests],
        "seconds": [r.seconds for r in alternative.requests],
        "regime": [regime(topology, r.steps, r.chunks) for r in alternative.requests],
        "steps": [_steps(r) for r in alternative.requests],
    }
    return _as_told(data, topology)


def _as_told(data: dict[str, Any], topology: Topology) -> dict[str, Any]:
    """Without times where the bandwidth of some level is not stated."""
    found: dict[str, Any] = without_times(data) if unstated_levels(topology) else data
    return found


def _steps(answer: RequestAnswer) -> list[dict[str, Any]]:
    """Per step: instruction, time, and the level whose worst link bounds it with its load."""
    keys = ("instruction", "seconds", "bottleneck", "load_bytes")
    return [{key: step[key] for key in keys} for step in timed_steps(answer)]


def _rank_order(order: RankOrder | None, topology: Topology) -> dict[str, Any] | None:
    return None if order is None else _as_told(asdict(order), topology)
