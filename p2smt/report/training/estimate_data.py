"""`estimate --json`, and what of it `plan --json` says of each strategy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from p2smt.api.efficiencies import efficiency_notes, is_default
from p2smt.api.planning import Planned, TrainerOptions
from p2smt.cluster.topology import Topology
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.check import basis_names
from p2smt.report.training.words import time_parts
from p2smt.result import Status, known_bound
from p2smt.training.efficiency import Efficiency
from p2smt.training.plan import TrainingPlan
from p2smt.training.prediction import MemoryParts, Prediction, RunEstimate
from p2smt.training.search.answer import NearStrategies, Shortfall
from p2smt.training.strategy import AXES, Strategy, key_of, strategy_text
from p2smt.training.transformer import Transformer


def estimate_data(found: RunEstimate) -> dict[str, Any]:
    """The fields that tools rely on."""
    batch = found.run.batch
    return {
        "model": model_data(found.run.model),
        "topology": found.topology.name,
        "devices": found.topology.devices,
        "global_batch": batch.sequences,
        "sequence": batch.tokens,
        **efficiency_data(found.topology, found.efficiency),
        **strategy_data(found.run.strategy),
        "axes": list(AXES),
        "matrix": found.placement and [list(row) for row in found.placement.matrix],
        **figures_data(found),
    }


def efficiency_data(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> dict[str, Any]:
    """An efficiency, whether nobody asked for another, and what is odd about it."""
    return {
        "efficiency": asdict(efficiency),
        "efficiency_default": is_default(topology, efficiency, launcher),
        "efficiency_notes": list(efficiency_notes(topology, efficiency, launcher)),
    }


def model_data(model: Transformer) -> dict[str, Any]:
    """A model's sizes and its number of parameters."""
    return {**asdict(model), "parameters": model.parameters}


def strategy_data(strategy: Strategy) -> dict[str, Any]:
    """A strategy as its text, and its degrees by name."""
    return {"strategy": strategy_text(strategy), "degrees": degrees_data(strategy)}


def degrees_data(strategy: Strategy) -> dict[str, Any]:
    """The fields of a strategy, under the keys of its text."""
    return {
        "tp": strategy.tp,
        "pp": strategy.pp,
        "dp": strategy.dp,
        "cp": strategy.cp,
        "vpp": strategy.vpp,
        "mbs": strategy.micro_batch,
        "sp": strategy.sequence_parallel,
        "zero": strategy.zero,
        "recompute": strategy.recompute.value,
        "flash": strategy.flash,
        "dtype": strategy.dtype,
        "split": list(strategy.split) or None,
    }


def figures_data(found: RunEstimate) -> dict[str, Any]:
    """Time and memory with their parts, and rates."""
    return {
        "iteration_s": found.iteration_s,
        **parts_data(found.prediction),
        "memory_bytes": found.prediction.memory.total,
        "memory": memory_data(found.prediction.memory),
        "capacity_bytes": found.capacity_bytes,
        "fits": found.fits,
        "tokens_per_s": found.tokens_per_s,
        "tflops_per_device": found.prediction.device_flops_per_s / 1e12,
        "mfu": found.prediction.utilization,
        "requests": requests_data(found.prediction),
    }


def parts_data(prediction: Prediction) -> dict[str, Any]:
    """Seconds of each part, which sum to the iteration; and those hidden, by axis."""
    parts = time_parts(prediction)
    hidden = {part.name: part.hidden_s for part in parts if part.hidden_s > 0}
    return {"parts": {part.name: part.seconds for part in parts}, "hidden": hidden}


def memory_data(memory: MemoryParts) -> dict[str, int]:
    """Bytes by what they hold, on the stage that needs most."""
    return {
        "parameters": memory.parameters,
        "gradients": memory.gradients,
        "optimizer": memory.optimizer,
        "activations": memory.activations,
        "stage": memory.stage,
    }


def requests_data(prediction: Prediction) -> list[dict[str, Any]]:
    """What a device asks of each axis in an iteration."""
    return [
        {
            "name": one.request.name,
            "kind": one.request.kind.value,
            "axes": list(one.request.axes),
            "bytes": one.request.payload_bytes,
            "times": one.request.calls,
            "cover": one.request.cover.value,
            "call_s": one.call_s,
            "visible_s": one.visible_s,
            "hidden_s": one.hidden_s,
        }
        for one in prediction.requests
    ]


# `plan --json`.


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
