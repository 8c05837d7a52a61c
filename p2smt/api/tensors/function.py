"""``torch_function(plan, mesh)``: a plan as a function of DTensors, with its gradient.

The backward pass is a redistribution of its own, planned from the layout in which the gradient
arrives to the source's, with every partial axis replicated: what ``DTensor.redistribute`` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from p2smt.api.tensors.checks import (
    check_element,
    check_memory,
    check_mesh,
    check_source,
    placements,
    source_kept_bytes,
    type_of,
)
from p2smt.api.tensors.movers import array_mover, ending_the_job
from p2smt.api.tensors.planned import planned_together
from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.text import layout_text
from p2smt.errors import InputError
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.search.redistribution.backward import (
    backward_plan,
    check_differentiable,
    ends_in,
    starts_in,
    without_partials,
)
from p2smt.units import format_bytes, format_time


def torch_function(
    plan: RedistributionPlan, mesh: DeviceMesh, *, backward: RedistributionPlan | None = None
) -> TensorFunction:
    """A planned redistribution, to call in place of ``DTensor.redistribute``.

    Every rank of the default process group calls it, and calls what it returns; the plan's device
    d is rank d.  Process groups are made here, and shared by all functions of a process.

    Args:
        plan: the same on every rank.
        mesh: the DeviceMesh of the DTensors: the sizes and ranks of the plan's source.
        backward: the plan of the gradient, from the destination's layout to the source's, partial
            axes replicated in both; None: rank 0 plans it now, within the limits of ``plan``.
            A gradient that arrives in another layout is planned for when it first comes.

    Raises:
        InputError: the mesh is not the plan's, or another number of ranks runs; or a plan, or
            every plan of the gradient, exceeds its cap of steps while the source is kept.
    """
    check_mesh(mesh, plan.source.mesh)
    check_memory(plan)
    function = TensorFunction(plan, mesh, _target_mesh(plan, mesh))
    if backward is not None:
        function.learn(backward)
    elif function.differentiable:
        function.backward_from(without_partials(ends_in(plan)))
    return function


def _target_mesh(plan: RedistributionPlan, mesh: DeviceMesh) -> DeviceMesh:
    """The mesh of the destination, which may have the same devices in another order."""
    if plan.target.mesh.devices == plan.source.mesh.devices:
        return mesh
    ranks = torch.tensor(plan.target.mesh.devices).view(plan.target.mesh.sizes)
    return DeviceMesh(mesh.device_type, ranks, mesh_dim_names=mesh.mesh_dim_names)


class TensorFunction:
    """Redistributes DTensors of the plan's source type (called), or local tensors (``on_local``).

    ``str`` tells time and memory of both directions.
    """

    def __init__(
        self,
        plan: RedistributionPlan,
        mesh: DeviceMesh,
        target_mesh: DeviceMesh,
        *,
        of_gradients: bool = False,
    ) -> None:
        self.plan, self.mesh, self.target_mesh = plan, mesh, target_mesh
        self._of_gradients = of_gradients  # autograd's need not be contiguous
        sources = [planned.sources for planned in plan.steps]
        self._mover = array_mover(plan.frame, plan.array_steps, sources)
        self._gradients: dict[ArrayType, TensorFunction] = {}

    def __call__(self, tensor: DTensor) -> DTensor:
        """The same array in the destination's layout.

        Raises:
            InputError: the tensor is not of the source's type, its local tensor is not contiguous,
                it requires a gradient that does not exist, or DTensor has no such destination.
        """
        check_source(type_of(tensor, self.plan.source), self.plan)
        placements(self.plan)
        self._check_gradient(tensor)
        return cast(DTensor, _OnDTensors.apply(tensor, self))  # type: ignore[no-untyped-call]

    def on_local(self, local: torch.Tensor) -> torch.Tensor:
        """This rank's block of the destination, from its block of the source.

        Types that DTensor does not have, partial destinations among them, go this way.  The
        gradient comes in the destination's layout and goes out in the source's, partial axes
        replicated in both.

        Raises:
            InputError: the tensor has another dtype or shape, is not contiguous, or requires a
                gradient that does not exist.
        """
        self._check_gradient(local)
        return cast(torch.Tensor, _OnLocals.apply(local, self))  # type: ignore[no-untyped-call]

    def _check_gradient(self, tensor: torch.Tensor) -> None:
        if tensor.requires_grad and torch.is_grad_enabled():
            check_differentiable(self.plan.source)

    @property
    def differentiable(self) -> bool:
        """Whether gradients go back through it."""
        try:
            check_differentiable(self.plan.source)
        except InputError:
            return False
        return True

    @property
    def backward(self) -> TensorFunction:
        """The function of gradients in the destination's layout, partial axes replicated."""
        return self.backward_from(without_partials(ends_in(self.plan)))

    def backward_from(self, gradient: ArrayType) -> TensorFunction:
        """The function of gradients of a type; rank 0 plans it when it is first asked for.

        Raises:
            InputError: no gradient goes back through this plan, or no plan keeps to the cap.
        """
        if gradient not in self._gradients:
            kept = replace(self.plan, memory=replace(self.plan.memory, keep_source=True))
            self.learn(planned_together(lambda: backward_plan(kept, gradient)))
        return self._gradients[gradient]

    def learn(self, plan: RedistributionPlan) -> None:
        """Take a plan for gradients of its source's type.

        Raises:
            InputError: it does not lead to the source's type, partial axes replicated; or it
                exceeds its cap of steps while its source is kept.
        """
        check_memory(plan, "the backward plan")
        wanted = replace(without_partials(starts_in(self.plan)), element=plan.source.element)
        if ends_in(plan) != wanted or plan.source.mesh != self.plan.target.mesh:
            text = layout_text(wanted.layout, wanted.mesh)
            raise InputError("the backward plan", f"must lead to the gradient's {text}")
        function = TensorFunction(plan, self.target_mesh, self.mesh, of_gradients=True)
        self._gradients[starts_in(plan)] = function

    def move(self, local: torch.Tensor) -> torch.Tensor:
        """The steps on a local tensor, without autograd.

        One rank alone may be given what is refused, while others are on their way: an error ends
        the job.
        """
        with ending_the_job():
            check_element(local, self.plan.source.element)
            return self._mover(local.contiguous() if self._of_gradients else local)

    def wrapped(self, local: torch.Tensor) -> DTensor:
        """A block of the destination as a DTensor."""
        shape = self.plan.target.shape
        strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
        return DTensor.from_local(
            local,
            self.target_mesh,
            placements(self.plan),
            run_check=False,
            shape=torch.Size(shape),
            stride=strides,
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"forward: {_told(self.plan)}"
        for function in self._gradients.values():
            yield f"backward: {_told(function.plan)}"


def _told(plan: RedistributionPlan) -> str:
    """Types, predicted time, steps, and memory on a device while the source is kept."""
    ends = " to ".join(layout_text(end.layout, end.mesh) for end in (plan.source, plan.target))
    steps = "; ".join(step.text(plan.frame) for step in plan.array_steps) or "nothing moves"
    step_bytes = format_bytes(source_kept_bytes(plan))
    most = f"{format_bytes(plan.peak_bytes)} a state, {step_bytes} a step"
    return (
        f"{ends}: {format_time(plan.objective_s)} predicted ({steps}); at most {most}, source kept"
    )


class _OnDTensors(torch.autograd.Function):
    """A function of DTensors."""

    @staticmethod
    def forward(ctx: Any, tensor: DTensor, function: TensorFunction) -> DTensor:
        ctx.function = function
        ctx.set_materialize_grads(False)
        return function.wrapped(function.move(tensor.to_local()))

    @staticmethod
    def backward(ctx: Any, gradient: DTensor | None) -> tuple[DTensor | None, None]:
        if gradient is None:
            return None, None
        forward: TensorFunction = ctx.function
        function = forward.backward_from(type_of(gradient, forward.plan.target))
        return cast(DTensor, _OnDTensors.apply(gradient, function)), None  # type: ignore[no-untyped-call]


class _OnLocals(torch.autograd.Function):
    """A function of local tensors."""

    @staticmethod
    def forward(ctx: Any, local: torch.Tensor, function: TensorFunction) -> torch.Tensor:
        ctx.function = function
        ctx.set_materialize_grads(False)
        return function.move(local)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, None]:
        if gradient is None:
            return None, None
        function = ctx.function.backward
        moved = _OnLocals.apply(gradient, function)  # type: ignore[no-untyped-call]
        return cast(torch.Tensor, moved), None
