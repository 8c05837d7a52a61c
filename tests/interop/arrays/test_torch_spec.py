"""DTensor's types are read and written as torch itself understands them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor import Partial, Replicate, Shard  # noqa: E402
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # noqa: E402
from torch.distributed.tensor._utils import (  # noqa: E402
    _compute_local_shape_and_global_offset,
)
from torch.distributed.tensor.placement_types import (  # noqa: E402
    Placement,
    _MaskPartial,
    _StridedShard,
)

from p2smt.errors import InputError  # noqa: E402
from p2smt.interop.arrays.torch_spec import (  # noqa: E402
    array_type_of_placements,
    array_type_of_spec,
    mesh_of_torch,
    placements_of,
    spec_of,
    torch_dtype,
)
from p2smt.resharding.types import (  # noqa: E402  # noqa: E402
    ArrayType,
    ElementType,
    Mesh,
    Uneven,
    layout_text,
    parse_layout,
    parse_mesh,
)
from tests.strategies.layouts import array_types  # noqa: E402

_MASK = _MaskPartial("sum", torch.Size((8,)), 0)  # type: ignore[no-untyped-call]


def device_mesh(mesh: Mesh, names: bool = True) -> DeviceMesh:
    """A DeviceMesh of one process without communication, as rank of the first position."""
    return DeviceMesh(
        "cpu",
        torch.tensor(mesh.devices).view(mesh.sizes),
        mesh_dim_names=tuple(axis.name for axis in mesh.axes) if names else None,
        _init_backend=False,
        _rank=mesh.devices[0],
    )


def kind_of(mesh: str, shape: tuple[int, ...], layout: str) -> ArrayType:
    made = parse_mesh(mesh)
    return ArrayType(made, shape, ElementType.F32, parse_layout(layout, made), Uneven.NESTED)


@settings(max_examples=60, deadline=None)
@given(array_types())
def test_placements_are_read_back(kind: ArrayType) -> None:
    placements = placements_of(kind)
    dtype = torch_dtype(kind.element)
    found = array_type_of_placements(kind.mesh, placements, kind.shape, dtype)
    # axes of one device split nothing: where they stand is not said by a split factor
    if 1 not in kind.mesh.sizes:
        assert found == kind
    assert placements_of(found) == placements


@settings(max_examples=60, deadline=None)
@given(array_types())
def test_specifications_are_read_back(kind: ArrayType) -> None:
    mesh = device_mesh(kind.mesh)
    assert mesh_of_torch(mesh) == kind.mesh
    assert array_type_of_spec(spec_of(kind, mesh)) == kind


@settings(max_examples=60, deadline=None)
@given(array_types())
def test_torch_reads_strided_shards_as_the_same_order(kind: ArrayType) -> None:
    mesh = device_mesh(kind.mesh)
    spec = spec_of(kind, mesh)
    strided = placements_of(kind)
    convert = DTensorSpec._convert_shard_order_to_StridedShard
    assert strided == convert(spec.shard_order, spec.placements, mesh)
    plain, order = DTensorSpec._normalize_placements_into_shard_order(strided, mesh)
    assert plain == spec.placements
    if 1 not in kind.mesh.sizes:
        assert order == spec.shard_order


def test_locals_lie_where_torch_has_them() -> None:
    kind = kind_of("dp=2,tp=3", (12, 18), "S(dp,tp),R")
    for place, device in enumerate(kind.mesh.devices):
        at = [place // 3, place % 3]
        shape, offset = _compute_local_shape_and_global_offset(
            kind.shape, kind.mesh.sizes, at, placements_of(kind)
        )
        assert device == place
        assert (tuple(shape), tuple(offset)) == ((2, 18), (place * 2, 0))


def test_strided_shard_of_the_documentation() -> None:
    mesh = parse_mesh("a=4,b=2")
    placements = [_StridedShard(0, split_factor=2), Shard(0)]
    found = array_type_of_placements(mesh, placements, (16, 24), torch.float32)
    assert layout_text(found.layout, mesh) == "S(b,a),R"


def test_three_axes_of_torchs_docstring() -> None:
    mesh = parse_mesh("a=4,b=3,c=2")
    strided = _StridedShard(0, split_factor=2)
    found = array_type_of_placements(mesh, [strided, strided, Shard(0)], (24,), torch.float32)
    assert layout_text(found.layout, mesh) == "S(c,a,b)"


def test_negative_dimensions_and_partials() -> None:
    mesh = parse_mesh("a=2,b=2")
    found = array_type_of_placements(mesh, [Shard(-1), Partial("max")], (4, 4), torch.bfloat16)
    assert layout_text(found.layout, mesh) == "R,S(a);P(b,max)"
    assert found.element is ElementType.BF16


def test_a_mesh_without_names_and_in_another_order() -> None:
    mesh = Mesh.of([("dp", 2), ("tp", 2)], [3, 1, 2, 0])
    assert mesh_of_torch(device_mesh(mesh)) == mesh
    assert mesh_of_torch(device_mesh(mesh, names=False)).axes[1].name == "dim1"
    assert mesh_of_torch(device_mesh(mesh, names=False)).devices == mesh.devices


def test_uneven_dimensions_are_nested() -> None:
    mesh = parse_mesh("a=2,b=2")
    found = array_type_of_placements(mesh, [Shard(0), Shard(0)], (5,), torch.float32)
    assert found.uneven is Uneven.NESTED


@pytest.mark.parametrize(
    ("placements", "shape", "message"),
    [
        ([Shard(0)], (8,), "1 placements: the mesh has 2 axes"),
        ([Shard(2), Replicate()], (8, 8), "the array has 2 dimensions"),
        ([Shard(-3), Replicate()], (8, 8), "the array has 2 dimensions"),
        ([_StridedShard(0, split_factor=3), Shard(0)], (24,), "product of no axes"),
        ([Replicate(), _StridedShard(0, split_factor=2)], (8,), "product of no axes"),
        ([_StridedShard(0, split_factor=2), Shard(0)], (9,), "into equal shards"),
        ([Partial("sum"), Partial("max")], (8,), "partial values by max and sum"),
        ([Partial("bor"), Replicate()], (8,), "reduction 'bor'"),
        ([_MASK, Replicate()], (8,), "neither Shard nor"),
    ],
)
def test_what_it_cannot_say_is_refused(
    placements: list[Placement], shape: tuple[int, ...], message: str
) -> None:
    mesh = parse_mesh("a=4,b=2")
    with pytest.raises(InputError, match=message):
        array_type_of_placements(mesh, placements, shape, torch.float32)


def test_averages_of_whole_numbers_and_unknown_dtypes_are_refused() -> None:
    mesh = parse_mesh("a=4")
    with pytest.raises(InputError, match="average"):
        array_type_of_placements(mesh, [Partial("avg")], (8,), torch.int32)
    with pytest.raises(InputError, match="complex64"):
        array_type_of_placements(mesh, [Replicate()], (8,), torch.complex64)


def test_specifications_without_shape_or_of_views_are_refused() -> None:
    mesh = device_mesh(parse_mesh("a=4,b=2"))
    with pytest.raises(InputError, match="says no shape"):
        array_type_of_spec(DTensorSpec(mesh, (Shard(0), Replicate())))
    meta = TensorMeta(torch.Size((16,)), (1,), torch.float32)
    strided = (_StridedShard(0, split_factor=2), Shard(0))
    view = DTensorSpec(mesh, strided, tensor_meta=meta, use_strided_shard_as_shard_order=False)
    with pytest.raises(InputError, match="is a view's"):
        array_type_of_spec(view)
    order = DTensorSpec(mesh, strided, tensor_meta=meta)
    assert layout_text(array_type_of_spec(order).layout, mesh_of_torch(mesh)) == "S(b,a)"


def test_sub_axes_and_other_meshes_are_refused() -> None:
    kind = kind_of("a=4,b=2", (8, 8), "S(a:(2)2),R")
    with pytest.raises(InputError, match="whole mesh axes only"):
        placements_of(kind)
    whole = kind_of("a=4,b=2", (8, 8), "S(a),R")
    other = Mesh.of([("a", 4), ("b", 2)], [*range(1, 8), 0])
    for mesh in (other, parse_mesh("a=2,b=4")):
        with pytest.raises(InputError, match="a DeviceMesh of"):
            spec_of(whole, device_mesh(mesh))
