"""A redistribution as `redistribute --json` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.memory import kept_bytes, step_bytes
from p2smt.arrays.text import layout_text, mesh_text
from p2smt.plans.redistribution.plan import PlannedStep, RedistributionPlan
from p2smt.report.arrays.peer_rows import ComparedPlanner
from p2smt.result import Status
from p2smt.search.redistribution.question import RedistributionAnswer


def redistribution_data(
    answer: RedistributionAnswer,
    peers: Sequence[ComparedPlanner] | None,
    backward: RedistributionAnswer | None = None,
) -> dict[str, Any]:
    """Status, times, bounds, memory and steps; of no plan these are null and empty."""
    question = answer.question
    return {
        "interrupted": answer.interrupted,
        **_found(answer),
        "cuts": question.cuts.value,
        **_types(question.source, question.target),
        "padded_shape": list(question.ends()[0].frame.shape),
        "memory": {
            "limit_bytes": answer.memory.limit_bytes,
            "of_steps": answer.memory.of_steps,
            "keep_source": answer.memory.keep_source,
        },
        "least_limit_bytes": answer.least.limit_bytes,
        "least_memory_bytes": answer.least.memory_bytes,
        "too_few_steps": answer.least.too_few_steps,
        "compared": None if peers is None else [_peer(row) for row in peers],
        "backward": None if backward is None else _backward(backward),
    }


def _found(answer: RedistributionAnswer) -> dict[str, Any]:
    plan = answer.plan
    return {
        "status": answer.status.value,
        "objective_s": None if plan is None else plan.objective_s,
        "bound_s": None if answer.status is Status.INFEASIBLE else answer.bound_s,
        "physical_bound_s": answer.physical_bound_s,
        "gap": None if plan is None else relative_gap(plan),
        "peak_bytes": None if plan is None else plan.peak_bytes,
        "peak_step_bytes": None if plan is None else plan.peak_step_bytes,
        "max_steps": answer.question.max_steps if plan is None else plan.max_steps,
        "steps": [] if plan is None else steps_data(plan),
    }


def _backward(answer: RedistributionAnswer) -> dict[str, Any]:
    """The gradient's way back: what was found, and between which types."""
    source, target = answer.question.source, answer.question.target
    ends = {"from": source, "to": target}
    texts = {key: layout_text(kind.layout, kind.mesh) for key, kind in ends.items()}
    return {**_found(answer), **texts}


def relative_gap(plan: RedistributionPlan) -> float:
    """How far the plan lies above the proved bound, as a part of it: 0 where it is proved best."""
    objective, bound = plan.objective_s, plan.bound_s
    return 0.0 if objective <= 0 else max(0.0, (objective - bound) / objective)


def _types(source: ArrayType, target: ArrayType) -> dict[str, Any]:
    mesh = source.mesh
    return {
        "mesh": mesh_text(mesh),
        "device_ids": list(mesh.devices),
        "to_device_ids": list(target.mesh.devices),
        "shape": list(source.shape),
        "dtype": source.element.value,
        "uneven": source.uneven.value,
        "from": layout_text(source.layout, mesh),
        "to": layout_text(target.layout, mesh),
    }


def steps_data(plan: RedistributionPlan) -> list[dict[str, Any]]:
    """The steps, each with its time, and its bytes on a device."""
    return [_step(plan, number, step) for number, step in enumerate(plan.steps)]


def _step(plan: RedistributionPlan, number: int, planned: PlannedStep) -> dict[str, Any]:
    frame, step, time = plan.frame, planned.step, planned.time
    level = time.level
    kept = kept_bytes(frame, plan.array_steps, number) if plan.memory.keep_source else 0
    return {
        "kind": step.kind.value,
        "text": step.text(frame),
        "after": layout_text(frame.layout(step.after), frame.mesh),
        "seconds": time.seconds,
        "algorithm": time.algorithm,
        "protocol": time.protocol,
        "bottleneck": None if level is None else plan.topology.names[level],
        "load_bytes": time.load_bytes,
        "payload_bytes": int(time.payload_bytes),
        "local_bytes": frame.local_bytes(step.after),
        "step_bytes": step_bytes(frame, step) + kept,
    }


def _peer(row: ComparedPlanner) -> dict[str, Any]:
    return {
        "name": row.name,
        "seconds": row.seconds,
        "peak_bytes": row.peak_bytes,
        "peak_step_bytes": row.peak_step_bytes,
        "over_cap": row.over_cap,
        "steps": [step.kind.value for step in row.steps],
        "note": row.note,
    }
