"""`plan --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from p2smt.api.planning import Planned, TrainerOptions
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.basis import basis_names
from p2smt.report.workload.estimate_data import (
    degrees_data,
    efficiency_data,
    figures_data,
    model_data,
    strategy_data,
)
from p2smt.result import Status, known_bound
from p2smt.workload.estimated import RunEstimate
from p2smt.workload.search.answer import NearStrategies, Shortfall
from p2smt.workload.strategy import AXES
from p2smt.workload.strategy_text import key_of, strategy_text
from p2smt.workload.training_plan.plan import TrainingPlan

_NEAR = (
    "near_optimal",
    "near_optimal_distinct",
    "near_optimal_within",
    "near_optimal_status",
)
"""Of the near-optimal strategies, null where they were not looked for."""


def planned_data(found: Planned) -> dict[str, Any]:
    """The fields that tools rely on."""
    answer, plan = found.answer, found.plan
    question, best = answer.question, answer.best
    objective_s = None if best is None else best.iteration_s
    return {
        "status": answer.status.value,
        "basis": basis_names(answer.bases) if answer.status is Status.OPTIMAL else [],
        "interrupted": found.interrupted,
        "objective_s": objective_s,
        "bound_s": known_bound(answer.bound_s, objective_s),
        "proof": answer.proof(),
        "strategies": answer.counts.strategies,
        "placements": answer.counts.placements,
        "counts": asdict(answer.counts),
        "space": [{"name": key_of(name), "values": values} for name, values in answer.space],
        "model": model_data(question.model),
        "topology": question.topology.name,
        "devices": question.topology.devices,
        "global_batch": question.batch.sequences,
        "sequence": question.batch.tokens,
        **efficiency_data(question.topology, question.efficiency, question.launcher),
        "prices": question.prices.value,
        "free_bytes": question.free_bytes,
        "axes": list(AXES),
        "best": None if plan is None else _best_data(plan),
        "top": [
            {**_strategy_data(one), "alike": [strategy_text(same) for same in place.alike]}
            for one, place in zip(found.top, answer.top, strict=True)
        ],
        "ranking": answer.ranking.value,
        **_near_data(answer.near),
        "outside": list(answer.outside),
        "shortfall": None if answer.shortfall is None else _shortfall_data(answer.shortfall),
        "reason": answer.reason or None,
        "options": [_options_data(one) for one in found.options],
        "notes": [] if plan is None else list(plan.notes),
        "stats": {"wall_s": answer.stats.wall_s, "counters": dict(answer.stats.counters)},
    }


def _strategy_data(found: RunEstimate) -> dict[str, Any]:
    placement = found.placement
    return {
        **strategy_data(found.run.strategy),
        "matrix": placement and [list(row) for row in placement.matrix],
        **figures_data(found),
    }


def _best_data(plan: TrainingPlan) -> dict[str, Any]:
    answers = () if plan.solution is None or plan.solution.best is None else plan.answers
    return {
        **_strategy_data(plan.estimate),
        "collectives_s": plan.collectives_s,
        "programs": [_program_data(one) for one in answers],
    }


def _program_data(answer: RequestAnswer) -> dict[str, Any]:
    return {
        "kind": answer.request.kind.value,
        "axes": list(answer.request.axes),
        "program": None if answer.program is None else str(answer.program),
        "seconds": answer.seconds,
        "single_collective_s": answer.single_s,
        "status": answer.status.value,
    }


def _options_data(options: TrainerOptions) -> dict[str, Any]:
    return {
        "trainer": options.name,
        "text": options.text or None,
        "notes": list(options.notes),
        "lacks": list(options.lacks),
    }


def _near_data(near: NearStrategies | None) -> dict[str, Any]:
    if near is None:
        none = dict.fromkeys(_NEAR)
        return {**none, "near_optimal_strategies": [], "common": {}, "varies": {}, "nearest": None}
    nearest = near.nearest
    return {
        "near_optimal": near.count,
        "near_optimal_distinct": near.distinct,
        "near_optimal_within": near.within,
        "near_optimal_status": near.status.value,
        "near_optimal_strategies": [
            {"strategy": strategy_text(one.strategy), "iteration_s": one.iteration_s}
            for one in near.members
        ],
        "common": {key_of(name): value for name, value in near.common},
        "varies": {key_of(name): list(values) for name, values in near.ranges},
        "nearest": nearest
        and {
            **strategy_data(nearest.planned.strategy),
            "iteration_s": nearest.planned.iteration_s,
            "run": nearest.run.name,
            "run_degrees": degrees_data(nearest.run.strategy),
            "distance": nearest.distance,
        },
    }


def _shortfall_data(short: Shortfall) -> dict[str, Any]:
    return {
        **strategy_data(short.strategy),
        "bytes_needed": short.bytes_needed,
        "bytes_given": short.bytes_given,
        "missing_bytes": short.missing_bytes,
        "help": list(short.help),
    }
