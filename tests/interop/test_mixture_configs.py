"""Published ``config.json`` of mixtures, hybrids and windowed models give the packaged models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.config_families import FAMILIES, UNMODELLED, UNREAD
from p2smt.interop.model_config import config_model
from p2smt.training.model_file import read_model
from p2smt.training.transformer import Transformer
from tests.refusals import found_or_refusal, refusal
from tests.strategies.config_values import VALUES

Config = dict[str, Any]


def usual(sizes: tuple[str, int, int, int, int], **more: Any) -> Config:
    """The keys that most families share: type, layers, hidden size, heads, vocabulary."""
    kind, layers, hidden, heads, vocab = sizes
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "vocab_size": vocab,
        **more,
    }


MLA: dict[str, Any] = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "q_lora_rank": 1536,
}
DEEPSEEK_V3 = usual(
    ("deepseek_v3", 61, 7168, 128, 129_280),
    **MLA,
    num_key_value_heads=128,
    intermediate_size=18_432,
    moe_intermediate_size=2048,
    n_routed_experts=256,
    n_shared_experts=1,
    num_experts_per_tok=8,
    first_k_dense_replace=3,
    moe_layer_freq=1,
    n_group=8,
    topk_group=4,
    num_nextn_predict_layers=1,
    tie_word_embeddings=False,
)
KIMI_K2 = DEEPSEEK_V3 | {
    "model_type": "kimi_k2",
    "num_attention_heads": 64,
    "vocab_size": 163_840,
    "n_routed_experts": 384,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "num_nextn_predict_layers": 0,
}
V2_LITE = usual(
    ("deepseek_v2", 27, 2048, 16, 102_400),
    **MLA | {"q_lora_rank": None},
    intermediate_size=10_944,
    moe_intermediate_size=1408,
    n_routed_experts=64,
    n_shared_experts=2,
    num_experts_per_tok=6,
    first_k_dense_replace=1,
    n_group=1,
    topk_group=1,
)
GPT_OSS = usual(
    ("gpt_oss", 24, 2880, 64, 201_088),
    num_key_value_heads=8,
    head_dim=64,
    intermediate_size=2880,
    num_local_experts=32,
    num_experts_per_tok=4,
    sliding_window=128,
    layer_types=["sliding_attention", "full_attention"] * 12,
)
NANO = usual(
    ("nemotron_h", 52, 2688, 32, 131_072),
    num_key_value_heads=2,
    head_dim=128,
    intermediate_size=1856,
    n_routed_experts=128,
    num_experts_per_tok=6,
    moe_intermediate_size=1856,
    moe_shared_expert_intermediate_size=3712,
    n_shared_experts=1,
    n_group=1,
    topk_group=1,
    hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    mamba_num_heads=64,
    mamba_head_dim=64,
    n_groups=8,
    ssm_state_size=128,
)
LLAMA_4 = usual(
    ("llama4_text", 48, 5120, 40, 202_048),
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=8192,
    intermediate_size_mlp=16_384,
    num_local_experts=128,
    num_experts_per_tok=1,
    interleave_moe_layer_step=2,
    attention_chunk_size=8192,
)
GEMMA_3 = usual(
    ("gemma3_text", 34, 2560, 8, 262_208),
    num_key_value_heads=4,
    head_dim=256,
    intermediate_size=10_240,
    sliding_window=1024,
)
QWEN3 = usual(
    ("qwen3_moe", 94, 4096, 64, 151_936),
    num_key_value_heads=4,
    head_dim=128,
    intermediate_size=12_288,
    moe_intermediate_size=1536,
    num_experts=128,
    num_experts_per_tok=8,
    decoder_sparse_step=1,
    mlp_only_layers=[],
    use_sliding_window=False,
    sliding_window=None,
)
PUBLISHED: dict[str, Config] = {
    "deepseek-v3": DEEPSEEK_V3,
    "kimi-k2": KIMI_K2,
    "deepseek-v2-lite": V2_LITE,
    "gpt-oss-20b": GPT_OSS,
    "nemotron-3-nano": NANO,
    "llama-4-maverick": {"model_type": "llama4", "text_config": LLAMA_4, "vision_config": {}},
    "llama-4-scout": LLAMA_4
    | {
        "num_local_experts": 16,
        "interleave_moe_layer_step": 1,
        "max_position_embeddings": 10_485_760,
    },
    "gemma-3-4b": {"model_type": "gemma3", "text_config": GEMMA_3},
    "gemma-2-2b": usual(
        ("gemma2", 26, 2304, 8, 256_000),
        num_key_value_heads=4,
        head_dim=256,
        intermediate_size=9216,
        sliding_window=4096,
    ),
    "qwen3-235b-a22b": QWEN3,
    "qwen1.5-moe-a2.7b": usual(
        ("qwen2_moe", 24, 2048, 16, 151_936),
        num_key_value_heads=16,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        num_experts=60,
        num_experts_per_tok=4,
        decoder_sparse_step=1,
    ),
    "mixtral-8x7b": usual(
        ("mixtral", 32, 4096, 32, 32_000),
        num_key_value_heads=8,
        intermediate_size=14_336,
        num_local_experts=8,
        num_experts_per_tok=2,
        sliding_window=None,
    ),
    "phi-3.5-moe": usual(
        ("phimoe", 32, 4096, 32, 32_064),
        num_key_value_heads=8,
        intermediate_size=6400,
        num_local_experts=16,
        num_experts_per_tok=2,
    ),
    "granite-3.0-1b-a400m": usual(
        ("granitemoe", 24, 1024, 16, 49_155),
        num_key_value_heads=8,
        intermediate_size=512,
        num_local_experts=32,
        num_experts_per_tok=8,
        tie_word_embeddings=True,
    ),
    "olmoe-1b-7b": usual(
        ("olmoe", 16, 2048, 16, 50_304),
        num_key_value_heads=16,
        intermediate_size=1024,
        num_experts=64,
        num_experts_per_tok=8,
    ),
    "minimax-m2": usual(
        ("minimax_m2", 62, 3072, 48, 200_064),
        num_mtp_modules=3,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=1536,
        num_local_experts=256,
        num_experts_per_tok=8,
    ),
    "glm-4.5": usual(
        ("glm4_moe", 92, 5120, 96, 151_552),
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=12_288,
        moe_intermediate_size=1536,
        n_routed_experts=160,
        n_shared_experts=1,
        num_experts_per_tok=8,
        first_k_dense_replace=3,
        num_nextn_predict_layers=1,
    ),
    "dbrx": {
        "model_type": "dbrx",
        "n_layers": 40,
        "d_model": 6144,
        "n_heads": 48,
        "vocab_size": 100_352,
        "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4, "ffn_hidden_size": 10_752},
    },
    "mistral-7b-v0.1": usual(
        ("mistral", 32, 4096, 32, 32_000),
        num_key_value_heads=8,
        intermediate_size=14_336,
        sliding_window=4096,
    ),
}


def sizes(model: Transformer) -> Transformer:
    """Without what its configuration does not say: its name, and where it is from."""
    return replace(model, name="", sources=())


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_is_the_packaged_model(name: str) -> None:
    assert sizes(config_model(PUBLISHED[name], "config.json")) == sizes(read_model(name))


def test_dense_layers_of_qwen_are_named_or_stepped_over() -> None:
    """Layer 1 by name, and each second by the step: layers count from 0, the step from 1."""
    stepped = QWEN3 | {"num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [1]}
    model = config_model(stepped, "config.json")
    mlps = [kind.mlp.value for run in model.runs for _ in range(run.repeat) for kind in run.kinds]
    assert mlps == ["dense", "dense", "dense", "experts", "dense", "experts"]
    assert model.ffn == 12_288


def test_sizes_that_a_published_file_leaves_out_are_those_of_its_class() -> None:
    """The text part of the 4B Gemma 3 names neither its vocabulary nor its heads."""
    left = ("vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    part = {key: size for key, size in GEMMA_3.items() if key not in left}
    model = config_model({"model_type": "gemma3", "text_config": part}, "c.json")
    assert sizes(model) == sizes(read_model("gemma-3-4b"))
    assert model.assumed == tuple(
        f"c.json leaves {name} out: {size} is taken, the default of Gemma3TextConfig"
        for name, size in (("vocab_size", 262_208), ("num_attention_heads", 8))
    )
    assert config_model(GEMMA_3, "c.json").assumed == ()
    hidden = {key: size for key, size in part.items() if key != "hidden_size"}
    assert "hidden_size: this key" in refusal(config_model, hidden, "c.json")


def test_the_pattern_of_gemma_says_which_layers_see_all() -> None:
    model = config_model(GEMMA_3 | {"sliding_window_pattern": 2}, "c.json")
    assert sum(many for one, many in model.kinds().items() if one.attention.value == "full") == 17


def test_no_type_is_both_read_and_refused() -> None:
    assert not {*UNMODELLED, *UNREAD} & {*FAMILIES}
    assert not {*UNMODELLED} & {*UNREAD}


def test_a_wrapper_names_its_text_part_by_itself() -> None:
    mistral = {"model_type": "mistral3", "text_config": PUBLISHED["mistral-7b-v0.1"]}
    assert config_model(mistral, "c.json") == config_model(PUBLISHED["mistral-7b-v0.1"], "c.json")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (DEEPSEEK_V3 | {"index_topk": 2048}, "index_topk '2048': sparse or compressed attention"),
        (usual(("falcon", 2, 64, 8, 99)), "is none of the families that are read"),
        (usual(("deepseek_v32", 61, 7168, 128, 9), **MLA), "'deepseek_v32': has sparse attention"),
        (usual(("qwen3_next", 2, 64, 8, 99)), "has gated delta nets (linear attention), which"),
        ({"model_type": "mamba2", "num_heads": 8}, "'mamba2': has Mamba-2 layers alone, whose"),
        ({"model_type": "x", "text_config": {"model_type": "qwen3_5_text"}}, "gated delta nets"),
        (GPT_OSS | {"layer_types": ["sliding_attention"]}, "entry for each of the 24 layers"),
        (GPT_OSS | {"layer_types": ["linear_attention"] * 24}, "layers other than full_attention"),
        (NANO | {"hybrid_override_pattern": "MX"}, "must be 52 letters"),
        (NANO | {"num_hidden_layers": 51}, "must be 51 letters"),
        (QWEN3 | {"mlp_only_layers": 5}, "mlp_only_layers '5': must be a list of whole numbers"),
        (QWEN3 | {"mlp_only_layers": ["0"]}, "mlp_only_layers 'list': must be a list of whole"),
        (QWEN3 | {"use_sliding_window": True, "max_window_layers": "a"}, "max_window_layers 'a'"),
        (DEEPSEEK_V3 | {"n_routed_experts": 0}, "n_routed_experts '0': must be a whole number"),
        (DEEPSEEK_V3 | {"num_experts_per_tok": 257}, "256 experts, 257 active"),
        (DEEPSEEK_V3 | {"topk_group": 9}, "8 groups, top_groups 9"),
        ({k: v for k, v in DEEPSEEK_V3.items() if k != "kv_lora_rank"}, "kv_lora_rank: this key"),
        ({k: v for k, v in QWEN3.items() if k != "num_experts"}, "num_experts: this key"),
        ({"model_type": "dbrx"} | {"n_layers": 1, "d_model": 8, "n_heads": 1}, "attn_config"),
        ({"model_type": "llava", "text_config": {"model_type": "bert"}}, "model_type 'bert'"),
    ],
)
def test_what_is_not_read_is_named(config: Config, said: str) -> None:
    text = refusal(config_model, config, "config.json")
    assert said in text
    assert "\n" not in text


KEYS = sorted(
    {key for config in PUBLISHED.values() for key in config.get("text_config", config)}
    | {"mlp_only_layers", "max_window_layers", "sliding_window_pattern", "moe_layer_freq"}
)


@given(
    st.sampled_from(sorted(PUBLISHED)), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)
)
def test_any_change_gives_a_model_or_one_clear_error(name: str, change: Config) -> None:
    config = PUBLISHED[name].get("text_config", PUBLISHED[name])
    found, said = found_or_refusal(config_model, config | change, "config.json")
    assert found.parameters > 0 if found else said.startswith("config.json")
