"""What ``torch_function`` must do, checked on every one of four ranks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, cast

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

from p2smt.api.tensors import TensorFunction, planned_together, torch_function
from p2smt.errors import InputError
from p2smt.interop.arrays.torch_spec import placements_of
from p2smt.resharding.backward import without_partials
from p2smt.resharding.steps import MemoryLimit
from p2smt.resharding.types import ArrayType, Uneven
from tests.api.tensors.plans import gathered_plan, types
from tests.api.tensors.values import index_of, joined, split, stacked_shape

MESH = "dp=2,tp=2"
TURNED = (3, 1, 0, 2)


def device_mesh(kind: ArrayType) -> DeviceMesh:
    ranks = torch.tensor(kind.mesh.devices).view(kind.mesh.sizes)
    return DeviceMesh("cpu", ranks, mesh_dim_names=tuple(axis.name for axis in kind.mesh.axes))


def function_of(source: ArrayType, target: ArrayType, mesh: DeviceMesh) -> TensorFunction:
    """With a backward plan by gathers, so that no planner is needed."""
    back = gathered_plan(without_partials(target), without_partials(source))
    return torch_function(gathered_plan(source, target), mesh, backward=back)


def whole_array(function: TensorFunction, seed: int = 0) -> torch.Tensor:
    """All contributions to a source, the same on every rank."""
    shape = stacked_shape(function.plan.frame, function.plan.start)
    return torch.randint(-40, 40, shape, generator=torch.Generator().manual_seed(seed)).double()


def leaf_of(function: TensorFunction, whole: torch.Tensor) -> DTensor:
    """A source that wants its gradient."""
    return cast(DTensor, source_of(function, whole).requires_grad_())


def back_from(found: torch.Tensor, gradient: torch.Tensor | None = None) -> None:
    found.backward(gradient)  # type: ignore[no-untyped-call]


def source_of(function: TensorFunction, whole: torch.Tensor) -> DTensor:
    plan = function.plan
    local = whole[index_of(plan.frame, plan.start, dist.get_rank())].clone()
    return as_dtensor(local, plan.source, function.mesh)


def as_dtensor(local: torch.Tensor, kind: ArrayType, mesh: DeviceMesh) -> DTensor:
    strides = torch.empty(kind.shape).stride()
    shape = torch.Size(kind.shape)
    return DTensor.from_local(
        local, mesh, placements_of(kind), run_check=False, shape=shape, stride=strides
    )


def summed(whole: torch.Tensor, dims: int) -> torch.Tensor:
    extra = whole.ndim - dims
    return whole.sum(tuple(range(extra))) if extra else whole


def check_there_and_back(function: TensorFunction, seed: int = 0) -> None:
    """Values are in the destination's blocks; the gradient is in the source's."""
    plan, whole = function.plan, whole_array(function, seed)
    leaf = leaf_of(function, whole)
    given = leaf.to_local().detach().clone()
    found = function(leaf)
    total = summed(whole, len(plan.frame.shape))
    assert found.placements == placements_of(plan.target)
    last = plan.states[-1]
    expected = total[index_of(plan.frame, last, dist.get_rank())]
    assert torch.equal(found.to_local().detach(), expected)
    assert torch.equal(leaf.to_local().detach(), given), "the source was overwritten"
    weights = torch.arange(total.numel()).double().view(total.shape)
    part = weights[index_of(plan.frame, last, dist.get_rank())].clone()
    back_from(found, as_dtensor(part, plan.target, found.device_mesh))
    assert isinstance(leaf.grad, DTensor)
    assert leaf.grad.placements == placements_of(without_partials(plan.source))
    home = replace(plan.start, partial=())
    assert torch.equal(leaf.grad.to_local(), weights[index_of(plan.frame, home, dist.get_rank())])


KINDS: tuple[Placement, ...] = (Replicate(), Shard(0), Shard(1), Partial())


def text_of(placements: Sequence[Placement]) -> str:
    names = ("dp", "tp")
    dims = []
    for dim in range(2):
        axes = [n for n, p in zip(names, placements, strict=True) if p == Shard(dim)]
        dims.append(f"S({','.join(axes)})" if axes else "R")
    partial = [n for n, p in zip(names, placements, strict=True) if p == Partial()]
    return ",".join(dims) + "".join(f";P({name})" for name in partial)


def every_pair() -> list[tuple[str, str]]:
    """The pairs of (R, S0, S1, P) x 2 and (R, S0, S1) x 2."""
    firsts = itertools.product(KINDS, repeat=2)
    lasts = list(itertools.product(KINDS[:3], repeat=2))
    return [(text_of(a), text_of(b)) for a in firsts for b in lasts]


def check_pairs(pairs: Sequence[tuple[str, str]], devices: Sequence[int] | None) -> None:
    mesh = device_mesh(types(MESH, (4, 8), "R,R", devices=devices)[0])
    for seed, pair in enumerate(pairs):
        source, target = types(MESH, (4, 8), *pair, devices=devices)
        check_there_and_back(function_of(source, target, mesh), seed)


def some_pairs() -> None:
    check_pairs(random.Random(0).sample(every_pair(), 12), None)


def ranks_not_in_order() -> None:
    """Members stand by mesh position: DTensor itself is wrong here."""
    check_pairs(random.Random(1).sample(every_pair(), 8), TURNED)


def all_pairs() -> None:
    check_pairs(every_pair(), None)
    check_pairs(every_pair(), TURNED)


def shards_in_other_orders() -> None:
    for pair in (("S(tp,dp),R", "R,S(tp,dp)"), ("R,S(tp,dp)", "S(dp),S(tp)")):
        source, target = types(MESH, (4, 8), *pair)
        check_there_and_back(function_of(source, target, device_mesh(source)))


def uneven_chunks() -> None:
    for pair in (("S(dp,tp),R", "R,S(dp)"), ("R,S(dp);P(tp)", "S(tp),R")):
        source, target = types(MESH, (5, 3), *pair, uneven=Uneven.NESTED)
        check_there_and_back(function_of(source, target, device_mesh(source)))


def another_order_of_devices() -> None:
    (source,) = types(MESH, (4, 8), "S(dp),R;P(tp)")
    (target,) = types(MESH, (4, 8), "R,S(dp,tp)", devices=TURNED)
    function = function_of(source, target, device_mesh(source))
    assert function.target_mesh.mesh.flatten().tolist() == list(TURNED)
    check_there_and_back(function)


def gradients_of_locals() -> None:
    """gradcheck through whole arrays: partial sources and destinations, sub-axes, uneven chunks."""
    rows: tuple[tuple[str, tuple[int, ...], str, str, Uneven], ...] = (
        (MESH, (2, 4), "S(dp),R;P(tp)", "R,S(tp)", Uneven.REFUSE),
        (MESH, (2, 4), "R,R;P(dp);P(tp)", "S(tp),R;P(dp)", Uneven.REFUSE),
        ("a=4", (4, 2), "S(a:(2)2),R;P(a:(1)2)", "R,S(a:(1)2)", Uneven.REFUSE),
        (MESH, (3, 2), "S(dp),R;P(tp)", "R,S(dp)", Uneven.NESTED),
    )
    for mesh, shape, first, last, uneven in rows:
        source, target = types(mesh, shape, first, last, uneven=uneven)
        check_gradient_of_locals(function_of(source, target, device_mesh(source)))


def check_gradient_of_locals(function: TensorFunction) -> None:
    frame, start, last = function.plan.frame, function.plan.start, function.plan.states[-1]

    def through(whole: torch.Tensor) -> torch.Tensor:
        return joined(function.on_local(split(whole, frame, start)), frame, last)

    whole = whole_array(function).requires_grad_()
    total = summed(whole, len(frame.shape))
    assert torch.equal(through(whole), total)
    assert torch.autograd.gradcheck(through, (whole,), fast_mode=True)


def gradients_of_dtensors() -> None:
    source, target = types(MESH, (4, 2), "S(dp),S(tp)", "S(tp,dp),R")
    mesh = device_mesh(source)
    function = function_of(source, target, mesh)

    def through(whole: torch.Tensor) -> torch.Tensor:
        given = DTensor.from_local(whole, mesh, [Replicate()] * 2, run_check=False)
        moved = function(given.redistribute(mesh, placements_of(source)))
        return cast(DTensor, moved * moved).full_tensor()

    whole = whole_array(function).requires_grad_()
    # an undefined gradient, which gradcheck tries as well, stops DTensor's own redistribute
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(through, (whole,), check_undefined_grad=False, fast_mode=True)


def gradient_in_another_layout() -> None:
    """It is planned for when it comes: here partial, and sharded where the destination is not."""
    source, target, other = types(MESH, (4, 8), "S(dp,tp),R", "R,S(dp)", "S(dp),R;P(tp)")
    function = function_of(source, target, device_mesh(source))
    function.learn(gathered_plan(other, source))
    whole = whole_array(function)
    leaf = leaf_of(function, whole)
    local = torch.full((2, 8), 1.0 + dist.get_rank() % 2, dtype=torch.float64)
    (found,) = torch.autograd.grad(function(leaf), leaf, as_dtensor(local, other, function.mesh))
    assert isinstance(found, DTensor)
    assert found.placements == placements_of(source)
    assert torch.equal(found.to_local(), torch.full((1, 8), 3.0, dtype=torch.float64))
    assert str(function).count("backward: ") == 2


def gradients_need_not_be_contiguous() -> None:
    source, target = types(MESH, (4, 8), "S(dp),R", "R,S(dp)")
    function = function_of(source, target, device_mesh(source))
    leaf = leaf_of(function, whole_array(function))
    back_from(function(leaf).sum())
    assert isinstance(leaf.grad, DTensor)
    assert torch.equal(leaf.grad.to_local(), torch.ones(2, 8, dtype=torch.float64))
    local = torch.ones(2, 8, dtype=torch.float64).requires_grad_()
    back_from(function.on_local(local).t().sum())
    assert local.grad is not None


def planned_here() -> None:
    """Without a backward plan rank 0 makes one, and every rank has it."""
    from p2smt.resharding.search import solve_redistribution

    source, target, other = types(MESH, (4, 8), "S(dp),R;P(tp)", "R,S(dp,tp)", "S(tp),S(dp)")
    topology = gathered_plan(source, target).topology
    function = torch_function(solve_redistribution(source, target, topology), device_mesh(source))
    check_there_and_back(function)
    assert function.backward_from(other).plan.source == other
    texts: list[Any] = [None] * 4
    dist.all_gather_object(texts, str(function))
    assert len(set(texts)) == 1
    assert "forward: S(dp),R;P(tp) to R,S(dp,tp): " in texts[0]


def rank_0_fails_to_plan() -> None:
    """No rank waits for a plan that does not come, though the error cannot be pickled."""

    class OddError(Exception):
        pass

    def fail() -> NoReturn:
        raise OddError("no luck")

    def refuse() -> NoReturn:
        raise InputError("memory 1 B", "no plan keeps to it")

    with pytest.raises(RuntimeError if dist.get_rank() else OddError, match="no luck"):
        planned_together(fail)
    with pytest.raises(InputError, match="memory 1 B: no plan keeps to it"):
        planned_together(refuse)


def nothing_moves() -> None:
    source, target = types(MESH, (4, 8), "S(dp),R", "S(dp),R")
    check_there_and_back(function_of(source, target, device_mesh(source)))


def refused(rule: str, call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert rule in str(error.value)


def what_is_refused() -> None:
    source, target, summands = types(MESH, (4, 8), "S(dp),R;P(tp)", "R,S(dp)", "R,S(dp);P(tp)")
    mesh = device_mesh(source)
    function = function_of(source, target, mesh)
    x = source_of(function, whole_array(function))
    local = x.to_local()
    placed = placements_of(source)
    refused("is no DTensor", lambda: function(local))  # type: ignore[arg-type]
    refused("starts from S(dp),R;P(tp)", lambda: function(function(x)))
    refused("plan is for f64[4,8]", lambda: function(cast(DTensor, x.float())))
    rows = DTensor.from_local(local[:1].contiguous(), mesh, placed, run_check=False)
    refused("plan is for f64[4,8]", lambda: function(rows))
    turned = device_mesh(types(MESH, (4, 8), "R,R", devices=TURNED)[0])
    elsewhere = DTensor.from_local(local, turned, placed, run_check=False)
    refused("ranks in another order", lambda: function(elsewhere))
    refused("ranks in another order", lambda: torch_function(function.plan, turned))
    line = DeviceMesh("cpu", [0, 1, 2, 3])
    refused("the plan is for (2, 2)", lambda: torch_function(function.plan, line))
    to_partial = function_of(source, summands, mesh)
    refused("not redistributed to partial values", lambda: to_partial(x))
    product = DTensor.from_local(local, mesh, [Shard(0), Partial("product")], run_check=False)
    refused("starts from S(dp),R;P(tp)", lambda: function(product))
    back = gathered_plan(target, target)
    refused("must lead to", lambda: torch_function(function.plan, mesh, backward=back))
    cap = MemoryLimit(function.plan.peak_step_bytes, of_steps=True)
    capped = replace(function.plan, memory=cap)
    refused("as its source is kept, over its cap", lambda: torch_function(capped, mesh))


REDUCED: dict[str, Callable[..., torch.Tensor]] = {
    "max": torch.amax,
    "min": torch.amin,
    "product": torch.prod,
    "avg": torch.mean,
}


def gradients_that_do_not_exist() -> None:
    for op, reduce in REDUCED.items():
        source, target = types(MESH, (4, 8), f"S(dp),R;P(tp,{op})", "R,S(dp)")
        function = torch_function(gathered_plan(source, target), device_mesh(source))
        frame, last = function.plan.frame, function.plan.states[-1]
        assert not function.differentiable
        whole = whole_array(function)
        found = function(source_of(function, whole)).to_local()
        assert torch.equal(found, reduce(whole, 0)[index_of(frame, last, dist.get_rank())])
        leaf = leaf_of(function, whole)
        refused(f"partial values by {op}", partial(function, leaf))
        with torch.no_grad():
            function(leaf)


CASES: dict[str, Callable[[], None]] = {
    case.__name__: case
    for case in (
        some_pairs,
        ranks_not_in_order,
        shards_in_other_orders,
        uneven_chunks,
        another_order_of_devices,
        gradients_of_locals,
        gradients_of_dtensors,
        gradient_in_another_layout,
        gradients_need_not_be_contiguous,
        planned_here,
        rank_0_fails_to_plan,
        nothing_moves,
        what_is_refused,
        gradients_that_do_not_exist,
        all_pairs,
    )
}
"""By their names."""
