"""The plan file of a redistribution: types, digits, every step with its groups, and numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel, dump_topology
from p2smt.files.json_text import json_kind
from p2smt.files.plain import to_plain
from p2smt.files.validation import StrictModel
from p2smt.plans.file import MAX_PLAN_BYTES, read_kind
from p2smt.plans.file import REDISTRIBUTION as KIND
from p2smt.plans.file_model import (
    AxisModel,
    Bytes,
    Count,
    DeviceNumber,
    Load,
    PlanSearchModel,
    Seconds,
    StatusName,
)
from p2smt.plans.solution import search_data, timed_step
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.steps import StepKind, needed_bytes
from p2smt.resharding.types import MAX_DIMENSIONS, ArrayType, ElementType, Uneven, layout_text

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
        "limits": search_data(plan.stats.solver, plan.limits),
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


def _step_data(plan: RedistributionPlan, number: int) -> dict[str, Any]:
    planned, frame = plan.steps[number], plan.frame
    step, kept = planned.step, plan.memory.keep_source
    timed = timed_step(step.kind.value, planned.time, plan.topology.names)
    del timed["instruction"]
    return {
        "kind": step.kind.value,
        "text": step.text(frame),
        "after": to_plain(step.after),
        "groups": list(map(list, step.groups(frame))),
        "sources": list(planned.sources),
        "payload_bytes": planned.time.payload_bytes,
        "step_bytes": needed_bytes(frame, plan.array_steps, number, kept),
        **timed,
    }


def is_redistribution(path: str) -> bool:
    """Whether a file is the plan of a redistribution, by its ``kind``; any other file is not."""
    return json_kind(path, MAX_PLAN_BYTES) == KIND


def read_redistribution(path: str) -> RedistributionModel:
    """The plan in a JSON file.

    Raises:
        InputError: the file cannot be read or is no such plan; or a key breaks a rule, which it
            names.
    """
    return read_kind(RedistributionModel, path, KIND, REMEDY)


# The shape of a redistribution's plan file: its keys as pydantic models.


SCHEMA_VERSION = 1

Digit = Annotated[int, Field(ge=0, lt=2**31)]
Digits = list[Digit]
Devices = Annotated[list[DeviceNumber], Field(min_length=1)]
UnevenName = Annotated[Uneven, Field(strict=False)]
ElementName = Annotated[ElementType, Field(strict=False)]
StepName = Annotated[StepKind, Field(strict=False)]


class DigitModel(StrictModel):
    """A part of a mesh axis: ``size`` ways, below parts of ``before`` ways in all."""

    axis: str
    before: Count
    size: Count


class StateModel(StrictModel):
    """A layout on the digits, which are numbered from 0: per dimension those that shard it.

    ``order`` is 0 for the devices of the source, 1 for those of the destination where they stand
    in another order.
    """

    dims: Annotated[list[Digits], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    partial: Digits
    order: Annotated[int, Field(ge=0, le=1)]


class ArrayStepModel(StrictModel):
    """One step to the state ``after``; all ``groups`` (device ids) run it at the same time.

    Members are in the order of mesh positions.  Of a permute there are no groups, and
    ``sources[d]`` sends to device d.  ``payload_bytes`` is what the algorithm works on,
    ``step_bytes`` input, output and pack buffer on a device, and beside them the source if kept.
    """

    kind: StepName
    text: str
    after: StateModel
    groups: list[list[DeviceNumber]]
    sources: list[DeviceNumber]
    payload_bytes: Load
    step_bytes: Bytes
    seconds: Seconds
    algorithm: str
    protocol: str
    bottleneck: str | None
    load_bytes: Load


class MemoryModel(StrictModel):
    """A cap in bytes per device, of steps or of states; with the source kept alive, or not."""

    limit_bytes: Count
    of_steps: bool
    keep_source: bool


class RedistributionModel(StrictModel):
    """The plan of a redistribution.  Devices are numbered in hierarchy order of the topology.

    ``devices[p]`` is the device at mesh position p, and ``target_devices[p]`` the destination's.
    ``source`` and ``target`` are layouts such as ``S(dp),R;P(tp)``.  ``max_steps``: plans of at
    most so many steps were compared; null: of any length.  ``levels_only``: axes were cut at the
    factors of levels only.
    """

    schema_version: Literal[1]
    kind: Literal["redistribution"]
    topology: TopologyModel
    mesh: Annotated[list[AxisModel], Field(min_length=1)]
    devices: Devices
    target_devices: Devices
    shape: Annotated[list[Count], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    dtype: ElementName
    source: str
    target: str
    uneven: UnevenName
    digits: list[DigitModel]
    memory: MemoryModel
    max_steps: Count | None
    levels_only: bool
    limits: PlanSearchModel
    status: StatusName
    objective_s: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    peak_bytes: Bytes
    peak_step_bytes: Bytes
    steps: list[ArrayStepModel]
