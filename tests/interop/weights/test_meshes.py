"""FSDP2, HSDP, DTensor and JAX: the boxes that torch and jax themselves say."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.table import dtensor_layout, fsdp_layout, jax_layout
from p2smt.interop.weights.weight_tensors import weights_of
from p2smt.transfer.layouts import IndexBox, WeightLayout
from tests.interop.weights.by_rank import held, numbered
from tests.interop.weights.tiny import DEEPSEEK_3, LLAMA
from tests.interpreter import python
from tests.refusals import refusal
from tests.strategies.draws import Draws, draws


def boxes_of(layout: WeightLayout, name: str, device: int) -> list[IndexBox]:
    return [box for box, who in layout.shards[name].boxes if device in who]


@pytest.mark.parametrize(("dp", "replicas"), [(1, 1), (3, 1), (8, 1), (32, 1), (5, 2), (4, 3)])
def test_fully_sharded(dp: int, replicas: int) -> None:
    """Each rank has the chunk of ``torch.chunk`` over the rows; late ones may have none."""
    name = "hsdp" if replicas > 1 else "fsdp"
    values = {"dp": str(dp), "replicas": str(replicas)}
    found = held(fsdp_layout(WeightsText("", name, values), LLAMA), numbered(LLAMA))
    stored: list[set[int]] = [set() for _ in range(dp * replicas)]
    for ids in numbered(LLAMA).values():
        for number, chunk in enumerate(torch.chunk(torch.from_numpy(ids), dp)):
            for replica in range(replicas):
                stored[replica * dp + number].update(chunk.flatten().tolist())
    assert found == stored


SHARDED = st.sampled_from([0, 1, -1])
"""The dimension that is sharded; -1: none."""


@given(draws())
def test_dtensors(drawn: Draws) -> None:
    sizes = [drawn.draw(st.sampled_from((1, 2, 3, 5))) for _ in range(3)]
    dimensions = [drawn.draw(SHARDED) for _ in sizes]
    placements = [Replicate() if one < 0 else Shard(one) for one in dimensions]
    mesh = ",".join(f"{letter}={size}" for letter, size in zip("abc", sizes, strict=True))
    said = ",".join(
        f"Shard({one.dim})" if isinstance(one, Shard) else "Replicate()" for one in placements
    )
    layout = dtensor_layout(f"dtensor:{mesh}:{said}", DEEPSEEK_3)
    for weight in weights_of(DEEPSEEK_3):
        shape = weight.tensor.shape
        own = [
            Replicate() if isinstance(one, Shard) and one.dim >= len(shape) else one
            for one in placements
        ]
        for device, coordinate in enumerate(np.ndindex(*sizes)):
            local, offset = _compute_local_shape_and_global_offset(
                shape, tuple(sizes), list(coordinate), own
            )
            box = tuple((o, o + n) for o, n in zip(offset, local, strict=True))
            expected = [box] if math.prod(local) else []
            assert boxes_of(layout, weight.tensor.name, device) == expected


JAX = """
import json, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
found = {}
mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("a", "b", "c"))
for text in json.loads(sys.argv[1]):
    for shape in map(tuple, json.loads(sys.argv[2])):
        sharding = NamedSharding(mesh, P(*list(eval(text))[: len(shape)]))
        indices = sharding.devices_indices_map(shape)
        found[f"{text} {list(shape)}"] = [
            [list(one.indices(size)[:2]) for one, size in zip(indices[device], shape)]
            for device in jax.devices()
        ]
print(json.dumps(found))
"""
SPECS = ("P('a', 'b')", "P(('b', 'c'), 'a')", "P(None, ('c', 'a'))", "P('b')", "P()")
EVEN = replace(LLAMA, sizes=replace(LLAMA.sizes, hidden=8, vocab=64))


@pytest.mark.slow
def test_named_shardings() -> None:
    """On eight devices of jax, which says itself which indices each holds."""
    place = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    shapes = sorted({weight.tensor.shape for weight in weights_of(EVEN)})
    said = python("-c", JAX, json.dumps(SPECS), json.dumps(shapes), environment=place)
    known = json.loads(said)
    for spec in SPECS:
        layout = jax_layout(f"jax:a=2,b=2,c=2:{spec}", EVEN)
        for name, tensor in layout.tensors.items():
            expected = known[f"{spec} {list(tensor.shape)}"]
            for device in range(8):
                (box,) = boxes_of(layout, name, device)
                assert [list(span) for span in box] == expected[device], (spec, name, device)


def test_parts_of_jax_are_equal() -> None:
    said = refusal(jax_layout, "jax:a=4:P('a')", LLAMA)
    assert "tensor model.embed_tokens.weight" in said
    assert "does not divide into 4 equal shards" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dtensor:a=4", "must have a mesh and a layout"),
        ("dtensor:a=4:Shard(0),Shard(1)", "has an entry for each axis of the mesh: 1, not 2"),
        ("dtensor:a=4:Partial()", "says partial values"),
        ("dtensor:a=4:Shard(2)", "shards a dimension that an array of 2 does not have"),
        ("dtensor:a=70000:Shard(0)", "must have at most 65536 devices"),
    ],
)
def test_bad_placements(text: str, said: str) -> None:
    assert said in refusal(dtensor_layout, text, LLAMA)
