"""The families of dense decoders whose configurations are read, as one table.

What their keys mean, and defaults of keys that are absent: ``configuration_*.py`` of
https://github.com/huggingface/transformers (src/transformers/models), and their MLPs (gated or
not) ``modeling_*.py`` beside.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.interop.models.sizes import (
    SizeOf,
    WindowOf,
    as_many,
    expanded,
    four_times,
    grouped,
    grouped_or,
    mpt_attention,
    multi_query,
    no_window,
    stated,
    switched_window,
    window,
)


@dataclass(frozen=True, slots=True)
class ConfigFamily:
    """How a family's ``config.json`` says what a model is.

    ``gated``: its MLP has two input matrices.  ``kv_heads``, ``ffn``, ``window``: how these are
    stated.  ``names``: further names of layers, hidden size and heads.  ``head_size``: elements of
    a head without ``head_dim`` (0: hidden / heads).  ``tied``: whether embedding and logits are one
    matrix where ``tie_word_embeddings`` is absent.  ``positions``: the most tokens of a sequence
    where ``max_position_embeddings`` is absent; a window is compared to it.
    """

    gated: bool
    kv_heads: SizeOf = grouped
    ffn: SizeOf = stated
    window: WindowOf = no_window
    names: tuple[str, str, str] = ("", "", "")
    head_size: int = 0
    has_head_dim: bool = True
    tied: bool = False
    positions: int = 0


_GPT2_NAMES = ("n_layer", "n_embd", "n_head")
FAMILIES: dict[str, ConfigFamily] = {
    "gemma": ConfigFamily(gated=True, kv_heads=grouped_or(16), head_size=256, tied=True),
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
    "mistral": ConfigFamily(
        gated=True, kv_heads=grouped_or(8), window=window(4096), positions=131_072
    ),
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
    "phi3": ConfigFamily(gated=True, window=window(0), positions=4096),
    "qwen2": ConfigFamily(
        gated=True, kv_heads=grouped_or(32), window=switched_window, positions=32_768
    ),
    "qwen3": ConfigFamily(
        gated=True, kv_heads=grouped_or(32), window=switched_window, head_size=128, positions=32_768
    ),
    "starcoder2": ConfigFamily(
        gated=False, kv_heads=grouped_or(2), window=window(0), tied=True, positions=4096
    ),
}
"""Families by their ``model_type``."""
