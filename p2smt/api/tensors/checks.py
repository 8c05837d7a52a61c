"""Whether a DTensor, or a gradient, is of the type that a plan starts from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.element import ElementType
from p2smt.arrays.frame import state_of
from p2smt.arrays.memory import peak_step_bytes
from p2smt.arrays.mesh import Mesh
from p2smt.arrays.text import layout_text
from p2smt.errors import InputError
from p2smt.interop.arrays.torch_spec import array_type_of_spec, mesh_of_torch, placements_of
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.units import format_bytes


def check_mesh(mesh: DeviceMesh, planned: Mesh, what: str = "a DeviceMesh") -> None:
    """Raise InputError unless a mesh has the sizes and the ranks that were planned for."""
    own = mesh_of_torch(mesh)
    if own.sizes != planned.sizes:
        rule = f"the plan is for {planned.sizes}"
        raise InputError(f"{what} of {own.sizes}", rule, "give the mesh of the plan")
    if own.devices != planned.devices:
        rule = "has the ranks in another order than the plan"
        raise InputError(what, rule, "plan with --device-ids, or give the mesh of the plan")


def type_of(tensor: DTensor, planned: ArrayType) -> ArrayType:
    """The type of a DTensor, on the mesh of a plan.

    Raises:
        InputError: it is on another mesh, or of a type that p2smt does not have.
    """
    if not isinstance(tensor, DTensor):
        rule = "is no DTensor"
        raise InputError(f"a {type(tensor).__name__}", rule, "give on_local the local tensor")
    check_mesh(tensor.device_mesh, planned.mesh, "a DTensor on a mesh")
    spec: Any = tensor._spec  # the only place of the order of shards
    return replace(array_type_of_spec(spec, planned.uneven), mesh=planned.mesh)


def check_source(found: ArrayType, plan: RedistributionPlan) -> None:
    """Raise InputError unless a type is that of the plan's source."""
    wanted = plan.source
    if found.shape != wanted.shape or found.element is not wanted.element:
        rule = f"the plan is for {_array(wanted)}"
        raise InputError(f"a DTensor of {_array(found)}", rule, "plan for its shape and dtype")
    state = state_of(found.layout, plan.frame.digits, wanted.mesh)
    other_op = wanted.layout.partial and found.layout.op is not wanted.layout.op
    if state != plan.start or other_op:
        given = f"a DTensor that lies as {layout_text(found.layout, wanted.mesh)}"
        rule = f"the plan starts from {layout_text(wanted.layout, wanted.mesh)}"
        raise InputError(given, rule, "plan from its own layout")


def check_element(local: torch.Tensor, planned: ElementType) -> None:
    """Raise InputError unless a local tensor's elements are those of the plan."""
    name = str(local.dtype).removeprefix("torch.")
    if planned.parse(name) is not planned:
        rule = f"the plan is for {planned.value}"
        raise InputError(f"a local tensor of {name}", rule, "plan for its dtype")


def source_kept_bytes(plan: RedistributionPlan) -> int:
    """What the dearest step takes on a device while the source is kept, as autograd keeps it."""
    return max(plan.peak_bytes, peak_step_bytes(plan.frame, plan.array_steps, True))


def check_memory(plan: RedistributionPlan, what: str = "the plan") -> None:
    """Raise InputError where a cap of steps is exceeded because the source is kept."""
    needed, limit = source_kept_bytes(plan), plan.memory.limit_bytes
    if plan.memory.of_steps and needed > limit:
        taken, cap = format_bytes(needed), format_bytes(limit)
        rule = f"takes {taken} on a device as its source is kept, over its cap of {cap}"
        raise InputError(what, rule, "plan with --keep-source, or with more --memory")


def placements(plan: RedistributionPlan) -> tuple[Placement, ...]:
    """Those of the destination.

    Raises:
        InputError: DTensor does not have such a type: parts of an axis, padding, or partial values,
            which it redistributes nothing to.
    """
    kind = replace(plan.target, layout=plan.frame.layout(plan.states[-1]))
    remedy = "call on_local with the local tensor"
    if kind.layout.partial:
        rule = "DTensors are not redistributed to partial values"
        raise InputError(f"a destination {layout_text(kind.layout, kind.mesh)}", rule, remedy)
    if plan.frame.shape != plan.source.shape:
        rule = "DTensor pads no dimension"
        raise InputError("a plan of padded dimensions", rule, "plan with --uneven nested")
    return placements_of(kind)


def _array(kind: ArrayType) -> str:
    return f"{kind.element.value}[{','.join(map(str, kind.shape))}]"
