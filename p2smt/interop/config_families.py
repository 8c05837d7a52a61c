"""How families of decoders say in their ``config.json`` what a model is, as one table.

What keys mean, and defaults of keys that are absent: ``configuration_*.py`` of
https://github.com/huggingface/transformers (src/transformers/models), and their MLPs (gated or
not) ``modeling_*.py`` beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from p2smt.interop.config_keys import ConfigKeys
from p2smt.plans.training.file_model import HYBRID
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    Mamba,
    Mlp,
)

SizeOf: TypeAlias = Callable[[ConfigKeys, int], int]
"""A size by the keys and a size that it may follow: heads, or the hidden size."""
WindowOf: TypeAlias = Callable[[ConfigKeys, int], tuple[int, frozenset[int]]]
"""Tokens that windowed attention sees (0: there is none) and the numbers of its layers, by the keys
and the number of layers."""
KV_HEADS = "num_key_value_heads"
WINDOW = "sliding_window"
_FULL = ("full_attention", "attention")
_WINDOWED = ("sliding_attention", "chunked_attention")


# Heads of keys and width of the MLP.


def as_many(_: ConfigKeys, heads: int) -> int:
    """Each head has keys of its own."""
    return heads


def grouped(keys: ConfigKeys, heads: int) -> int:
    """``num_key_value_heads``; without it as many as heads."""
    return keys.optional(KV_HEADS, heads)


def grouped_or(default: int) -> SizeOf:
    """``num_key_value_heads``; without the key the default, and null is as many as heads."""

    def found(keys: ConfigKeys, heads: int) -> int:
        return keys.optional(KV_HEADS, heads if KV_HEADS in keys.data else default)

    return found


def multi_query(keys: ConfigKeys, heads: int) -> int:
    """One for all heads, unless ``multi_query`` is false."""
    return 1 if keys.switch("multi_query", default=True) else heads


def mpt_attention(keys: ConfigKeys, heads: int) -> int:
    """By the type of attention in ``attn_config``.

    Raises:
        InputError: the type is none that transformers knows.
    """
    given = keys.data.get("attn_config") or {}
    kind = given.get("attn_type", "multihead_attention") if isinstance(given, dict) else given
    match kind:
        case "multihead_attention":
            return heads
        case "multiquery_attention":
            return 1
    rule = "must be multihead_attention or multiquery_attention"
    raise keys.error("attn_config.attn_type", kind, rule)


def stated(keys: ConfigKeys, _: int) -> int:
    """``intermediate_size``, which must be there."""
    return keys.count("intermediate_size")


def four_times(keys: ConfigKeys, hidden: int) -> int:
    """``n_inner``; without it four times the hidden size."""
    return keys.optional("n_inner", 4 * hidden)


def expanded(keys: ConfigKeys, hidden: int) -> int:
    """``expansion_ratio`` times the hidden size; without it four times."""
    return keys.optional("expansion_ratio", 4) * hidden


def wide(keys: ConfigKeys, _: int) -> int:
    """``intermediate_size_mlp``: the other name is the width of experts."""
    return keys.count("intermediate_size_mlp")


def dbrx_kv_heads(keys: ConfigKeys, heads: int) -> int:
    """``kv_n_heads`` of ``attn_config``."""
    return keys.part("attn_config").optional("kv_n_heads", heads)


# Windows.


def no_window(keys: ConfigKeys, layers: int) -> tuple[int, frozenset[int]]:
    """Attention sees all tokens before.

    Raises:
        InputError: ``layer_types`` names a layer with a window.
    """
    if windowed_layers(keys, layers, ()):
        rule = "names a window, which layers of this family do not have"
        raise keys.error("layer_types", keys.data["layer_types"], rule)
    return 0, frozenset()


def window(default: int, listed: Callable[[int], Iterable[int]] = range) -> WindowOf:
    """``sliding_window``; without the key the default (0: none), and null is none.

    Its layers are those that ``layer_types`` names; without that key ``listed`` of their number.
    """

    def found(keys: ConfigKeys, layers: int) -> tuple[int, frozenset[int]]:
        tokens = keys.optional(WINDOW, 0 if WINDOW in keys.data else default)
        return tokens, windowed_layers(keys, layers, listed(layers)) if tokens else frozenset()

    return found


def switched_window(keys: ConfigKeys, layers: int) -> tuple[int, frozenset[int]]:
    """``sliding_window`` where ``use_sliding_window`` is true, of layers from ``max_window_layers``
    on."""
    if not keys.switch("use_sliding_window", default=False):
        return no_window(keys, layers)
    last = range(keys.whole("max_window_layers", 28), layers)
    return window(4096, lambda _: last)(keys, layers)


def chunks(keys: ConfigKeys, layers: int) -> tuple[int, frozenset[int]]:
    """``attention_chunk_size``, of all layers but each fourth (those without rotation)."""
    tokens = keys.optional("attention_chunk_size", 0)
    usual = (layer for layer in range(layers) if (layer + 1) % 4)
    return tokens, windowed_layers(keys, layers, usual) if tokens else frozenset()


def every(period: int) -> Callable[[int], Iterable[int]]:
    """All layers but each so-manieth."""
    return lambda layers: (layer for layer in range(layers) if (layer + 1) % period)


def patterned_window(keys: ConfigKeys, layers: int) -> tuple[int, frozenset[int]]:
    """``sliding_window`` of all layers but each ``sliding_window_pattern``-th."""
    period = keys.optional("sliding_window_pattern", 6)
    return window(4096, every(period))(keys, layers)


def windowed_layers(keys: ConfigKeys, layers: int, usual: Iterable[int]) -> frozenset[int]:
    """The layers that ``layer_types`` says have a window; without the key the usual ones.

    Raises:
        InputError: a layer is of another kind.
    """
    if keys.data.get("layer_types") is None:
        return frozenset(usual)
    kinds = keys.entries("layer_types", layers)
    other = next((kind for kind in kinds if kind not in (*_FULL, *_WINDOWED)), None)
    if other is not None:
        rule = "layers other than full_attention and those with a window are not modelled"
        raise keys.error("layer_types", other, rule)
    return frozenset(at for at, kind in enumerate(kinds) if kind in _WINDOWED)


# Experts, and which layers have them.

ExpertsOf: TypeAlias = Callable[[ConfigKeys], Experts]
SparseOf: TypeAlias = Callable[[ConfigKeys, int], Iterable[int]]
"""The numbers of the layers with experts, by the keys and the number of layers."""


def local_experts(keys: ConfigKeys) -> Experts:
    """``num_local_experts`` of width ``intermediate_size``."""
    active = keys.count("num_experts_per_tok", "experts_per_token")
    return Experts(keys.count("num_local_experts", "num_experts"), active, stated(keys, 0))


def clamped_experts(keys: ConfigKeys) -> Experts:
    """The same with biases and clamped activations, as all gpt-oss have."""
    return replace(local_experts(keys), clamped=True)


def llama_4_experts(keys: ConfigKeys) -> Experts:
    """One shared expert is as wide as the others."""
    width = stated(keys, 0)
    return Experts(keys.count("num_local_experts"), keys.count("num_experts_per_tok"), width, width)


def qwen_experts(keys: ConfigKeys) -> Experts:
    """``num_experts`` of width ``moe_intermediate_size``, and perhaps a shared one."""
    return Experts(
        keys.count("num_experts"),
        keys.count("num_experts_per_tok"),
        keys.count("moe_intermediate_size"),
        keys.optional("shared_expert_intermediate_size", 0),
    )


def routed_experts(keys: ConfigKeys) -> Experts:
    """``n_routed_experts`` and shared ones of width ``moe_intermediate_size``, in groups."""
    width, groups = keys.count("moe_intermediate_size"), keys.optional("n_group", 1)
    return Experts(
        keys.count("n_routed_experts"),
        keys.count("num_experts_per_tok"),
        width,
        shared_width=keys.optional(
            "moe_shared_expert_intermediate_size", keys.whole("n_shared_experts", 0) * width
        ),
        latent=keys.optional("moe_latent_size", 0),
        groups=groups if groups > 1 else 0,
        top_groups=keys.count("topk_group") if groups > 1 else 0,
    )


def dbrx_experts(keys: ConfigKeys) -> Experts:
    """Those of ``ffn_config``."""
    ffn = keys.part("ffn_config")
    return Experts(
        ffn.count("moe_num_experts"), ffn.count("moe_top_k"), ffn.count("ffn_hidden_size")
    )


def all_layers(_: ConfigKeys, layers: int) -> Iterable[int]:
    """Each layer has experts."""
    return range(layers)


def after_dense(keys: ConfigKeys, layers: int) -> Iterable[int]:
    """From ``first_k_dense_replace`` on, each ``moe_layer_freq``-th."""
    first, each = keys.whole("first_k_dense_replace", 0), keys.optional("moe_layer_freq", 1)
    return (layer for layer in range(first, layers) if layer % each == 0)


def by_step(keys: ConfigKeys, layers: int) -> Iterable[int]:
    """Each ``decoder_sparse_step``-th but ``mlp_only_layers``."""
    step, dense = keys.optional("decoder_sparse_step", 1), keys.numbers("mlp_only_layers")
    return (layer for layer in range(layers) if (layer + 1) % step == 0 and layer not in dense)


def interleaved(keys: ConfigKeys, layers: int) -> Iterable[int]:
    """Each ``interleave_moe_layer_step``-th."""
    step = keys.count("interleave_moe_layer_step")
    return range(step - 1, layers, step)


def mla(keys: ConfigKeys) -> LatentAttention:
    """Latent attention by its ranks; ``q_lora_rank`` may be null."""
    return LatentAttention(
        keys.count("kv_lora_rank"),
        keys.count("qk_nope_head_dim"),
        keys.count("qk_rope_head_dim"),
        keys.count("v_head_dim"),
        keys.optional("q_lora_rank", 0),
    )


def hybrid_layers(keys: ConfigKeys, layers: int) -> list[LayerKind]:
    """The layers of ``hybrid_override_pattern``: M, *, E and -.

    Raises:
        InputError: another letter, or another number of them.
    """
    pattern = keys.text("hybrid_override_pattern")
    if len(pattern) != layers or not set(pattern) <= set(HYBRID):
        rule = f"must be {layers} letters (num_hidden_layers) of {' '.join(HYBRID)}"
        raise keys.error("hybrid_override_pattern", pattern, rule)
    kinds = (HYBRID[letter] for letter in pattern)
    return [LayerKind(Attention(one["attention"]), Mlp(one["mlp"])) for one in kinds]


def mamba(keys: ConfigKeys) -> Mamba:
    """The sizes of the Mamba-2 layers of a hybrid."""
    return Mamba(
        keys.count("mamba_num_heads"),
        keys.count("mamba_head_dim"),
        keys.count("n_groups"),
        keys.count("ssm_state_size"),
    )


@dataclass(frozen=True, slots=True)
class ConfigFamily:
    """How a family's ``config.json`` says what a model is.

    ``gated``: its MLP has two input matrices.  ``kv_heads``, ``ffn``, ``window``: how these are
    stated; ``ffn`` is asked for where a layer is dense.  ``names``: further names of layers, hidden
    size and heads.  ``head_size``: elements of a head without ``head_dim`` (0: hidden / heads).
    ``tied``: whether embedding and logits are one matrix where ``tie_word_embeddings`` is absent.
    ``experts`` and ``sparse``: its experts, and which layers have them.  ``latent``: attention is
    MLA; ``hybrid``: layers are those of a pattern; ``chunked``: windows are chunks.  ``defaults``:
    sizes that its published files leave to the configuration class ``of_class``.
    """

    gated: bool
    kv_heads: SizeOf = grouped
    ffn: SizeOf = stated
    window: WindowOf = no_window
    names: tuple[str, str, str] = ("", "", "")
    head_size: int = 0
    has_head_dim: bool = True
    tied: bool = False
    experts: ExpertsOf | None = None
    sparse: SparseOf = all_layers
    latent: bool = False
    hybrid: bool = False
    chunked: bool = False
    defaults: Mapping[str, int] = field(default_factory=dict)
    of_class: str = ""


_DEEPSEEK = ConfigFamily(gated=True, experts=routed_experts, sparse=after_dense, latent=True)
_QWEN_MOE = ConfigFamily(
    gated=True,
    kv_heads=grouped_or(16),
    window=switched_window,
    experts=qwen_experts,
    sparse=by_step,
)
_GPT2_NAMES = ("n_layer", "n_embd", "n_head")
FAMILIES: dict[str, ConfigFamily] = {
    "gemma": ConfigFamily(gated=True, kv_heads=grouped_or(16), head_size=256, tied=True),
    "gemma2": ConfigFamily(
        gated=True, kv_heads=grouped_or(4), window=window(4096, every(2)), head_size=256, tied=True
    ),
    "gemma3_text": ConfigFamily(
        gated=True,
        kv_heads=grouped_or(4),
        window=patterned_window,
        head_size=256,
        tied=True,
        defaults={"vocab_size": 262_208, "num_attention_heads": 8},
        of_class="Gemma3TextConfig",
    ),
    "gpt2": ConfigFamily(
        gated=False,
        kv_heads=as_many,
        ffn=four_times,
        names=_GPT2_NAMES,
        has_head_dim=False,
        tied=True,
    ),
    "gpt_bigcode": ConfigFamily(
        gated=False,
        kv_heads=multi_query,
        ffn=four_times,
        names=_GPT2_NAMES,
        has_head_dim=False,
        tied=True,
    ),
    "gpt_neox": ConfigFamily(gated=False, kv_heads=as_many, has_head_dim=False),
    "granite": ConfigFamily(gated=True),
    "llama": ConfigFamily(gated=True),
    "mistral": ConfigFamily(gated=True, kv_heads=grouped_or(8), window=window(4096)),
    "mpt": ConfigFamily(
        gated=False,
        kv_heads=mpt_attention,
        ffn=expanded,
        names=("n_layers", "d_model", "n_heads"),
        has_head_dim=False,
        tied=True,
    ),
    "nemotron": ConfigFamily(gated=False),
    "olmo": ConfigFamily(gated=True),
    "olmo2": ConfigFamily(gated=True),
    "phi3": ConfigFamily(gated=True, window=window(0)),
    "qwen2": ConfigFamily(gated=True, kv_heads=grouped_or(32), window=switched_window),
    "qwen3": ConfigFamily(
        gated=True, kv_heads=grouped_or(32), window=switched_window, head_size=128
    ),
    "starcoder2": ConfigFamily(gated=False, kv_heads=grouped_or(2), window=window(0), tied=True),
    "dbrx": ConfigFamily(
        gated=True,
        kv_heads=dbrx_kv_heads,
        names=("n_layers", "d_model", "n_heads"),
        has_head_dim=False,
        experts=dbrx_experts,
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "glm4_moe": ConfigFamily(gated=True, experts=routed_experts, sparse=after_dense),
    "gpt_oss": ConfigFamily(
        gated=True,
        kv_heads=grouped_or(8),
        window=window(128, every(2)),
        head_size=64,
        experts=clamped_experts,
    ),
    "granitemoe": ConfigFamily(gated=True, experts=local_experts),
    "llama4_text": ConfigFamily(
        gated=True,
        kv_heads=grouped_or(8),
        ffn=wide,
        window=chunks,
        head_size=128,
        experts=llama_4_experts,
        sparse=interleaved,
        chunked=True,
    ),
    "minimax_m2": ConfigFamily(gated=True, experts=local_experts),
    "mixtral": ConfigFamily(
        gated=True, kv_heads=grouped_or(8), window=window(0), experts=local_experts
    ),
    "nemotron_h": ConfigFamily(gated=False, experts=routed_experts, hybrid=True),
    "olmoe": ConfigFamily(gated=True, experts=local_experts),
    "phimoe": ConfigFamily(
        gated=True, kv_heads=grouped_or(8), window=window(0), experts=local_experts
    ),
    "qwen2_moe": _QWEN_MOE,
    "qwen3_moe": _QWEN_MOE,
}
"""Families by their ``model_type``."""

_INDEXED = "has sparse attention to the tokens that an indexer picks, which is not modelled"
_LINEAR = "has linear attention, which is not modelled"
_DELTA = "has gated delta nets (linear attention), which are not modelled"
_SCAN = "has Mamba-1 layers, which are not modelled (Mamba-2 layers are)"
UNMODELLED: Mapping[str, str] = {
    "deepseek_v32": _INDEXED,
    "glm_moe_dsa": _INDEXED,
    "qwen3_next": _DELTA,
    "qwen3_5_text": _DELTA,
    "qwen3_5_moe_text": _DELTA,
    "kimi_linear": _DELTA,
    "minimax": _LINEAR,
    "minimax_text_01": _LINEAR,
    "minimax_m1": _LINEAR,
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv6", "rwkv7"), _LINEAR),
    "recurrent_gemma": "has recurrent layers (RG-LRU), which are not modelled",
    "mamba": _SCAN,
    "falcon_mamba": _SCAN,
    "jamba": _SCAN,
    "zamba": _SCAN,
    "zamba2": "has attention layers that share their weights, which is not modelled",
    "falcon_h1": "has attention and Mamba-2 side by side in a layer, which is not modelled",
    "gemma3n_text": "has an embedding in each layer, which is not modelled",
}
"""Types of decoders with layers of kinds that there are none of here, and which these are."""
UNREAD: Mapping[str, str] = {
    "mamba2": "has Mamba-2 layers alone, whose keys are not read (those of nemotron_h are)",
    "bamba": "is a hybrid whose keys are not read (those of nemotron_h are)",
    "granitemoehybrid": "is a hybrid whose keys are not read (those of nemotron_h are)",
    "hunyuan_v1_moe": "may say experts layer by layer, in keys that are not read",
    "ernie4_5_moe": "says experts in keys that are not read",
}
"""Types whose layers a model file can tell, and what of their keys is not read."""
