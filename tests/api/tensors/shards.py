"""Gradients of shards without elements, or with one, whatever their strides: on every rank."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from p2smt.api.tensors import TensorFunction
from p2smt.resharding.types import ArrayType, Uneven
from tests.api.tensors.cases import (
    as_dtensor,
    back_from,
    device_mesh,
    function_of,
    leaf_of,
    summed,
    whole_array,
)
from tests.api.tensors.plans import types
from tests.api.tensors.values import index_of, split

Row = tuple[str, tuple[int, ...], str, str, Uneven]
ROWS: dict[int, tuple[Row, ...]] = {
    4: (
        ("a=4", (9,), "R", "S(a)", Uneven.NESTED),  # 3, 3, 3, 0
        ("a=4", (9,), "S(a)", "R", Uneven.NESTED),
        ("a=4", (5, 4), "S(a),R", "R,S(a)", Uneven.NESTED),  # 2, 2, 1, 0
        ("a=4", (5, 1), "R,R;P(a)", "S(a),R", Uneven.NESTED),
        ("dp=2,tp=2", (5, 3), "S(dp,tp),R", "R,S(dp)", Uneven.NESTED),
        ("dp=2,tp=2", (5, 3), "R,S(dp);P(tp)", "S(tp),R", Uneven.NESTED),
        ("a=4", (5, 6), "S(a),R", "R,S(a)", Uneven.PADDED),
        ("dp=2,tp=2", (5, 3), "S(dp),R;P(tp)", "R,S(tp)", Uneven.PADDED),
        ("a=4", (4,), "R", "S(a)", Uneven.REFUSE),  # an element each
        ("dp=2,tp=2", (2, 2), "S(dp),S(tp)", "S(tp),S(dp)", Uneven.REFUSE),
    ),
    6: (
        ("a=6", (8,), "R", "S(a)", Uneven.NESTED),  # 2, 2, 2, 2, 0, 0
        ("a=6", (7, 6), "S(a),R", "R,S(a)", Uneven.NESTED),  # 2, 2, 2, 1, 0, 0
        ("dp=2,tp=3", (7, 3), "S(dp,tp),R", "R,S(tp)", Uneven.NESTED),  # 2, 2, 0 and 1, 1, 1
    ),
}
"""By the number of ranks; the lengths of shards beside those that differ most."""


def expanded(part: torch.Tensor) -> torch.Tensor:
    """One number for all elements, as the gradient of a sum: strides of 0."""
    return torch.ones((), dtype=part.dtype).expand(part.shape)


def expanded_rows(part: torch.Tensor) -> torch.Tensor:
    """A row for all rows, as the gradient of a sum over them."""
    row = torch.arange(1, 1 + part.shape[-1]).to(part.dtype)
    return row.expand(part.shape)


def turned(part: torch.Tensor) -> torch.Tensor:
    """Strides of a transposed tensor, where there are dimensions to transpose."""
    axes = tuple(reversed(range(part.ndim)))
    return part.permute(axes).clone(memory_format=torch.contiguous_format).permute(axes)


FORMS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (expanded, expanded_rows, turned)


def strided(part: torch.Tensor) -> Iterator[torch.Tensor]:
    """Gradients of a shape, in every form; as they are, and every second element of others."""
    for form in FORMS:
        yield form(part)
    yield part.repeat_interleave(2, dim=-1)[..., ::2]


def gradients_of_any_strides() -> None:
    """Against the same gradients laid out anew, gathered, and cut by the definition of blocks."""
    for row, dtype in itertools.product(ROWS[dist.get_world_size()], ("f32", "bf16")):
        mesh, shape, first, last, uneven = row
        source, target = types(mesh, shape, first, last, dtype=dtype, uneven=uneven)
        check_gradients(function_of(source, target, device_mesh(source)), source)


def check_gradients(function: TensorFunction, source: ArrayType) -> None:
    plan, rank = function.plan, dist.get_rank()
    kind = torch.float32 if source.element.value == "f32" else torch.bfloat16
    whole = whole_array(function).to(kind)
    total = summed(whole, len(plan.frame.shape))
    weights = torch.arange(total.numel()).remainder(101).to(kind).view(total.shape)
    mine = weights[index_of(plan.frame, plan.states[-1], rank)]
    for number, given in enumerate(strided(mine)):
        leaf = split(whole, plan.frame, plan.start).detach().clone().requires_grad_()
        found = function.on_local(leaf)
        back_from(found, given)
        assert leaf.grad is not None
        assert leaf.grad.dtype is kind
        home = index_of(plan.frame, type(plan.start)(plan.start.dims, (), plan.start.order), rank)
        assert torch.equal(leaf.grad, _sent(number, weights, function)[home])


def _sent(number: int, weights: torch.Tensor, function: TensorFunction) -> torch.Tensor:
    """The whole gradient that all ranks' parts in a form are."""
    if number == 0:
        return torch.ones_like(weights)
    if number > 1:
        return weights
    whole, frame, last = torch.empty_like(weights), function.plan.frame, function.plan.states[-1]
    for rank in range(dist.get_world_size()):
        index = index_of(frame, last, rank)
        whole[index] = expanded_rows(whole[index])
    return whole


def sums_of_dtensors() -> None:
    """``move(x).to_local().sum().backward()``: the gradient of a sum has strides of 0."""
    for mesh, shape, first, last, uneven in ROWS[dist.get_world_size()]:
        if uneven is Uneven.PADDED:
            continue  # not a DTensor's
        source, target = types(mesh, shape, first, last, uneven=uneven)
        function = function_of(source, target, device_mesh(source))
        leaf = leaf_of(function, whole_array(function))
        back_from(function(leaf).to_local().sum())
        assert isinstance(leaf.grad, DTensor)
        assert bool((leaf.grad.to_local() == 1).all())


def sources_of_any_strides() -> None:
    """A shard without elements, or with one, is contiguous whatever its strides are."""
    for size, uneven in ((9, Uneven.NESTED), (4, Uneven.REFUSE)):
        source, target = types("a=4", (size,), "S(a)", "R", dtype="f32", uneven=uneven)
        function = function_of(source, target, device_mesh(source))
        own = index_of(function.plan.frame, function.plan.start, dist.get_rank())
        local = torch.ones(size)[own]
        given = as_dtensor(expanded(local) if len(local) < 2 else local, source, function.mesh)
        assert torch.equal(function(given).to_local(), torch.ones(size))


CASES = {
    case.__name__: case
    for case in (gradients_of_any_strides, sums_of_dtensors, sources_of_any_strides)
}
"""By their names."""
