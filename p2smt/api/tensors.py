"""``torch_function(plan, mesh)``: a plan as a function of DTensors, with its gradient.

The backward pass is a redistribution of its own, planned from the layout in which the gradient
arrives to the source's, with every partial axis replicated: what ``DTensor.redistribute`` does.
"""

from __future__ import annotations

import math
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.distributed_c10d import _abort_process_group
from torch.distributed.tensor import DTensor, Placement

from p2smt.errors import InputError
from p2smt.interop.arrays.torch_spec import array_type_of_spec, mesh_of_torch, placements_of
from p2smt.resharding.backward import (
    backward_plan,
    check_differentiable,
    ends_in,
    starts_in,
    without_partials,
)
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.states import Frame, state_of
from p2smt.resharding.steps import ArrayStep, peak_step_bytes
from p2smt.resharding.types import ArrayType, ElementType, Mesh, layout_text
from p2smt.runtime.arrays.moves import ArrayGroups, run_steps
from p2smt.runtime.arrays.rank_steps import RankStep, rank_steps
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


# Whether a DTensor, or a gradient, is of the type that a plan starts from.


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


# A planned redistribution, ready to be carried out again and again on this process's rank.


_SHARED: list[tuple[weakref.ref[dist.ProcessGroup], ArrayGroups]] = []
"""The default group of this process, and the groups that were made under it; at most one entry.
torch keeps that group by the process, and all ranks make a group together: once for all movers."""


@dataclass(frozen=True, slots=True)
class ArrayMover:
    """The steps of a plan as this rank sees them, and their groups."""

    steps: tuple[RankStep, ...]
    groups: ArrayGroups

    def __call__(self, local: torch.Tensor) -> torch.Tensor:
        """The rank's block of the destination; ``local`` keeps its values.

        Every rank calls it.  Without steps the result is ``local`` itself.

        Raises:
            InputError: ``local`` is not contiguous, or of another shape than the plan's source.
        """
        return run_steps(local, self.steps, self.groups)


@contextmanager
def ending_the_job() -> Iterator[None]:
    """Abort all process groups on an error, and raise it: who waits for this rank gets one too.

    Gloo closes the connections of a group once nobody holds it, and the frames of an error that
    is caught somewhere would.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        if dist.is_initialized():
            _abort_process_group()
        raise


def array_mover(
    frame: Frame, steps: Sequence[ArrayStep], sources: Sequence[Sequence[int]]
) -> ArrayMover:
    """The mover of these steps; every rank of the default group calls it, in the same order.

    Raises:
        InputError: the default group has another number of ranks than the frame has devices.
    """
    world = dist.get_world_size()
    if world != frame.devices:
        rule = f"the plan is for {frame.devices} devices"
        raise InputError(f"{world} ranks", rule, "start as many, or plan for these")
    groups = _shared_groups()
    for step in steps:
        groups.make(step.groups(frame))
    return ArrayMover(rank_steps(frame, steps, sources, dist.get_rank()), groups)


def _shared_groups() -> ArrayGroups:
    """Groups that all movers of this process share, anew when the default group is."""
    world = dist.group.WORLD
    if isinstance(world, dist.ProcessGroup) and not (_SHARED and _SHARED[0][0]() is world):
        _SHARED[:] = [(weakref.ref(world), ArrayGroups())]
    return _SHARED[0][1]


# Plans that all ranks have alike: a search under a time limit might differ from rank to rank.


def planned_together(make: Callable[[], RedistributionPlan]) -> RedistributionPlan:
    """What rank 0 plans; every rank of the default group calls it.

    Raises:
        InputError: on every rank, where rank 0 finds none.
        RuntimeError: on the other ranks, where rank 0 fails otherwise, with its error's own class.
    """
    found: list[RedistributionPlan | Exception | None] = [None]
    own: Exception | None = None
    if dist.get_rank() == 0:
        try:
            found[0] = make()
        except Exception as error:  # the others wait for a word, whatever it is
            own, found[0] = error, _error_for_other_ranks(error)
    dist.broadcast_object_list(found, src=0)
    if isinstance(found[0], RedistributionPlan):
        return found[0]
    raise own or found[0] or RuntimeError("rank 0 sent neither a plan nor an error")


def _error_for_other_ranks(error: Exception) -> Exception:
    """An error as the other ranks get it: not every one survives pickling."""
    if isinstance(error, InputError):
        return error
    return RuntimeError(f"rank 0 failed to plan: {type(error).__name__}: {error}")
