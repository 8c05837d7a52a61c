"""Layouts by their texts: what is refused, and by which name; files that say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.table import FRAMEWORKS, layout_of
from p2smt.transfer.layout_file import layout_of_data
from p2smt.transfer.layouts import WeightLayout
from tests.interop.weights.tiny import DEEPSEEK_3, MIXTRAL
from tests.refusals import found_or_refusal, refusal

DENSE, SPARSE, LATENT = "llama-3-70b", "qwen3-235b-a22b", "deepseek-v3"


@pytest.mark.parametrize(
    ("text", "model", "said"),
    [
        ("megatron:tp=3", DENSE, "tp=3: must divide the heads, 64"),
        ("megatron:tp=8,pp=3", DENSE, "80 layers do not divide by the 3 stages"),
        ("megatron:tp=8,pp=4,vpp=3", DENSE, "vpp=3: must divide the layers of a stage, 20"),
        ("megatron:tp=0", DENSE, "tp=0: must be a whole number, 1 to 65536"),
        ("megatron:tp=two", DENSE, "tp=two: must be a whole number"),
        ("megatron:tp", DENSE, "option tp has no value"),
        ("megatron:tp=2,tp=2", DENSE, "option tp is given twice"),
        ("megatron:ep=2", DENSE, "ep: is of experts, which the model does not have"),
        ("megatron:tp=8,pp=64,dp=1024", DENSE, "524288 devices: must be at most 65536"),
        (
            "megatron:tp=4,ep=16,dp=4",
            SPARSE,
            "must divide the 16 ranks of a stage",
        ),
        ("megatron:tp=4,ep=3,dp=3", SPARSE, "ep=3: must divide the experts, 128"),
        ("megatron:tp=2,pp=2,layout=Ett|ttL", DENSE, "has 4 layers, and the model 80"),
        ("megatron:pp=3,layout=Et|tL", DENSE, "has 2 stages, no multiple of pp=3"),
        ("megatron:pp=2,layout=Et*61|mL", LATENT, "m: layers of multi-token prediction"),
        ("megatron:pp=2,layout=t|tL", DENSE, "must begin with E, end with L"),
        ("megatron:pp=2,layout=Et*80|L,vpp=2", DENSE, "vpp: is said by layout already"),
        ("megatron:layout=Et*99999t*99999L", DENSE, "has more than 100000 layers"),
        ("megatron:tp=2,order=dp-tp-pp", DENSE, "is no order of ranks here"),
        ("megatron:first=20", DENSE, "first, last: are of a pipeline"),
        ("megatron:tp=2,mtp=1", LATENT, "layers of multi-token prediction have no rules"),
        ("megatron:tp=2,lora=16", DENSE, "adapters (LoRA) have no rules here"),
        ("vllm:tp=8,fp8=1", DENSE, "weights with scales have no rules here"),
        ("vllm:tp=8,eplb=1", SPARSE, "experts that a table places (or doubles) have no rules"),
        ("sglang:tp=8,dp-attention=2", SPARSE, "attention shared out by dp has no rules here"),
        ("vllm:tp=8,engine=2", DENSE, "option 'engine': is unknown; known are tp, pp, dp"),
        ("vllm:tp=8,ep=4", SPARSE, "ep=4: must be tp x dp (8), over which vLLM spreads experts"),
        ("vllm:tp=32,ep=32,dp=1,pad=2", DENSE, "ep: is of experts"),
        ("vllm:pp=96", DENSE, "pp=96: is more than 80 layers"),
        ("sglang:tp=64", "qwen1.5-moe-a2.7b", "tp=64: is more than 60 experts"),
        ("vllm:tp=64,dp=64", SPARSE, "ranks of an expert=4096: must divide the width"),
        ("vllm:pp=2,layers=40/41", DENSE, "must be 2 numbers (pp) whose sum is the model's 80"),
        ("vllm:pp=2,layers=a/b", DENSE, "must be numbers"),
        ("sglang:tp=8,ep=3", SPARSE, "ep=3: must divide tp, 8"),
        ("fsdp:tp=8", DENSE, "option 'tp': is unknown; known are dp"),
        ("nemo:tp=8", DENSE, "is of no known framework"),
        ("vlm:tp=8", DENSE, "did you mean 'vllm'?"),
        ("vllm:tp=8", "", "needs a model, whose weights it lays out"),
        ("none.json", "", "layout file 'none.json'"),
    ],
)
def test_refused_by_name(text: str, model: str, said: str) -> None:
    assert said in refusal(layout_of, text, model)


NAMES = ("megatron", "vllm", "sglang", "fsdp", "hsdp", "dtensor", "jax", "x")
OPTIONS = (
    *("tp=", "pp=", "dp=", "ep=", "etp=", "vpp=", "layout=", "first=", "order=", "layers="),
    *(":", "=", ",", "/", "|", "E", "t", "L", "*", "(", ")", "P('a')", "Shard(0)", "a", "a=2"),
    *("0", "2", "8", "99999999999", "\u0663", " ", "-1", "tp-pp-dp", "Et*8|t*8L"),
)


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(OPTIONS), max_size=12).map("".join))
def test_any_text_is_a_layout_or_refused(name: str, options: str) -> None:
    layout, said = found_or_refusal(layout_of, f"{name}:{options}", "llama-3.2-1b")
    assert said if layout is None else layout.devices


def layout_data(layout: WeightLayout) -> dict[str, object]:
    """A layout as plain data for JSON; reading it back gives an equal one."""
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    tensors: list[dict[str, object]] = []
    for name, tensor in layout.tensors.items():
        shards = layout.shards[name]
        alike = first.setdefault((id(shards), tensor.shape), name)
        boxes: dict[str, object] = (
            {"like": alike}
            if alike != name
            else {"boxes": [{"box": b, "devices": d} for b, d in shards.boxes]}
        )
        tensors.append({"name": name, "shape": tensor.shape, **boxes})
    return {"devices": layout.devices, "tensors": tensors}


def test_files_say_the_same(tmp_path: Path) -> None:
    for text, model in (("megatron:tp=2,pp=2,dp=2,etp=1,ep=4", DEEPSEEK_3), ("vllm:tp=4", MIXTRAL)):
        framework = FRAMEWORKS[text.partition(":")[0]]
        layout = framework.layout(WeightsText.parse(text, framework.options), model)
        path = tmp_path / "layout.json"
        path.write_text(json.dumps(layout_data(layout)))
        again = layout_of(str(path))
        assert again == layout
        different = {id(shards) for shards in again.shards.values()}
        assert len(different) <= len({id(shards) for shards in layout.shards.values()})


ONE = {"name": "w", "shape": [4], "boxes": [{"box": [[0, 4]], "devices": [0]}]}


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ([ONE, ONE], "tensor 'w': is there twice"),
        ([{**ONE, "like": "v"}], "must have either boxes or like"),
        ([{"name": "w", "shape": [4]}], "must have either boxes or like"),
        ([ONE, {"name": "v", "shape": [5], "like": "w"}], "is no tensor before it of its shape"),
        ([{**ONE, "boxes": [{"box": [[0, 3]], "devices": [0]}]}], "element [3] of tensor 'w'"),
        ([{**ONE, "boxes": ONE["boxes"] * 2}], "element [0] of tensor 'w'"),  # type: ignore[operator]
        ([{**ONE, "boxes": [{"box": [[0, 4]], "devices": [2]}]}], "must be 0 to 1"),
        ([], "must have at least 1"),
    ],
)
def test_bad_files(tensors: list[object], said: str) -> None:
    data = {"devices": 2, "tensors": tensors}
    assert said in refusal(layout_of_data, data, "layout.json")
