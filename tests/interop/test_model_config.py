"""Configurations of Hugging Face: sizes as their classes mean them, and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.config_families import FAMILIES
from p2smt.interop.model_config import config_model, read_config
from p2smt.training.model_file import read_model
from p2smt.training.transformer import Attention, Transformer
from tests.interop import test_mixture_configs as mixtures
from tests.refusals import found_or_refusal, refusal
from tests.strategies.config_values import VALUES

Config = dict[str, Any]


def usual(kind: str, layers: int, hidden: int, heads: int, ffn: int, vocab: int) -> Config:
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
    }


QWEN_WINDOW = {"sliding_window": 131_072, "use_sliding_window": False, "max_window_layers": 70}
# As they are published, without what does not bear on sizes.
LLAMA_3_70B = usual("llama", 80, 8192, 64, 28_672, 128_256) | {
    "_name_or_path": "meta-llama/Meta-Llama-3-70B",
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50_257}
PUBLISHED: dict[str, tuple[Config, Transformer]] = {
    "llama-3-70b": (LLAMA_3_70B, read_model("llama-3-70b")),
    "llama-2-7b": (
        usual("llama", 32, 4096, 32, 11_008, 32_000) | {"num_key_value_heads": 32},
        read_model("llama-2-7b"),
    ),
    "llama-3.2-1b": (
        usual("llama", 16, 2048, 32, 8192, 128_256)
        | {"num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": True},
        Transformer("llama-3.2-1b", 16, 2048, 32, 8, 8192, True, 128_256, 64, tied=True),
    ),
    "qwen2.5-72b": (
        usual("qwen2", 80, 8192, 64, 29_568, 152_064)
        | {"num_key_value_heads": 8, "max_position_embeddings": 131_072, **QWEN_WINDOW},
        read_model("qwen-2.5-72b"),
    ),
    "qwen3-32b": (
        usual("qwen3", 64, 5120, 64, 25_600, 151_936)
        | {"num_key_value_heads": 8, "head_dim": 128, "sliding_window": None},
        read_model("qwen-3-32b"),
    ),
    "mistral-7b-v0.3": (
        usual("mistral", 32, 4096, 32, 14_336, 32_768)
        | {"num_key_value_heads": 8, "sliding_window": None},
        Transformer("mistral-7b-v0.3", 32, 4096, 32, 8, 14_336, True, 32_768, 128),
    ),
    "mistral-nemo": (  # heads are narrower than hidden / heads
        usual("mistral", 40, 5120, 32, 14_336, 131_072)
        | {"num_key_value_heads": 8, "head_dim": 128, "sliding_window": None},
        Transformer("mistral-nemo", 40, 5120, 32, 8, 14_336, True, 131_072, 128),
    ),
    "nemotron-4-340b": (
        usual("nemotron", 96, 18_432, 96, 73_728, 256_000)
        | {"num_key_value_heads": 8, "hidden_act": "relu2"},
        read_model("nemotron-4-340b"),
    ),
    "gpt2": (GPT2, Transformer("gpt2", 12, 768, 12, 12, 3072, False, 50_257, 64, tied=True)),
    "gpt-neox-20b": (
        usual("gpt_neox", 44, 6144, 64, 24_576, 50_432),
        Transformer("gpt-neox-20b", 44, 6144, 64, 64, 24_576, False, 50_432, 96),
    ),
    "phi-4": (
        usual("phi3", 40, 5120, 40, 17_920, 100_352)
        | {"num_key_value_heads": 10, "sliding_window": None, "max_position_embeddings": 16_384},
        Transformer("phi-4", 40, 5120, 40, 10, 17_920, True, 100_352, 128),
    ),
    "phi-3-mini-128k": (  # its window is longer than any sequence
        usual("phi3", 32, 3072, 32, 8192, 32_064)
        | {"sliding_window": 262_144, "max_position_embeddings": 131_072},
        Transformer("phi-3-mini-128k", 32, 3072, 32, 32, 8192, True, 32_064, 96),
    ),
    "mpt-30b": (
        {
            "model_type": "mpt",
            "d_model": 7168,
            "n_heads": 64,
            "n_layers": 48,
            "expansion_ratio": 4,
            "vocab_size": 50_432,
            "attn_config": {"attn_type": "multihead_attention", "alibi": True},
        },
        replace(read_model("mpt-30b"), vocab=50_432),
    ),
    "starcoder": (
        {
            "model_type": "gpt_bigcode",
            "n_embd": 6144,
            "n_head": 48,
            "n_layer": 40,
            "n_inner": 24_576,
            "multi_query": True,
            "vocab_size": 49_152,
        },
        Transformer("starcoder", 40, 6144, 48, 1, 24_576, False, 49_152, 128, tied=True),
    ),
    "gemma-7b": (
        usual("gemma", 28, 3072, 16, 24_576, 256_000)
        | {"num_key_value_heads": 16, "head_dim": 256},
        Transformer("gemma-7b", 28, 3072, 16, 16, 24_576, True, 256_000, 256, tied=True),
    ),
    "olmo-2-7b": (
        usual("olmo2", 32, 4096, 32, 11_008, 100_352) | {"num_key_value_heads": 32},
        Transformer("olmo-2-7b", 32, 4096, 32, 32, 11_008, True, 100_352, 128),
    ),
    "olmo-7b": (
        usual("olmo", 32, 4096, 32, 11_008, 50_304),
        Transformer("olmo-7b", 32, 4096, 32, 32, 11_008, True, 50_304, 128),
    ),
    "granite-3-8b": (
        usual("granite", 40, 4096, 32, 12_800, 49_155)
        | {"num_key_value_heads": 8, "tie_word_embeddings": True},
        Transformer("granite-3-8b", 40, 4096, 32, 8, 12_800, True, 49_155, 128, tied=True),
    ),
    "starcoder2-7b": (  # with its window written off, as a run on short sequences would
        usual("starcoder2", 32, 4608, 36, 18_432, 49_152)
        | {"num_key_value_heads": 4, "sliding_window": None},
        Transformer("starcoder2-7b", 32, 4608, 36, 4, 18_432, False, 49_152, 128, tied=True),
    ),
}


def sizes(model: Transformer) -> Transformer:
    return replace(model, name="", sources=())


def test_every_family_is_tried() -> None:
    mixed = (config.get("text_config", config) for config in mixtures.PUBLISHED.values())
    tried = {config["model_type"] for config in (*mixed, *(one for one, _ in PUBLISHED.values()))}
    assert tried == set(FAMILIES)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configurations_have_their_sizes(name: str) -> None:
    config, expected = PUBLISHED[name]
    assert sizes(config_model(config, "config.json")) == sizes(expected)


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [  # absent keys, by the defaults of transformers' classes
        (usual("llama", 2, 64, 8, 128, 99), "kv_heads", 8),
        (usual("mistral", 2, 64, 16, 128, 99) | {"sliding_window": None}, "kv_heads", 8),
        (usual("qwen2", 2, 64, 32, 128, 99), "kv_heads", 32),
        (usual("qwen2", 2, 64, 8, 128, 99) | {"num_key_value_heads": None}, "kv_heads", 8),
        (usual("qwen3", 2, 64, 32, 128, 99), "head_size", 128),
        (usual("gemma", 2, 64, 16, 128, 99), "head_size", 256),
        (usual("gemma", 2, 64, 16, 128, 99), "tied", True),
        (usual("starcoder2", 2, 64, 8, 128, 99), "kv_heads", 2),
        (usual("nemotron", 2, 64, 8, 128, 99), "tied", False),
        (GPT2, "ffn", 3072),
        (GPT2 | {"n_inner": None}, "ffn", 3072),
        (GPT2 | {"n_inner": 99}, "ffn", 99),
        (GPT2 | {"tie_word_embeddings": False}, "tied", False),
        (GPT2 | {"model_type": "gpt_bigcode"}, "kv_heads", 1),
        (GPT2 | {"model_type": "gpt_bigcode", "multi_query": False}, "kv_heads", 12),
        (
            {"model_type": "mpt", "d_model": 64, "n_heads": 8, "n_layers": 1, "vocab_size": 9},
            "ffn",
            256,
        ),
    ],
)
def test_absent_keys_have_their_classes_defaults(config: Config, key: str, value: object) -> None:
    assert getattr(config_model(config, "config.json"), key) == value


def test_both_names_of_a_key_are_known() -> None:
    """transformers maps hidden_size to n_embd and the like."""
    usual_names = usual("gpt2", 12, 768, 12, 0, 50_257)
    del usual_names["intermediate_size"]
    assert config_model(usual_names, "x.json") == config_model(GPT2, "x.json")


def refused(config: Config) -> str:
    text = refusal(config_model, config, "config.json")
    assert text.startswith("config.json")
    return text


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_missing_key_is_named(name: str) -> None:
    """Sizes must be there: what a class would take instead is another model."""
    config, _ = PUBLISHED[name]
    needed = [key for key in config if key in NEEDED]
    assert len(needed) >= 4
    for key in needed:
        left = {other: value for other, value in config.items() if other != key}
        assert f"{key}" in refused(left)
        assert "missing" in refused(left)


NEEDED = (
    *("model_type", "vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads"),
    *("intermediate_size", "n_layer", "n_embd", "n_head", "d_model", "n_heads", "n_layers"),
)


@pytest.mark.parametrize("key", ["num_local_experts", "num_experts", "n_routed_experts"])
def test_experts_of_a_dense_family_are_refused(key: str) -> None:
    said = f"{key} '8': is of a mixture of experts, which llama is not"
    assert said in refused(LLAMA_3_70B | {key: 8})
    dense = config_model(LLAMA_3_70B | {key: 1}, "config.json")
    assert dense == config_model(LLAMA_3_70B, "config.json")


MISTRAL = usual("mistral", 32, 4096, 32, 14_336, 32_000) | {"max_position_embeddings": 32_768}
QWEN2 = usual("qwen2", 28, 3584, 28, 18_944, 152_064) | {"num_key_value_heads": 4}
LONG = {"max_position_embeddings": 16_384}
SLIDING = QWEN2 | {"use_sliding_window": True, "sliding_window": 4096}


PHI_3 = usual("phi3", 32, 3072, 32, 8192, 32_064)
ALTERNATING = ["full_attention", "sliding_attention"] * 14


@pytest.mark.parametrize(
    ("config", "window", "windowed"),
    [
        (MISTRAL | {"sliding_window": 4096}, 4096, range(32)),
        (MISTRAL, 4096, range(32)),  # the default where the key is absent
        (SLIDING | {"max_window_layers": 21}, 4096, range(21, 28)),
        (PHI_3 | {"sliding_window": 2047}, 2047, range(32)),
        (SLIDING | {"layer_types": ALTERNATING}, 4096, range(1, 28, 2)),
        (QWEN2 | {"sliding_window": 4096, "layer_types": ["full_attention"] * 28}, 0, ()),
    ],
)
def test_a_sliding_window_is_of_its_layers(
    config: Config, window: int, windowed: Sequence[int]
) -> None:
    model = config_model(config, "config.json")
    kinds = [kind for run in model.runs for _ in range(run.repeat) for kind in run.kinds]
    assert model.window == window
    found = [at for at, kind in enumerate(kinds) if kind.attention is Attention.WINDOW]
    assert found == list(windowed)


@pytest.mark.parametrize(
    "config",
    [
        MISTRAL | {"sliding_window": None},
        MISTRAL | {"sliding_window": 32_768},
        QWEN2 | {"use_sliding_window": False, "sliding_window": 4096},
        SLIDING | {"max_window_layers": 28},
        SLIDING,  # without max_window_layers it is 28, as many as there are layers
        SLIDING | {"sliding_window": None, "max_window_layers": 0},
        SLIDING | {"layer_types": ["full_attention"] * 28, "max_window_layers": 0},
    ],
)
def test_a_window_that_never_hides_a_token_is_none(config: Config) -> None:
    assert config_model(config, "config.json").layers == config["num_hidden_layers"]


@pytest.mark.parametrize(
    "config",
    [
        MISTRAL | {"sliding_window": 4096},
        MISTRAL,
        SLIDING | {"max_window_layers": 21},
        usual("starcoder2", 32, 64, 8, 99, 99) | {"sliding_window": 4096},
    ],
)
def test_a_window_hides_nothing_up_to_its_length(config: Config) -> None:
    model = config_model(config, "config.json")
    assert model.seen(4096).dense
    assert not model.seen(4097).dense


@pytest.mark.parametrize("name", ["text_config", "language_config", "llm_config"])
@pytest.mark.parametrize("kind", ["mistral3", "llava", "internvl_chat"])
def test_of_a_model_of_several_parts_that_of_its_text_is_read(name: str, kind: str) -> None:
    config = {"model_type": kind, name: LLAMA_3_70B, "vision_config": {"model_type": "siglip"}}
    assert config_model(config, "x.json") == config_model(LLAMA_3_70B, "x.json")


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "vl", "language_model": LLAMA_3_70B, "vision_config": {"hidden_size": 8}},
        {"model_type": "omni", "thinker_config": {"model_type": "a", "text_config": LLAMA_3_70B}},
        {"backbone": LLAMA_3_70B},
    ],
)
def test_the_only_part_that_is_a_decoder_is_read(config: dict[str, object]) -> None:
    assert config_model(config, "x.json") == config_model(LLAMA_3_70B, "x.json")


def test_of_two_decoders_none_is_guessed() -> None:
    text = refused({"model_type": "x", "draft": LLAMA_3_70B, "target": LLAMA_3_70B})
    assert "is none of the families that are read" in text
    assert "(draft, target)" in refused({"draft": LLAMA_3_70B, "target": LLAMA_3_70B})
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}
    assert "this key is missing" in refused(deep)


@pytest.mark.parametrize("part", [{"model_type": "siglip"}, None, "llama", [1]])
def test_a_part_that_cannot_be_read_is_named(part: object) -> None:
    text = refused({"model_type": "gemma3", "text_config": part})
    assert "is none of the families that are read" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "falcon"}, "model_type 'falcon': is none of the families that.*: dbrx,"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "has an encoder"),
        ({"model_type": None}, "model_type: this key is missing"),
        ({"model_type": 3}, "model_type: this key is missing"),
        ({"num_hidden_layers": "80"}, "num_hidden_layers '80': must be a whole number"),
        ({"num_hidden_layers": 80.0}, "must be a whole number"),
        ({"num_hidden_layers": True}, "must be a whole number"),
        ({"num_hidden_layers": 0}, "must be a whole number from 1"),
        ({"num_hidden_layers": 10**9}, "must be a whole number from 1"),
        ({"hidden_size": [1]}, "hidden_size 'list': must be a whole number"),
        ({"num_attention_heads": 63}, "63 heads: heads must divide it.*add head_dim"),
        ({"num_key_value_heads": 7}, "64 heads, 7 kv_heads: kv_heads must divide heads"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings 'no': must be true or false"),
        ({"layer_types": ["linear_attention"] * 80}, "layer_types .*: layers other than"),
        ({"layer_types": ["full_attention"]}, "an entry for each of the 80 layers"),
        ({"model_type": "mistral", "layer_types": "full"}, "must be a list"),
        ({"per_layer_config": {"0": {"hidden_size": 1}}}, "says that layers differ"),
        ({"max_position_embeddings": "8k"}, "max_position_embeddings '8k': must be a whole"),
    ],
)
def test_what_is_wrong_is_one_clear_error(change: Config, said: str) -> None:
    with pytest.raises(InputError, match=said):
        config_model(LLAMA_3_70B | change, "config.json")
    refused(LLAMA_3_70B | change)


def test_attention_of_mpt_is_of_a_known_type() -> None:
    config, model = PUBLISHED["mpt-30b"]
    one = config | {"attn_config": {"attn_type": "multiquery_attention"}}
    assert sizes(config_model(one, "x.json")) == sizes(replace(model, kv_heads=1))
    other = config | {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8}}
    assert "attn_config.attn_type 'grouped_query_attention'" in refused(other)
    assert "attn_config.attn_type" in refused(config | {"attn_config": "flash"})


def test_a_file_or_its_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(json.dumps(LLAMA_3_70B))
    found = read_config(str(path))
    assert found.name == "Meta-Llama-3-70B"
    assert found.sources == (str(path),)
    assert read_config(str(folder)) == found
    path.write_text(json.dumps({**LLAMA_3_70B, "_name_or_path": ""}))
    assert read_config(str(path)).name == "mine"
    other = tmp_path / "my-model.json"
    other.write_text(json.dumps(GPT2))
    assert read_config(str(other)).name == "my-model"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a JSON object"),
        ("{", "is not JSON"),
        ('{"model_type": "llama", "model_type": "gpt2"}', "has the key 'model_type' twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_config(str(path))
    with pytest.raises(InputError, match="does not exist"):
        read_config(str(tmp_path / "none.json"))


KEYS = sorted({key for config, _ in PUBLISHED.values() for key in config} | {"layer_types"})


@given(
    st.sampled_from(sorted(PUBLISHED)), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)
)
def test_any_change_gives_a_model_or_one_clear_error(name: str, change: Config) -> None:
    found, said = found_or_refusal(config_model, PUBLISHED[name][0] | change, "config.json")
    assert found.parameters > 0 if found else said.startswith("config.json")
