"""The plan file of a redistribution: types, digits, every step with its groups, and numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.memory import needed_bytes
from p2smt.arrays.state import ArrayState
from p2smt.arrays.text import layout_text
from p2smt.cluster.file_model import dump_topology
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.plans.file import REDISTRIBUTION as KIND
from p2smt.plans.redistribution.file_model import SCHEMA_VERSION, RedistributionModel
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.plans.solution import timed_step

REMEDY = "give a file that redistribute -o wrote"


def redistribution_text(plan: RedistributionPlan) -> str:
    """The plan as the text of its file."""
    return json.dumps(redistribution_plan_data(plan)) + "\n"


def redistribution_plan_data(plan: RedistributionPlan) -> dict[str, Any]:
    """The plan as plain data, valid under :class:`RedistributionModel`."""
    names = [axis.name for axis in plan.source.mesh.axes]
    digits = [
        {"axis": names[digit.axis], "before": digit.before, "size": digit.size}
        for digit in plan.frame.digits
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "topology": dump_topology(plan.topology),
        **_types_data(plan.source, plan.target),
        "digits": digits,
        "memory": asdict(plan.memory),
        "max_steps": plan.max_steps,
        "levels_only": plan.levels_only,
        "limits": _limits_data(plan),
        "status": plan.status.value,
        "objective_s": plan.objective_s,
        "bound_s": plan.bound_s,
        "physical_bound_s": plan.physical_bound_s,
        "peak_bytes": plan.peak_bytes,
        "peak_step_bytes": plan.peak_step_bytes,
        "steps": [_step_data(plan, number) for number in range(len(plan.steps))],
    }


def _types_data(source: ArrayType, target: ArrayType) -> dict[str, Any]:
    return {
        "mesh": [{"name": axis.name, "size": axis.size} for axis in source.mesh.axes],
        "devices": list(source.mesh.devices),
        "target_devices": list(target.mesh.devices),
        "shape": list(source.shape),
        "dtype": source.element.value,
        "source": layout_text(source.layout, source.mesh),
        "target": layout_text(target.layout, target.mesh),
        "uneven": source.uneven.value,
    }


def _limits_data(plan: RedistributionPlan) -> dict[str, Any]:
    limits = plan.limits
    return {
        "solver": plan.stats.solver,
        "time_limit_s": limits.time_limit_s,
        "seed": limits.seed,
        "workers": limits.workers,
    }


def _step_data(plan: RedistributionPlan, number: int) -> dict[str, Any]:
    planned, frame = plan.steps[number], plan.frame
    step, kept = planned.step, plan.memory.keep_source
    timed = timed_step(step.kind.value, planned.time, plan.topology.names)
    del timed["instruction"]
    return {
        "kind": step.kind.value,
        "text": step.text(frame),
        "after": state_data(step.after),
        "groups": list(map(list, step.groups(frame))),
        "sources": list(planned.sources),
        "payload_bytes": planned.time.payload_bytes,
        "step_bytes": needed_bytes(frame, plan.array_steps, number, kept),
        **timed,
    }


def state_data(state: ArrayState) -> dict[str, Any]:
    """A state as plain data."""
    dims = [list(dim) for dim in state.dims]
    return {"dims": dims, "partial": list(state.partial), "order": state.order}


def is_redistribution(path: str) -> bool:
    """Whether a file is the plan of a redistribution, by its ``kind``; any other file is not."""
    try:
        data = read_json(path, f"file {path[:200]!r}", REMEDY, MAX_PLAN_BYTES)
    except InputError:
        return False
    return isinstance(data, dict) and data.get("kind") == KIND


def read_redistribution(path: str) -> RedistributionModel:
    """The plan in a JSON file.

    Raises:
        InputError: the file cannot be read or is no such plan; or a key breaks a rule, which it
            names.
    """
    given = f"file {path[:200]!r}"
    data = read_json(path, given, REMEDY, MAX_PLAN_BYTES)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError(given, "is no plan of a redistribution", REMEDY)
    return validated(RedistributionModel, data, f"plan {path[:200]!r}")
