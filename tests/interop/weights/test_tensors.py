"""Names and shapes of weights: as many as published files have, of as many elements."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2smt.interop.weights.models import read_weight_model
from p2smt.interop.weights.weight_tensors import weights_of
from p2smt.training.model_file import read_model
from tests.interop.test_model_config import LLAMA_3_70B
from tests.interop.weights.tiny import TINY, weight_model
from tests.refusals import refusal

# Tensors and elements of files on huggingface.co, of their main model: the names of DeepSeek-V3 are
# 45,337 and 58 corrections of its routers, without those of layer 61 (multi-token prediction).
PUBLISHED = {
    "llama-3-70b": (723, 70_553_706_496),
    "llama-3-405b": (1_137, 405_853_388_800),
    "llama-3.2-1b": (146, 1_235_814_400),
    "qwen-2.5-7b": (339, 7_615_616_512),
    "mixtral-8x7b": (995, 46_702_792_704),
    "qwen1.5-moe-a2.7b": (4_659, 14_315_784_192),
    "qwen3-235b-a22b": (36_945, 235_093_634_560),
    "deepseek-v2-lite": (5_291, 15_706_484_224),
    "deepseek-v3": (45_337 + 58, 671_026_419_200),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_many_as_published(name: str) -> None:
    weights = weights_of(read_weight_model(name))
    assert len({weight.tensor.name for weight in weights}) == len(weights)
    elements = sum(math.prod(weight.tensor.shape) for weight in weights)
    assert (len(weights), elements) == PUBLISHED[name]


def shapes(name: str) -> dict[str, tuple[int, ...]]:
    return {w.tensor.name: w.tensor.shape for w in weights_of(read_weight_model(name))}


def test_names_of_a_layer() -> None:
    """As in the index of the files of Qwen3-235B, DeepSeek-V3 and Mixtral."""
    qwen = shapes("qwen3-235b-a22b")
    assert qwen["model.layers.93.self_attn.k_proj.weight"] == (512, 4096)
    assert qwen["model.layers.0.self_attn.q_norm.weight"] == (128,)
    assert qwen["model.layers.0.mlp.experts.127.down_proj.weight"] == (4096, 1536)
    deepseek = shapes("deepseek-v3")
    assert deepseek["model.layers.3.mlp.gate.e_score_correction_bias"] == (256,)
    assert deepseek["model.layers.60.self_attn.kv_a_proj_with_mqa.weight"] == (576, 7168)
    assert deepseek["model.layers.60.self_attn.q_b_proj.weight"] == (24_576, 1536)
    assert deepseek["model.layers.60.mlp.shared_experts.gate_proj.weight"] == (2048, 7168)
    assert deepseek["model.layers.2.mlp.gate_proj.weight"] == (18_432, 7168)
    assert "model.layers.61.embed_tokens.weight" not in deepseek
    mixtral = shapes("mixtral-8x7b")
    assert mixtral["model.layers.0.block_sparse_moe.experts.7.w2.weight"] == (4096, 14_336)
    assert shapes("qwen-2.5-7b")["model.layers.0.self_attn.v_proj.bias"] == (512,)
    assert "lm_head.weight" not in shapes("llama-3.2-1b")


def test_every_element_of_the_matrices_is_named() -> None:
    """What the sizes count, and besides them norms, biases and corrections alone."""
    for kind, model in TINY.items():
        weights = [w.tensor for w in weights_of(model)]
        apart = ("norm", "bias", "shared_expert_gate")
        counted = [t for t in weights if not any(word in t.name for word in apart)]
        elements = sum(math.prod(tensor.shape) for tensor in counted)
        assert elements == model.sizes.parameters, kind


def config(folder: Path, changes: Mapping[str, Any]) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({**LLAMA_3_70B, **changes}))
    return str(path)


def test_configurations(tmp_path: Path) -> None:
    plain = read_weight_model(config(tmp_path, {}))
    assert len(weights_of(plain)) == 723
    biased = read_weight_model(config(tmp_path, {"attention_bias": True}))
    assert len(weights_of(biased)) == 723 + 4 * 80


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "weights have scales"),
        ({"mlp_bias": True}, "no rules for biases of an MLP"),
        ({"model_type": "mistral", "attention_bias": True}, "no rules for them in this family"),
        ({"model_type": "phi3"}, "stores q, k and v, and gate and up, as one tensor each"),
        ({"model_type": "granite"}, "the names of its weights are not known"),
    ],
)
def test_configurations_without_rules(
    tmp_path: Path, changes: Mapping[str, Any], said: str
) -> None:
    assert said in refusal(read_weight_model, config(tmp_path, changes))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama-4-scout", "the names of its weights are not known"),
        ("gpt-3-175b", "the names of its weights are not known"),
        ("nemotron-3-nano", "the names of its weights are not known"),
        ("no-such-model", "is neither a known model nor a file"),
    ],
)
def test_models_without_names(name: str, said: str) -> None:
    assert said in refusal(read_weight_model, name)


def test_a_file_of_sizes_names_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "llama-3-70b.yaml"
    path.write_text(
        "name: llama-3-70b\nlayers: 2\nhidden: 8\nheads: 2\nffn: 8\ngated: true\nvocab: 9"
    )
    assert "which says no names of weights" in refusal(read_weight_model, str(path))


def test_layers_without_names() -> None:
    mamba = replace(read_weight_model("llama-3-8b"), sizes=read_model("nemotron-3-nano"))
    assert "has layers of mamba where attention stands" in refusal(weights_of, mamba)
    shared = weight_model("qwen3_moe", TINY["qwen2_moe"].sizes)
    assert "that its family has no names for" in refusal(weights_of, shared)
