"""A layout by its text: the table of frameworks, or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p2smt.errors import InputError, did_you_mean
from p2smt.interop.arrays.notations import read_layout
from p2smt.interop.weights.layout_text import MAX_DEVICES, WeightsText
from p2smt.interop.weights.megatron import MEGATRON_OPTIONS, STILL, megatron_layout
from p2smt.interop.weights.models import WeightModel, read_weight_model
from p2smt.interop.weights.ranks import HeldParts, layout_by
from p2smt.interop.weights.serving import (
    SGLANG_OPTIONS,
    VLLM_OPTIONS,
    sglang_layout,
    vllm_layout,
)
from p2smt.interop.weights.weight_tensors import Weight, weights_of
from p2smt.resharding.index_maps import blocks_of_type, intervals
from p2smt.resharding.types import ArrayType, ElementType, Layout, Mesh, Uneven, parse_mesh
from p2smt.transfer.layout_file import read_layout_file
from p2smt.transfer.layouts import IndexBox, WeightLayout

FILE = ".json"


# FSDP2, HSDP, DTensor and JAX: one layout over a mesh for all weights.
#
# - ``fsdp:dp=32``: rows in chunks, rounded up, so that the last ranks may have less or nothing:
#   torch 2.13, ``torch/distributed/fsdp/_fully_shard/_fsdp_param.py`` (``Shard(0)``) and
#   ``_fsdp_common.py`` (``_chunk_with_empty``);
# - ``hsdp:dp=16,replicas=2``: the same inside each of several replicas, which are the outer
#   dimension of the mesh (``_fully_shard.py`` 175: dimension 1 shards, 0 replicates);
# - ``dtensor:a=8,b=4:Shard(0),Shard(1)``: a ``DeviceMesh`` and one placement for each dimension of
#   it; chunks of chunks where several shard one (``torch/distributed/tensor/placement_types.py``,
#   ``Shard._split_tensor``);
# - ``jax:a=4,b=2:P(('a','b'))``: a ``NamedSharding``, whose parts must be equal (jax 0.10,
#   ``jax/_src/sharding.py`` 72).
#
# Ranks are row-major over the mesh.  A tensor of fewer dimensions than the layout has takes the
# first entries, and is replicated over what would shard the others.  Tests hold these against torch
# and jax.


FSDP_OPTIONS = ("dp",)
HSDP_OPTIONS = ("dp", "replicas")
_DIMENSIONS = 2
"""Of a weight at most."""


def fsdp_layout(given: WeightsText, model: WeightModel) -> WeightLayout:
    """Who holds what where ``fully_shard`` shards over one axis, or in each of several replicas.

    Raises:
        InputError: a degree is no number, or there are too many devices.
    """
    replicas, dp = given.degree("replicas"), given.degree("dp")
    if replicas * dp > MAX_DEVICES:
        raise given.error(f"{replicas * dp} devices", f"must be at most {MAX_DEVICES}")
    mesh = Mesh.of([("replicas", replicas), ("dp", dp)])
    layout, _ = read_layout("S(dp),R", mesh, _DIMENSIONS)
    return _over(model, mesh, layout, Uneven.NESTED)


def dtensor_layout(text: str, model: WeightModel) -> WeightLayout:
    """Who holds what as DTensors of one mesh and placements.

    Raises:
        InputError: mesh or placements are malformed, or say partial values.
    """
    return _over(model, *_parsed(text, "dtensor:a=8,b=4:Shard(0),Shard(1)"), Uneven.NESTED)


def jax_layout(text: str, model: WeightModel) -> WeightLayout:
    """Who holds what as arrays of one ``NamedSharding``.

    Raises:
        InputError: mesh or spec are malformed, or a dimension does not divide.
    """
    return _over(model, *_parsed(text, "jax:a=4,b=2:P(('a','b'))"), Uneven.REFUSE)


def _parsed(text: str, form: str) -> tuple[Mesh, Layout]:
    _, _, rest = text.partition(":")
    axes, sign, spec = (part.strip() for part in rest.partition(":"))
    if not (axes and sign and spec):
        rule = "must have a mesh and a layout, with a colon between"
        raise InputError(f"layout {text[:80]!r}", rule, f"write {form}")
    mesh = parse_mesh(axes)
    if mesh.size > MAX_DEVICES:
        raise InputError(f"layout {text[:80]!r}", f"must have at most {MAX_DEVICES} devices")
    layout, _ = read_layout(spec, mesh, _DIMENSIONS)
    if len(layout.dims) != _DIMENSIONS:
        dims = (*layout.dims, *[()] * _DIMENSIONS)[:_DIMENSIONS]
        layout = replace(layout, dims=dims)
    if layout.partial:
        rule = "says partial values, which are no weights"
        raise InputError(f"layout {text[:80]!r}", rule, "reduce them first: p2smt redistribute")
    return mesh, layout


def _over(model: WeightModel, mesh: Mesh, layout: Layout, uneven: Uneven) -> WeightLayout:
    def held(weight: Weight) -> HeldParts:
        return _held(weight, mesh, layout, uneven)

    return layout_by(weights_of(model), mesh.size, lambda _: None, held)


def _held(
    weight: Weight, mesh: Mesh, layout: Layout, uneven: Uneven
) -> Iterator[tuple[int, IndexBox]]:
    shape = weight.tensor.shape
    own = replace(layout, dims=layout.dims[: len(shape)])
    try:
        kind = ArrayType(mesh, shape, ElementType.BF16, own, uneven)
    except InputError as error:
        given = f"tensor {weight.tensor.name}: {error.given}"
        remedy = "lay it out otherwise, or describe it by a layout.json"
        raise InputError(given, error.rule, remedy) from None
    blocks = blocks_of_type(kind)
    spans = [
        intervals(size, splits, mesh.size) for size, splits in zip(shape, blocks.dims, strict=True)
    ]
    for device in range(mesh.size):
        box = tuple((int(a[device]), int(a[device] + n[device])) for a, n in spans)
        if all(start < stop for start, stop in box):
            yield device, box


# The table.


@dataclass(frozen=True, slots=True)
class LayoutFramework:
    """A framework whose layouts are known by its options; ``passed``: those that move no weight."""

    options: Sequence[str]
    passed: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    layout: Callable[[WeightsText, WeightModel], WeightLayout]


FRAMEWORKS: Mapping[str, LayoutFramework] = {
    "megatron": LayoutFramework(MEGATRON_OPTIONS, megatron_layout, passed=STILL),
    "fsdp": LayoutFramework(FSDP_OPTIONS, fsdp_layout),
    "hsdp": LayoutFramework(HSDP_OPTIONS, fsdp_layout),
    "vllm": LayoutFramework(VLLM_OPTIONS, vllm_layout),
    "sglang": LayoutFramework(SGLANG_OPTIONS, sglang_layout),
}
MESHES: Mapping[str, Callable[[str, WeightModel], WeightLayout]] = {
    "dtensor": dtensor_layout,
    "jax": jax_layout,
}
"""Those whose text is a mesh and a layout on it."""


def layout_of(text: str, model: str = "") -> WeightLayout:
    """Who holds which box of which tensor, by ``megatron:tp=8,..``, ``vllm:..`` or a file.

    ``model``: the name of a model, or its ``config.json``; a file needs none.

    Raises:
        InputError: the framework or an option is unknown, a degree does not divide what it cuts,
            there are no rules for what is asked, or the model is none whose weights have names.
    """
    framework = text.partition(":")[0].strip()
    if framework not in (*FRAMEWORKS, *MESHES):
        return _of_file(text)
    if not model:
        rule = "needs a model, whose weights it lays out"
        raise InputError(f"layout {text[:80]!r}", rule, "give --model NAME or config.json")
    weights = read_weight_model(model)
    if framework in MESHES:
        return MESHES[framework](text, weights)
    found = FRAMEWORKS[framework]
    return found.layout(WeightsText.parse(text, found.options, found.passed), weights)


def _of_file(text: str) -> WeightLayout:
    if text.endswith(FILE):
        return read_layout_file(text)
    known = (*FRAMEWORKS, *MESHES)
    rule = f"is of no known framework ({', '.join(known)}) and no {FILE} file"
    remedy = did_you_mean(text.partition(":")[0], known, 0.7) or "write megatron:tp=8,pp=4,dp=2"
    raise InputError(f"layout {text[:80]!r}", rule, remedy)
