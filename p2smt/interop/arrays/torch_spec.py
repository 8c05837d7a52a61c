"""DTensor's types: a ``DeviceMesh``, placements and the order of shards, read and written.

DTensor says a layout per mesh dimension, and where several shard one tensor dimension, their order
beside it (``shard_order``, major first; ascending by default) or inside the placements: a
``_StridedShard(dim, split_factor)`` comes after mesh dimensions of its right side whose sizes'
product is ``split_factor``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard

from p2smt.errors import InputError
from p2smt.resharding.types import ArrayType, ElementType, Layout, Mesh, ReduceOp, SubAxis, Uneven

_Orders = dict[int, list[int]]
"""Per tensor dimension the mesh dimensions that shard it, major first."""


def torch_dtype(element: ElementType) -> torch.dtype:
    """torch's name of an element type."""
    found: torch.dtype = getattr(torch, element.long_name)
    return found


def mesh_of_torch(mesh: DeviceMesh) -> Mesh:
    """The mesh of a ``DeviceMesh``; dimensions without names are dim0, dim1 and so on."""
    names = mesh.mesh_dim_names or tuple(f"dim{place}" for place in range(mesh.ndim))
    sizes = [int(size) for size in mesh.mesh.shape]
    devices = [int(rank) for rank in mesh.mesh.flatten().tolist()]
    return Mesh.of(list(zip(names, sizes, strict=True)), devices)


def array_type_of_spec(spec: DTensorSpec, uneven: Uneven = Uneven.NESTED) -> ArrayType:
    """The type of a DTensor's ``_spec``.  Uneven dimensions are chunks of chunks in DTensor.

    Raises:
        InputError: it has no shape yet, or p2smt has no such placement (as in
            :func:`array_type_of_placements`).
    """
    meta = spec.tensor_meta
    if meta is None:
        raise InputError("a DTensorSpec without tensor_meta", "says no shape", "give it one")
    strided = any(isinstance(placement, _StridedShard) for placement in spec.placements)
    if strided and not spec.use_strided_shard_as_shard_order:
        rule = "is a view's there, and no order of shards"
        raise InputError("_StridedShard", rule, "redistribute it to Shard first")
    shape, mesh = tuple(meta.shape), mesh_of_torch(spec.mesh)
    if strided:
        return array_type_of_placements(mesh, spec.placements, shape, meta.dtype, uneven)
    orders = {entry.tensor_dim: list(entry.mesh_dims) for entry in spec.shard_order}
    return _array_type(mesh, spec.placements, orders, shape, meta.dtype, uneven)


def array_type_of_placements(
    mesh: Mesh,
    placements: Sequence[Placement],
    shape: Sequence[int],
    dtype: torch.dtype,
    uneven: Uneven = Uneven.NESTED,
) -> ArrayType:
    """The type that placements, one per mesh axis, say; ``_StridedShard`` among them.

    Raises:
        InputError: of another number of placements than axes; a ``split_factor`` that is the
            product of no axes, or on a dimension that does not divide; several reductions, or one
            that p2smt does not have.
    """
    if len(placements) != len(mesh.axes):
        rule = f"the mesh has {len(mesh.axes)} axes"
        raise InputError(f"{len(placements)} placements", rule, "give one for each")
    orders = _decoded(mesh, placements, len(shape))
    found = _array_type(mesh, placements, orders, tuple(shape), dtype, uneven)
    for placement in placements:
        if isinstance(placement, _StridedShard):
            dim = placement.dim % len(shape)
            if shape[dim] % found.shards(dim):
                given = f"{placement} of dimension {dim}, of size {shape[dim]}"
                raise InputError(given, "does not divide into equal shards", "use Shard")
    return found


def _array_type(
    mesh: Mesh,
    placements: Sequence[Placement],
    orders: _Orders,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    uneven: Uneven,
) -> ArrayType:
    whole = [SubAxis(axis, 1, size) for axis, size in enumerate(mesh.sizes)]
    dims = tuple(tuple(whole[axis] for axis in orders.get(dim, ())) for dim in range(len(shape)))
    partial, op = _partials(mesh, placements)
    layout = Layout(dims, tuple(whole[axis] for axis in partial), op)
    element = ElementType.parse(str(dtype).removeprefix("torch."))
    return ArrayType(mesh, shape, element, layout, uneven)


def _decoded(mesh: Mesh, placements: Sequence[Placement], dims: int) -> _Orders:
    """The order of shards that placements say: each is put in from the last axis to the first."""
    orders: _Orders = {}
    for axis in reversed(range(len(placements))):
        placement = placements[axis]
        if isinstance(placement, Shard | _StridedShard):
            order = orders.setdefault(_dimension(placement, dims), [])
            order.insert(_place(mesh, placement, order), axis)
    return orders


def _dimension(placement: Shard | _StridedShard, dims: int) -> int:
    if not -dims <= placement.dim < dims:
        raise InputError(f"{placement}", f"the array has {dims} dimensions")
    return placement.dim % dims


def _place(mesh: Mesh, placement: Shard | _StridedShard, order: Sequence[int]) -> int:
    """After how many of the axes in ``order`` it shards: their product is its split factor."""
    factor = placement.split_factor if isinstance(placement, _StridedShard) else 1
    for place in range(len(order) + 1):
        if math.prod(mesh.sizes[axis] for axis in order[:place]) == factor:
            return place
    rule = f"its split factor {factor} is the product of no axes that shard before it"
    raise InputError(f"{placement}", rule, "redistribute it to Shard first")


def _partials(mesh: Mesh, placements: Sequence[Placement]) -> tuple[list[int], ReduceOp]:
    """The partial axes and their one reduction."""
    axes, ops = [], []
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard | _StridedShard | Replicate):
            continue
        if type(placement) is not Partial:
            rule = "is neither Shard nor Replicate nor Partial"
            raise InputError(f"placement {placement} of {mesh.axes[axis].name}", rule)
        axes.append(axis)
        ops.append(ReduceOp.parse(placement.reduce_op))
    if len(set(ops)) > 1:
        names = " and ".join(sorted({op.value for op in ops}))
        rule = "partial values of one array have one reduction"
        raise InputError(f"partial values by {names}", rule, "reduce one of them first")
    return axes, ops[0] if ops else ReduceOp.SUM


def placements_of(kind: ArrayType) -> tuple[Placement, ...]:
    """One placement per mesh axis; ``_StridedShard`` where shards are not in the axes' order.

    Raises:
        InputError: a part of an axis shards or is partial: DTensor has whole axes only.
    """
    found = list(_plain(kind))
    for dim, order in enumerate(_orders(kind)):
        for place, axis in enumerate(order):
            before = [kind.mesh.sizes[other] for other in order[:place] if other > axis]
            if (factor := math.prod(before)) > 1:
                found[axis] = _StridedShard(dim, split_factor=factor)
    return tuple(found)


def spec_of(kind: ArrayType, mesh: DeviceMesh) -> DTensorSpec:
    """DTensor's specification of it, contiguous, with ``shard_order`` and no ``_StridedShard``.

    Raises:
        InputError: the ``DeviceMesh`` has other axes or ranks; or as :func:`placements_of`.
    """
    own = mesh_of_torch(mesh)
    if own.sizes != kind.mesh.sizes or own.devices != kind.mesh.devices:
        rule = "must have the sizes and the ranks of the array's mesh"
        raise InputError(f"a DeviceMesh of {own.sizes}", rule, "build it from these")
    strides = tuple(math.prod(kind.shape[dim + 1 :]) for dim in range(len(kind.shape)))
    meta = TensorMeta(torch.Size(kind.shape), strides, torch_dtype(kind.element))
    entries = enumerate(_orders(kind))
    order = tuple(ShardOrderEntry(dim, tuple(axes)) for dim, axes in entries if axes)
    return DTensorSpec(mesh, _plain(kind), tensor_meta=meta, shard_order=order)


def _plain(kind: ArrayType) -> tuple[Placement, ...]:
    found: list[Placement] = [Replicate() for _ in kind.mesh.axes]
    for dim, order in enumerate(_orders(kind)):
        for axis in order:
            found[axis] = Shard(dim)
    for part in kind.layout.partial:
        found[_whole(kind, part)] = Partial(kind.layout.op.value)
    return tuple(found)


def _orders(kind: ArrayType) -> list[list[int]]:
    return [[_whole(kind, part) for part in dim] for dim in kind.layout.dims]


def _whole(kind: ArrayType, part: SubAxis) -> int:
    if part.before != 1 or part.size != kind.mesh.sizes[part.axis]:
        rule = "DTensor shards by whole mesh axes only"
        raise InputError(
            f"sub-axis {part.text(kind.mesh)}", rule, "make each part an axis of the mesh"
        )
    return part.axis
