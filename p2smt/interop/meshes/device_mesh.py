"""torch ``DeviceMesh``: the tensor of launched ranks, the names of its axes, and what makes it.

``torch.distributed.device_mesh`` of torch 2.13: ``init_device_mesh(device_type, shape,
mesh_dim_names=..)`` lays ranks 0, 1, .. row-major over the axes, ``DeviceMesh(device_type, tensor,
mesh_dim_names=..)`` takes any tensor, and is right only for one that increases along every axis
(:mod:`p2smt.interop.meshes.tensor`).
"""

from __future__ import annotations

import json
import os

import numpy as np

from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.arrays import comment_name, tensor_text
from p2smt.interop.meshes.tensor import increasing_ranks
from p2smt.parallelism.placement import IntArray


def write_device_mesh(plan: PlacedPlan, path: str) -> Exported:
    """A Python function that makes the mesh; JSON with tensor and names if the path ends in .json.

    Raises:
        InputError: the tensor does not increase along every axis.
    """
    tensor = increasing_ranks(plan)
    if os.path.splitext(path)[1].lower() == ".json":
        return Exported(_data(plan, tensor))
    return Exported(_module(plan, tensor))


def _data(plan: PlacedPlan, tensor: IntArray) -> str:
    names = json.dumps(list(plan.problem.axis_names))
    return f'{{"mesh_dim_names": {names}, "mesh": {json.dumps(tensor.tolist())}}}\n'


def names_text(plan: PlacedPlan) -> str:
    """The names of the axes as a tuple."""
    names = ", ".join(f'"{name}"' for name in plan.problem.axis_names)
    return f"({names},)" if len(plan.problem.axes) == 1 else f"({names})"


def _module(plan: PlacedPlan, tensor: IntArray) -> str:
    shape = ", ".join(map(str, tensor.shape)) + ("," if tensor.ndim == 1 else "")
    plain = bool((np.diff(tensor.ravel()) == 1).all())
    if plain:
        module, call = "init_device_mesh", f"init_device_mesh(device_type, ({shape}), "
        before = []
    else:
        module, call = "DeviceMesh", "DeviceMesh(device_type, mesh, "
        before = [f"mesh = {tensor_text(tensor, 'torch.arange', 'torch.tensor', 'permute')}"]
    lines = [
        f'"""The device mesh of {comment_name(plan.source)}, written by p2smt."""',
        "",
        *([] if plain else ["import torch"]),
        f"from torch.distributed.device_mesh import {', '.join(sorted({'DeviceMesh', module}))}",
        "",
        "",
        'def device_mesh(device_type: str = "cuda") -> DeviceMesh:',
        *(f"    {line}" for text in before for line in text.splitlines()),
        f"    return {call}mesh_dim_names={names_text(plan)})",
    ]
    return "\n".join(lines) + "\n"
