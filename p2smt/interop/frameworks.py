"""Files for frameworks that lay meshes of axes over launched ranks.

DeepSpeed, PyTorch's DeviceMesh, JAX, Megatron-LM and TorchTitan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.meshes.arrays import comment_name, tensor_text
from p2smt.interop.meshes.tensor import axis_order, increasing_ranks, launched_ranks, process_notes
from p2smt.interop.places import PlacedPlan
from p2smt.interop.trainers.torchtitan import (
    TORCHTITAN,
    degree_lines,
    degree_options,
    strategy_degrees,
)
from p2smt.interop.trainers.trainer import exported_options
from p2smt.parallelism.placement import IntArray
from p2smt.plans.file_model import PlanModel
from p2smt.training.plan_block import run_of

# What frameworks call the axes of a plan.


def roles_of(plan: PlacedPlan, known: Mapping[str, str], framework: str) -> tuple[str, ...]:
    """What each axis of the plan is to a framework, in the order of the axes.

    known: the framework's names by those that an axis may have.

    Raises:
        InputError: an axis has a name that stands for nothing there, two stand for the same, or
            the plan has another matrix of experts, which degrees do not tell.
    """
    if plan.experts is not None:
        rule = f"also says where experts lie, which sizes of axes do not tell {framework}"
        remedy = f"take --to {framework.partition('-')[0].lower()}-options, or device-mesh"
        raise InputError(plan.source, rule, remedy)
    found: list[str] = []
    for axis in plan.problem.axes:
        role = known.get(axis.name.lower())
        if role is None:
            rule = f"is no axis of {framework}: it has {', '.join(dict.fromkeys(known.values()))}"
            remedy = "name the axes of the plan so"
            raise InputError(f"{plan.source}: axis {axis.name}", rule, remedy)
        if role in found:
            rule = f"is a second {role} axis, of which {framework} has one"
            raise InputError(f"{plan.source}: axis {axis.name}", rule, "merge the two in the plan")
        found.append(role)
    return tuple(found)


def ordered_axes(plan: PlacedPlan, framework: str) -> tuple[int, ...]:
    """The axes (indices, outermost first) over which the launched ranks are row-major.

    Raises:
        InputError: they are so over no order of axes, which the framework needs.
    """
    order = axis_order(plan)
    if order is None:
        rule = (
            f"{framework} numbers ranks row-major over the axes, and these are launched otherwise"
        )
        remedy = "launch them as the plan has them (--to slurm or rankfile)"
        raise InputError(plan.source, rule, remedy)
    return order


# DeepSpeed: the axes and sizes of ``ProcessTopology``, which numbers ranks row-major over them.
# Source: ``deepspeed/runtime/pipe/topology.py`` (``ProcessTopology``: "row-major" over ``axes``;
# ``PipelineParallelGrid`` looks up ``pipe``, ``data`` and ``model``), and ``deepspeed.initialize``
# (``mesh_param``: sizes of ``data_parallel`` and ``sequence_parallel``).


_SEQUENCE = "sequence"
_DEEPSPEED_ROLES = {
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pipe"),
    **dict.fromkeys(("dp", "data", "zero", "fsdp", "dp_shard"), "data"),
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "model"),
    **dict.fromkeys(("sp", "cp", "sequence", "context"), _SEQUENCE),
}


def write_deepspeed(plan: PlacedPlan, _path: str) -> Exported:
    """A Python function that makes the process topology, or ``mesh_param`` for a sequence axis.

    Raises:
        InputError: axes that DeepSpeed does not know, or ranks that are row-major over none.
    """
    roles = roles_of(plan, _DEEPSPEED_ROLES, "DeepSpeed")
    order = ordered_axes(plan, "DeepSpeed")
    sizes = {roles[i]: plan.problem.axis_sizes[i] for i in order}
    if _SEQUENCE not in sizes:
        return Exported(_topology(plan, sizes))
    several = [role for role, size in sizes.items() if size > 1]
    if several not in (["data", _SEQUENCE], [_SEQUENCE], ["data"], []):
        rule = "DeepSpeed has a sequence axis beside data alone, and inside it"
        raise InputError(f"{plan.source}: ranks over {', '.join(several)}", rule, "plan it so")
    return Exported(_mesh_param(plan, sizes))


def _mesh_param(plan: PlacedPlan, sizes: dict[str, int]) -> str:
    value = f"({sizes.get('data', 1)}, {sizes[_SEQUENCE]})"
    return (
        f"# {comment_name(plan.source)}, written by p2smt: data_parallel, sequence_parallel of\n"
        "# deepspeed.initialize(.., mesh_param=mesh_param)\n"
        f"mesh_param = {value}\n"
    )


def _topology(plan: PlacedPlan, sizes: dict[str, int]) -> str:
    every = {**{role: 1 for role in ("pipe", "data") if role not in sizes}, **sizes}
    axes = ", ".join(f'"{role}"' for role in every)
    dims = ", ".join(map(str, every.values()))
    lines = [
        f'"""The process topology of {comment_name(plan.source)}, written by p2smt."""',
        "",
        "from deepspeed.runtime.pipe.topology import ProcessTopology",
        "",
        "",
        "def process_topology() -> ProcessTopology:",
        '    """For PipelineModule(.., topology=process_topology())."""',
        f"    return ProcessTopology(axes=[{axes}], dims=[{dims}])",
    ]
    return "\n".join(lines) + "\n"


# torch ``DeviceMesh``: the tensor of launched ranks, the names of its axes, and what makes it.
# ``torch.distributed.device_mesh`` of torch 2.13: ``init_device_mesh(device_type, shape,
# mesh_dim_names=..)`` lays ranks 0, 1, .. row-major over the axes, ``DeviceMesh(device_type,
# tensor, mesh_dim_names=..)`` takes any tensor, and is right only for one that increases along
# every axis (:mod:`p2smt.interop.meshes.tensor`).


def write_device_mesh(plan: PlacedPlan, path: str) -> Exported:
    """A Python function that makes the mesh; JSON with tensor and names if the path ends in .json.

    Of a plan of two matrices also the mesh of experts, over the same ranks.

    Raises:
        InputError: a tensor does not increase along every axis.
    """
    meshes = {"": plan, "expert_": plan.by_experts}
    tensors = {name: (one, increasing_ranks(one)) for name, one in meshes.items() if one}
    if os.path.splitext(path)[1].lower() == ".json":
        data: dict[str, Any] = {}
        for name, (one, tensor) in tensors.items():
            data[f"{name}mesh_dim_names"] = list(one.problem.axis_names)
            data[f"{name}mesh"] = tensor.tolist()
        return Exported(json.dumps(data) + "\n")
    return Exported(_module(plan, tensors))


def names_text(plan: PlacedPlan) -> str:
    """The names of the axes as a tuple."""
    names = ", ".join(f'"{name}"' for name in plan.problem.axis_names)
    return f"({names},)" if len(plan.problem.axes) == 1 else f"({names})"


def _module(plan: PlacedPlan, tensors: Mapping[str, tuple[PlacedPlan, IntArray]]) -> str:
    plain = {name: bool((np.diff(one.ravel()) == 1).all()) for name, (_, one) in tensors.items()}
    made = {"DeviceMesh", *("init_device_mesh" for one in plain.values() if one)}
    lines = [
        f'"""The device mesh of {comment_name(plan.source)}, written by p2smt."""',
        "",
        *([] if all(plain.values()) else ["import torch"]),
        f"from torch.distributed.device_mesh import {', '.join(sorted(made))}",
    ]
    for name, (one, tensor) in tensors.items():
        lines += _device_mesh(name or "device_", one, tensor, plain[name])
    return "\n".join(lines) + "\n"


def _device_mesh(name: str, plan: PlacedPlan, tensor: IntArray, plain: bool) -> list[str]:
    """The function that makes a mesh; ``plain``: of ranks 0, 1, .. row-major over the axes."""
    shape = ", ".join(map(str, tensor.shape)) + ("," if tensor.ndim == 1 else "")
    if plain:
        call, before = f"init_device_mesh(device_type, ({shape}), ", []
    else:
        call = "DeviceMesh(device_type, mesh, "
        before = [f"mesh = {tensor_text(tensor, 'torch.arange', 'torch.tensor', 'permute')}"]
    return [
        "",
        "",
        f'def {name}mesh(device_type: str = "cuda") -> DeviceMesh:',
        *(f"    {line}" for text in before for line in text.splitlines()),
        f"    return {call}mesh_dim_names={names_text(plan)})",
    ]


# JAX ``Mesh``: devices in the order of launched ranks, brought to their coordinates.
# ``jax.devices()`` of a job lists devices by process; sorted by process and number they are those
# of launched ranks 0, 1, .., with a process for each device or for each host.  ``Mesh`` takes them
# in any order.


def write_jax_mesh(plan: PlacedPlan, _path: str) -> Exported:
    """A Python function that makes the mesh, and of a plan of two matrices that of experts."""
    lines = [
        f'"""The mesh of {comment_name(plan.source)}, written by p2smt."""',
        "",
        "import jax",
        "import numpy as np",
        "from jax.sharding import Mesh",
    ]
    for name, one in (("mesh", plan), ("expert_mesh", plan.by_experts)):
        lines += [] if one is None else _jax_mesh(name, one)
    return Exported("\n".join(lines) + "\n", process_notes(plan))


def _jax_mesh(name: str, plan: PlacedPlan) -> list[str]:
    tensor = launched_ranks(plan)
    order = tensor_text(tensor, "np.arange", "np.array", "transpose")
    return [
        "",
        "",
        f"def {name}() -> Mesh:",
        "    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))",
        f"    if len(devices) != {tensor.size}:",
        f'        raise RuntimeError(f"made for {tensor.size} devices, not {{len(devices)}}")',
        *(f"    {line}" for line in f"ranks = {order}".splitlines()),
        f"    return Mesh(np.array(devices)[ranks], {names_text(plan)})",
    ]


# Megatron-LM: the order in which it numbers ranks, or the launch that its orders need.
# ``order`` of ``megatron.core.parallel_state.initialize_model_parallel`` names axes, the first
# varying fastest.  Its command line has two: ``tp-cp-ep-dp-pp`` and, with
# ``--use-tp-pp-dp-mapping``, ``tp-cp-ep-pp-dp``.  Experts: ``ep`` is no factor of the ranks beside
# ``dp``, but part of it: Megatron numbers ranks twice, for dense layers with dp as a whole (and
# cp), for experts with ep and what is left of dp (cp being part of it).  Both must give the same
# pipelines; it asserts that the order ends in pp, or the two sizes of dp agree, which with ep or cp
# they mostly do not.  A plan with ep beside cp has dp and ep as dense layers' dp, and dp and cp as
# that of experts: dp lies between the two.  Instances of the distributed optimizer are equal
# stretches of the ranks of dp and cp: copies of shards are the outer part of dp.  Sources:
# ``parallel_state.py`` (``RankGenerator``, ``initialize_model_parallel``),
# ``training/initialize.py``.


_COPIES = "copies"
TOKENS = ("tp", "cp", "ep", "dp", _COPIES, "pp")
"""Its axes in the order of its default, the fastest first, dp being shards and their copies."""
_MAPPING = ("tp", "cp", "ep", "pp", "dp", _COPIES)
_BESIDE_CONTEXT = ("tp", "cp", "dp", _COPIES, "ep", "pp")
_MEGATRON_ROLES = {
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "tp"),
    **dict.fromkeys(("cp", "context"), "cp"),
    **dict.fromkeys(("ep", "expert"), "ep"),
    **dict.fromkeys(("dp", "dps", "data", "fsdp"), "dp"),
    "dpr": _COPIES,
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pp"),
}
_MEGATRON_OPTIONS = {
    "tp": "--tensor-model-parallel-size",
    "cp": "--context-parallel-size",
    "ep": "--expert-model-parallel-size",
    "pp": "--pipeline-model-parallel-size",
    _COPIES: "--num-distributed-optimizer-instances",
}


def write_megatron(plan: PlacedPlan, _path: str) -> Exported:
    """The options of its command line; an order that the command line lacks as a line of Python.

    Raises:
        InputError: axes that it does not know, experts that it lays otherwise, or ranks that are
            launched in none of its orders: names the launch that they need.
    """
    roles = roles_of(plan, _MEGATRON_ROLES, "Megatron-LM")
    sizes = dict(zip(roles, plan.problem.axis_sizes, strict=True))
    several = [
        roles[i]
        for i in reversed(ordered_axes(plan, "Megatron-LM"))
        if plan.problem.axis_sizes[i] > 1
    ]
    _check_twice_numbered(plan, roles, sizes, several)
    lines = [
        f"{option} {sizes[role]}"
        for role, option in _MEGATRON_OPTIONS.items()
        if sizes.get(role, 1) > 1
    ]
    named = not _beside_context(sizes)
    if named and _fits(several, TOKENS):
        return Exported("\n".join(lines or [f"{_MEGATRON_OPTIONS['tp']} 1"]) + "\n")
    if named and _fits(several, _MAPPING):
        return Exported("\n".join([*lines, "--use-tp-pp-dp-mapping"]) + "\n")
    if _COPIES in several:
        rule = "Megatron-LM has copies of shards as the outer part of dp, in its usual orders"
        remedy = f"launch the ranks so: --launched {_launch(plan, roles)}"
        raise InputError(f"{plan.source}: axis dpr", rule, remedy)
    order = "-".join(token for token in _whole(several) if token != _COPIES)
    call = f'# initialize_model_parallel(.., order="{order}")'
    return Exported("\n".join([*lines, call]) + "\n", (_note(plan, roles, order),))


def _beside_context(sizes: Mapping[str, int]) -> bool:
    """Whether experts lie beside cp: its two orders count ranks of both from the same place."""
    return min(sizes.get("ep", 1), sizes.get("cp", 1)) > 1


def _fits(several: list[str], order: tuple[str, ...]) -> bool:
    """Whether these axes, the fastest first, are in this order."""
    return several == [token for token in order if token in several]


def _whole(several: list[str]) -> list[str]:
    """The order with the axes of one rank first; dp stands beside ep, which is part of it."""
    found = [token for token in TOKENS if token not in several] + several
    if "ep" in several and "dp" not in several:
        found.remove("dp")
        later = max(found.index("ep"), found.index("cp") if "cp" in several else 0)
        found.insert(later if "cp" in several else later + 1, "dp")
    return found


def _note(plan: PlacedPlan, roles: tuple[str, ...], order: str) -> str:
    lead = f"Megatron-LM's command line has no option for the order {order}: give it where "
    lead += "initialize_model_parallel is called"
    if _beside_context(dict(zip(roles, plan.problem.axis_sizes, strict=True))):
        return lead
    return f"{lead}, or launch the ranks in its usual one (--launched {_launch(plan, roles)})"


def _launch(plan: PlacedPlan, roles: tuple[str, ...]) -> str:
    """The axes of the plan, outermost first, in an order that Megatron has."""
    sizes = dict(zip(roles, plan.problem.axis_sizes, strict=True))
    order = _BESIDE_CONTEXT if _beside_context(sizes) else TOKENS
    usual = sorted(range(len(roles)), key=lambda i: -order.index(roles[i]))
    return ",".join(plan.problem.axis_names[i] for i in usual)


def _check_twice_numbered(
    plan: PlacedPlan, roles: tuple[str, ...], sizes: dict[str, int], several: list[str]
) -> None:
    """What Megatron asserts of orders, and that both its meshes have the groups of the plan."""
    remedy = f"launch the ranks so: --launched {_launch(plan, roles)}"
    if sizes.get("ep", 1) > 1 and not _side_by_side(several):
        if _beside_context(sizes):
            rule = "Megatron-LM's experts lie over dp and cp, so ranks of dp lie between ep and cp"
        else:
            rule = "Megatron-LM's experts are part of dp, so ranks of dp and ep lie side by side"
        raise InputError(f"{plan.source}: axis ep", rule, remedy)
    same_dp = sizes.get("ep", 1) == sizes.get("cp", 1)
    if not same_dp and "pp" in several and several[-1] != "pp":
        rule = "with ep or cp, Megatron-LM takes only orders that end in pp (pp outermost)"
        raise InputError(f"{plan.source}: axis pp", rule, remedy)


def _side_by_side(several: list[str]) -> bool:
    """Whether ep, dp and cp, in this order or its reverse, are one stretch of ranks."""
    found = [token for token in several if token in ("ep", "dp", "cp")]
    start = several.index(found[0])
    between = len(found) < 3 or found[1] == "dp"
    return between and several[start : start + len(found)] == found


# TorchTitan: the degrees of parallelism, all that it takes.
# It numbers ranks row-major over pp, dp_replicate, dp_shard, cp, tp, in that order, whatever the
# degrees.  Expert parallelism takes the innermost ranks of dp_shard, cp and tp together.  Source:
# ``torchtitan/distributed/parallel_dims.py``; options of ``[parallelism]``.


ORDER = ("pp", "dp_replicate", "dp_shard", "ep", "cp", "tp")
"""Its axes, outermost first; expert parallelism is the inner part of dp_shard."""

_TITAN_ROLES = {
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pp"),
    **dict.fromkeys(("dp_replicate", "dpr", "replicate", "hsdp"), "dp_replicate"),
    **dict.fromkeys(("dp", "dp_shard", "dps", "fsdp", "data"), "dp_shard"),
    **dict.fromkeys(("ep", "expert"), "ep"),
    **dict.fromkeys(("cp", "context"), "cp"),
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "tp"),
}


def write_torchtitan(plan: PlacedPlan, _path: str) -> Exported:
    """The degrees of its command line, one a line; of a training those of its strategy.

    Raises:
        InputError: axes that it does not know, or ranks that are not launched in its order: names
            the launch that they need.  Of a training: it cannot run the strategy.
    """
    if isinstance(plan.plan, PlanModel) and plan.plan.training is not None:
        exported_options(TORCHTITAN, plan)
        strategy = run_of(plan.plan.training, plan.source).strategy
        return Exported("\n".join(degree_lines(strategy_degrees(strategy))) + "\n")
    roles = roles_of(plan, _TITAN_ROLES, "TorchTitan")
    sizes = dict(zip(roles, plan.problem.axis_sizes, strict=True))
    _check_experts(plan, sizes)
    wanted = sorted(range(len(roles)), key=lambda i: ORDER.index(roles[i]))
    several = [i for i in ordered_axes(plan, "TorchTitan") if plan.problem.axis_sizes[i] > 1]
    if several != [i for i in wanted if plan.problem.axis_sizes[i] > 1]:
        names = ",".join(plan.problem.axis_names[i] for i in wanted)
        rule = "TorchTitan numbers ranks over pp, dp_replicate, dp_shard, cp, tp and nothing else"
        remedy = f"launch them so: --launched {names}, here and for the launcher's file"
        raise InputError(f"{plan.source}: its launched ranks", rule, remedy)
    experts = sizes.get("ep", 1)
    sizes["dp_shard"] = sizes.get("dp_shard", 1) * experts
    return Exported("\n".join(degree_lines(degree_options(sizes))) + "\n")


def _check_experts(plan: PlacedPlan, sizes: dict[str, int]) -> None:
    if sizes.get("ep", 1) > 1 and sizes.get("cp", 1) * sizes.get("tp", 1) > 1:
        rule = "TorchTitan lays experts over the ranks of cp and tp as well, not beside them"
        raise InputError(
            f"{plan.source}: axis ep beside cp or tp", rule, "plan without one of them"
        )
