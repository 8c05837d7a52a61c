"""DTensor's own planners (torch 2.13), asked without any process group.

``greedy`` is what ``redistribute`` uses; ``graph`` (``use_min_cost_redistribution_plan``) is
Dijkstra by torch's costs, which know how many devices a host has and no memory.  Where flattened
meshes are registered, torch merges neighbours of a plan into one collective over them
(``_optimize_transform_infos``).  All are private functions of torch: this file is for one version.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import torch
from torch.distributed import device_mesh
from torch.distributed._mesh_layout import _MeshLayout
from torch.distributed.device_mesh import DeviceMesh, _mesh_resources
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor import _redistribute as planner
from torch.distributed.tensor._collective_utils import MeshTopoInfo
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._redistribute import (
    _FlattenedTransformInfo,
    _TransformInfo,
)
from torch.distributed.tensor.placement_types import Placement

from p2smt.errors import InputError
from p2smt.interop.arrays.peers.peer_replay import AxisMove
from p2smt.interop.arrays.torch_spec import spec_of
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ArrayType, Mesh

VERSION = "2.13"
"""The version of torch whose private functions these are."""


class TorchPlanner(Enum):
    """Which of DTensor's planners."""

    GREEDY = "greedy"
    GRAPH = "graph"


def torch_moves(
    source: ArrayType,
    target: ArrayType,
    which: TorchPlanner,
    *,
    devices_per_host: int,
    flattened: bool = False,
) -> tuple[AxisMove, ...]:
    """What DTensor would do.  ``flattened``: with every flattened mesh registered.

    Shards in another order than the axes' are planned by the graph whatever is asked.

    Raises:
        InputError: another version of torch is installed, or DTensor has no such type: sub-axes,
            or a destination with the devices in another order.
    """
    if not torch.__version__.startswith(f"{VERSION}."):
        raise InputError(f"torch {torch.__version__}", f"its planners are read in {VERSION} only")
    if source.mesh.devices != target.mesh.devices:
        raise InputError("a destination with devices in another order", "DTensor has none")
    mesh = _device_mesh(source.mesh, flattened)
    ends = spec_of(source, mesh), spec_of(target, mesh)
    with _hosts_of(devices_per_host):
        infos = planner._gen_transform_infos_non_cached(*ends, which is TorchPlanner.GRAPH)
        merged = _merged(infos, mesh, ends)
    return tuple(_move(info) for info in merged)


def _device_mesh(mesh: Mesh, flattened: bool) -> DeviceMesh:
    """A mesh as the first rank sees it, without communication, and its flattened ones."""
    made = DeviceMesh(
        "cpu",
        torch.tensor(mesh.devices).view(mesh.sizes),
        mesh_dim_names=tuple(axis.name for axis in mesh.axes),
        _init_backend=False,
        _rank=mesh.devices[0],
    )
    if flattened:
        with _as_rank(mesh.devices[0]):
            for count in range(2, len(mesh.axes) + 1):
                for axes in itertools.combinations(mesh.axes, count):
                    _register(made, tuple(axis.name for axis in axes))
    return made


@contextmanager
def _as_rank(rank: int) -> Iterator[None]:
    """Meshes are made as this rank makes them, who asks no process group for it."""
    names = vars(device_mesh)
    asked = names["get_rank"]
    names["get_rank"] = lambda: rank
    try:
        yield
    finally:
        names["get_rank"] = asked


def _register(mesh: DeviceMesh, names: tuple[str, ...]) -> None:
    """``mesh[names]._flatten()``, which would want a process group."""
    layout = _MeshLayout([mesh._get_slice_mesh_layout(names).collapse()])
    mesh._flatten_mapping["_".join(names)] = DeviceMesh(
        mesh.device_type,
        _layout=layout,
        _rank_map=mesh._rank_map,
        mesh_dim_names=("_".join(names),),
        _root_mesh=mesh,
        _init_backend=False,
        _rank=int(mesh._rank_map[0]),
    )


@contextmanager
def _hosts_of(devices: int) -> Iterator[None]:
    """torch's costs take so many devices for a host, not those of this machine; caches are empty.

    Its warnings that a plan would be better with flattened meshes are kept back, for later ones.
    """
    own, level = vars(_mesh_resources), planner.logger.level
    warned = set(planner._warned_flatten_issues)
    MeshTopoInfo.build_from_mesh.cache_clear()
    own["num_devices_per_host"] = lambda _: devices
    planner.logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        del own["num_devices_per_host"]
        planner.logger.setLevel(level)
        planner._warned_flatten_issues.intersection_update(warned)
        MeshTopoInfo.build_from_mesh.cache_clear()
        planner.clear_redistribute_planner_cache()


def _merged(
    infos: list[_TransformInfo], mesh: DeviceMesh, ends: tuple[DTensorSpec, DTensorSpec]
) -> list[_TransformInfo | _FlattenedTransformInfo]:
    source, target = ends
    return planner._optimize_transform_infos(infos, mesh, source.placements, target.placements)


def _move(info: _TransformInfo | _FlattenedTransformInfo) -> AxisMove:
    old, new = info.src_dst_placements
    axes: tuple[int, ...] = (info.mesh_dim,)
    if isinstance(info, _FlattenedTransformInfo):
        axes = info.original_mesh_dims
    text = f"{old} to {new} on mesh dimension {' and '.join(map(str, axes))}"
    return AxisMove(_kind(old, new), axes, _dim(old), _dim(new), text)


def _kind(old: Placement, new: Placement) -> StepKind | None:
    match old, new:
        case Replicate(), Shard():
            return StepKind.SLICE
        case Shard(), Replicate():
            return StepKind.ALL_GATHER
        case Shard(), Shard():
            return StepKind.ALL_TO_ALL
        case Partial(), Replicate():
            return StepKind.ALL_REDUCE
        case Partial(), Shard():
            return StepKind.REDUCE_SCATTER
        case _:
            return None


def _dim(placement: Placement) -> int | None:
    return placement.dim if isinstance(placement, Shard) else None
