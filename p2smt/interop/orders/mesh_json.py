"""Lists of whole numbers in JSON: rank lists, matrices, meshes; and meshes with named dimensions.

[0, 2, 1, 3]                                          the launched rank of each rank
[[0, 1], [2, 3]]                                      a mesh (it holds 0), or a matrix (it does not)
{"mesh": [[0, 1], [2, 3]], "mesh_dim_names": ["dp", "tp"]}    the fields of torch's DeviceMesh
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.parallelism.placement import MAX_AXES, IntArray

_EXAMPLE = "write [[0,1],[2,3]], or add mesh_dim_names"


def array_of(value: object, source: str) -> IntArray:
    """The array that nested lists of whole numbers are.

    Raises:
        InputError: it is ragged, empty, too deep or too large, or holds something else.
    """
    shape: list[int] = []
    level: object = value
    while isinstance(level, list):
        shape.append(len(level))
        if len(shape) > MAX_AXES or not level:
            rule = f"must be lists of 1 to {MAX_AXES} levels, none empty"
            raise InputError(source, rule, _EXAMPLE)
        level = level[0]
    flat: list[object] = value if isinstance(value, list) else [value]
    for size in shape[1:]:
        if any(not isinstance(row, list) or len(row) != size for row in flat):
            raise InputError(source, "has rows of different lengths", _EXAMPLE)
        flat = [entry for row in flat if isinstance(row, list) for entry in row]
    numbers = [entry for entry in flat if type(entry) is int and 0 <= entry < MAX_DEVICES]
    if not shape or len(numbers) != len(flat) or len(flat) > MAX_DEVICES:
        rule = f"must hold whole numbers from 0 to {MAX_DEVICES - 1} alone"
        raise InputError(source, rule, _EXAMPLE)
    return np.array(numbers, dtype=np.int64).reshape(shape)


def named_mesh(data: dict[str, object], axes: Sequence[str], source: str) -> IntArray:
    """The mesh of an object with ``mesh`` and ``mesh_dim_names``, its dimensions in axes' order.

    Dimensions of size 1 may be left out, or have names that are no axes.

    Raises:
        InputError: a key is missing, or the names are not those of the axes.
    """
    names, mesh = data.get("mesh_dim_names"), array_of(data.get("mesh"), f"{source}: mesh")
    if names is None:
        return mesh
    if not isinstance(names, list) or any(not isinstance(name, str) for name in names):
        raise InputError(f"{source}: mesh_dim_names", "must be a list of names", _EXAMPLE)
    if len(names) != mesh.ndim or len(set(names)) != len(names):
        rule = f"must name each of {mesh.ndim} dimensions once"
        raise InputError(f"{source}: mesh_dim_names", rule, _EXAMPLE)
    kept = [i for i, name in enumerate(names) if name in axes or mesh.shape[i] > 1]
    if unknown := [names[i] for i in kept if names[i] not in axes]:
        rule = f"{unknown[0][:40]!r} is no axis"
        raise InputError(f"{source}: mesh_dim_names", rule, f"the axes are {', '.join(axes)}")
    mesh = mesh.reshape([mesh.shape[i] for i in kept])
    order = [kept_name for kept_name in axes if kept_name in names]
    at = [[names[i] for i in kept].index(name) for name in order]
    missing = [axes.index(name) for name in axes if name not in names]
    return np.expand_dims(mesh.transpose(at), missing) if missing else mesh.transpose(at)
