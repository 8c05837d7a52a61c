"""A ``config.json`` of Hugging Face to the sizes of a dense decoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.training.transformer import MAX_SIZE, Transformer

CONFIG = "config.json"
MAX_BYTES = 4 * 1024 * 1024
"""Of a configuration: those with lists per layer or label have some hundred kilobytes."""
MAX_NAME = 60


def read_config(path: str, sequence: int | None = None) -> Transformer:
    """The model that a ``config.json`` describes, or the one in a folder that has such a file.

    ``sequence``: tokens of a sequence, where they are known: a window that is no shorter is none.
    Keys that are absent have the defaults of transformers' configuration class of that type; sizes
    must be there.

    Raises:
        InputError: no such file, not JSON, an unknown ``model_type``, a key that is missing or has
            a bad value, a mixture of experts, or a sliding window.
    """
    file = os.path.join(path, CONFIG) if os.path.isdir(path) else path
    data = read_json(file, f"model file {file!r}", f"give a {CONFIG}", MAX_BYTES)
    return config_model(data, file, sequence)


def config_model(data: object, source: str, sequence: int | None = None) -> Transformer:
    """As :func:`read_config`, of the data of such a file; ``source`` names it."""
    if not isinstance(data, dict):
        raise InputError(source, "must be a JSON object", f"give a {CONFIG}")
    keys = ConfigKeys(data, source, sequence)
    try:
        return _model(keys, check_type(keys))
    except InputError as error:
        if error.given.startswith(source):
            raise
        raise InputError(f"{source}: {error.given}", error.rule, error.remedy) from None


def _model(keys: ConfigKeys, family: ConfigFamily) -> Transformer:
    layers_name, hidden_name, heads_name = family.names
    layers = keys.count(*_names(layers_name, "num_hidden_layers"))
    hidden = keys.count(*_names(hidden_name, "hidden_size"))
    heads = keys.count(*_names(heads_name, "num_attention_heads"))
    check_layers(keys, family, layers)
    return Transformer(
        _name(keys),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=family.kv_heads(keys, heads),
        ffn=family.ffn(keys, hidden),
        gated=family.gated,
        vocab=keys.count("vocab_size"),
        head_size=_head_size(keys, family, hidden, heads),
        tied=keys.switch("tie_word_embeddings", default=family.tied),
        sources=(keys.source,),
    )


def _names(own: str, usual: str) -> tuple[str, ...]:
    return (own, usual) if own else (usual,)


def _head_size(keys: ConfigKeys, family: ConfigFamily, hidden: int, heads: int) -> int:
    """``head_dim``, or the family's own, or hidden / heads.

    Raises:
        InputError: heads do not divide the hidden size.
    """
    if family.has_head_dim and keys.has("head_dim"):
        return keys.count("head_dim")
    if family.head_size:
        return family.head_size
    if hidden % heads:
        given = f"{keys.source}: hidden size {hidden}, {heads} heads"
        raise InputError(given, "heads must divide it where head_dim is absent", "add head_dim")
    return hidden // heads


def _name(keys: ConfigKeys) -> str:
    """What the configuration calls the model, or the name of its folder, or its type."""
    said = keys.text("_name_or_path").rstrip("/").rpartition("/")[2]
    path = Path(keys.source)
    beside = path.parent.name if path.name == CONFIG else path.stem
    found = said or beside or keys.text("model_type")
    return "".join(letter for letter in found if letter.isprintable())[:MAX_NAME] or "model"


# What a ``config.json`` says, key by key; each wrong or missing one is named.


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """The keys of a configuration; ``source`` names it in messages.

    ``sequence``: tokens of the sequences that it is read for; None: any that the model can have.
    A key may have several names, of which the first that is there counts; null is as good as none.
    """

    data: Mapping[str, Any]
    source: str
    sequence: int | None = None

    def has(self, *names: str) -> bool:
        """Whether one of the names has a value other than null."""
        return any(self.data.get(name) is not None for name in names)

    def count(self, *names: str) -> int:
        """A whole number that must be there.

        Raises:
            InputError: it is missing, or no whole number from 1 up.
        """
        if not self.has(*names):
            given = f"{self.source}: {' or '.join(names)}"
            raise InputError(given, "this key is missing", "add it: the model's size rests on it")
        return self._whole(*self._found(*names))

    def optional(self, name: str, default: int) -> int:
        """A whole number that need not be there.

        Raises:
            InputError: it is no whole number from 1 up.
        """
        return self._whole(name, self.data[name]) if self.has(name) else default

    def switch(self, name: str, default: bool) -> bool:
        """Whether true.

        Raises:
            InputError: it is neither true nor false.
        """
        found = self.data[name] if self.has(name) else default
        if not isinstance(found, bool):
            raise self.error(name, found, "must be true or false")
        return found

    def text(self, name: str) -> str:
        """A text; empty where there is none."""
        found = self.data.get(name)
        return found if isinstance(found, str) else ""

    def error(self, name: str, value: object, rule: str, remedy: str = "") -> InputError:
        """That a key's value breaks a rule."""
        shown = value if isinstance(value, str | int | float) else type(value).__name__
        return InputError(f"{self.source}: {name} {str(shown)[:60]!r}", rule, remedy)

    def _found(self, *names: str) -> tuple[str, Any]:
        return next((name, self.data[name]) for name in names if self.has(name))

    def _whole(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
            raise self.error(name, value, f"must be a whole number from 1 to {MAX_SIZE}")
        return value


# What a configuration may say that the model of a dense decoder does not hold: named, refused.


_MIXTURES = frozenset(
    (
        *("arctic", "dbrx", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4v_moe", "gpt_oss"),
        *("grok-1", "jamba", "kimi_k2", "llama4", "llama4_text", "minimax", "mixtral", "phimoe"),
        "switch_transformers",
    )
)
_EXPERTS = (
    *("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "moe_intermediate_size",
)
_TEXT_PARTS = ("text_config", "language_config", "llm_config")
_FULL = ("full_attention", "attention")
_SLIDING = "sliding_attention"
_NO_WINDOW = "sliding windows of attention are not modelled"


def check_type(keys: ConfigKeys) -> ConfigFamily:
    """The family of a configuration.

    Raises:
        InputError: it names none, none that is known, or a mixture of experts.
    """
    kind = keys.data.get("model_type")
    if not isinstance(kind, str) or not kind:
        rule = "this key is missing, which says what the others mean"
        raise InputError(f"{keys.source}: model_type", rule, "give a whole config.json")
    _check_experts(keys, kind)
    if keys.switch("is_encoder_decoder", default=False):
        raise keys.error("model_type", kind, "has an encoder; decoders alone are modelled")
    if kind not in FAMILIES:
        _check_wrapper(keys, kind)
        rule = f"is none of the dense decoders that are read: {', '.join(FAMILIES)}"
        raise keys.error("model_type", kind, rule, "write its sizes as a model file")
    return FAMILIES[kind]


def _check_wrapper(keys: ConfigKeys, kind: str) -> None:
    """A model of several parts has a configuration for each, and that of its text may be read.

    Raises:
        InputError: it is one, and its text part is.
    """
    for name in _TEXT_PARTS:
        part = keys.data.get(name)
        inner = part.get("model_type") if isinstance(part, Mapping) else None
        if inner in FAMILIES:
            rule = f"holds models of several kinds, of which {name} ({inner}) can be read"
            remedy = f"save what stands under {name} as a file of its own, and give that"
            raise keys.error("model_type", kind, rule, remedy)


def _check_experts(keys: ConfigKeys, kind: str) -> None:
    """A mixture of experts is told by its type, or by a key that says more than one expert."""
    counted = [name for name in _EXPERTS if _several(keys.data.get(name))]
    if kind in _MIXTURES or "moe" in kind.lower().split("_") or kind.lower().endswith("moe"):
        given, value = "model_type", kind
    elif counted:
        given, value = counted[0], keys.data[counted[0]]
    else:
        return
    rule = "is of a mixture of experts (MoE), which is not modelled: dense transformers are"
    raise keys.error(given, value, rule)


def _several(value: object) -> bool:
    return isinstance(value, int) and value > 1


def check_layers(keys: ConfigKeys, family: ConfigFamily, layers: int) -> None:
    """Whether every layer attends to all tokens before, and all layers are alike.

    Raises:
        InputError: a sliding window is in force, or layers differ in kind or size.
    """
    _check_kinds(keys)
    if keys.data.get("per_layer_config"):
        rule = "says that layers differ, and the model has equal ones"
        raise keys.error("per_layer_config", "{..}", rule)
    seen = family.window(keys, layers)
    longest = keys.optional("max_position_embeddings", family.positions)
    if not seen or seen >= longest or _never_hides(keys, seen):
        return
    stated = "" if keys.has("sliding_window") else " (the default where the key is absent)"
    if keys.sequence is None:
        rule = f"is in force below {longest} positions{stated}: {_NO_WINDOW}"
        remedy = "write null where sequences are no longer than the window"
        raise keys.error("sliding_window", seen, rule, remedy)
    rule = f"is in force in sequences of {keys.sequence} tokens{stated}: {_NO_WINDOW}"
    raise keys.error("sliding_window", seen, rule, f"take sequences of at most {seen} tokens")


def _never_hides(keys: ConfigKeys, seen: int) -> bool:
    """Whether no sequence is longer than a window, as far as that is known."""
    return keys.sequence is not None and keys.sequence <= seen


def _check_kinds(keys: ConfigKeys) -> None:
    kinds = keys.data.get("layer_types")
    if kinds is None:
        return
    if not isinstance(kinds, list):
        raise keys.error("layer_types", kinds, "must be a list")
    full = (*_FULL, _SLIDING) if _never_hides(keys, keys.optional("sliding_window", 0)) else _FULL
    if _SLIDING in kinds and _SLIDING not in full:
        raise keys.error("layer_types", _SLIDING, _NO_WINDOW)
    other = next((kind for kind in kinds if kind not in full), None)
    if other is not None:
        raise keys.error("layer_types", other, "layers other than full_attention are not modelled")


# How families state heads of keys, width of the MLP and windows: small functions for the table.
# Defaults are those of transformers' configuration classes.


SizeOf: TypeAlias = Callable[[ConfigKeys, int], int]
"""A size by the keys and a size that it may follow: heads, or the hidden size."""
WindowOf: TypeAlias = Callable[[ConfigKeys, int], int]
"""Tokens that attention sees, 0 where all, by the keys and the number of layers."""
KV_HEADS = "num_key_value_heads"
WINDOW = "sliding_window"


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


def no_window(_: ConfigKeys, __: int) -> int:
    """Attention sees all tokens before."""
    return 0


def window(default: int) -> WindowOf:
    """``sliding_window``; without the key the default (0: none), and null is none."""

    def found(keys: ConfigKeys, _: int) -> int:
        return keys.optional(WINDOW, 0 if WINDOW in keys.data else default)

    return found


def switched_window(keys: ConfigKeys, layers: int) -> int:
    """``sliding_window`` where ``use_sliding_window`` is true, of layers from ``max_window_layers``
    on; ``layer_types`` is judged by itself."""
    if not keys.switch("use_sliding_window", default=False) or keys.has("layer_types"):
        return 0
    first = keys.data.get("max_window_layers", 28)
    if isinstance(first, int) and first >= layers:
        return 0
    return window(4096)(keys, layers)


# The families of dense decoders whose configurations are read, as one table.
# What their keys mean, and defaults of keys that are absent: ``configuration_*.py`` of
# https://github.com/huggingface/transformers (src/transformers/models), and their MLPs (gated or
# not) ``modeling_*.py`` beside.


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
