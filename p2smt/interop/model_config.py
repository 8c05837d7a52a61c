"""A ``config.json`` of Hugging Face to the sizes of a decoder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.interop.config_families import (
    FAMILIES,
    UNMODELLED,
    UNREAD,
    ConfigFamily,
    hybrid_layers,
    mamba,
    mla,
)
from p2smt.interop.config_keys import ConfigKeys
from p2smt.training.transformer import Attention, LayerKind, LayerRun, Mlp, Transformer

CONFIG = "config.json"
MAX_BYTES = 4 * 1024 * 1024
"""Of a configuration: those with lists per layer or label have some hundred kilobytes."""
MAX_NAME = 60
MAX_POSITIONS = 10**9
"""Positions that a model knows: 10 x 2^20 of Llama 4 Scout are more than any size."""


def read_config(path: str) -> Transformer:
    """The model that a ``config.json`` describes, or the one in a folder that has such a file.

    Keys that are absent have the defaults of transformers' configuration class of that type; sizes
    must be there, but for those that published files of that type leave out (``assumed``).

    Raises:
        InputError: no such file, not JSON, a ``model_type`` that is unknown or has layers that are
            not modelled, or a key that is missing or has a bad value.
    """
    file = os.path.join(path, CONFIG) if os.path.isdir(path) else path
    data = read_json(file, f"model file {file!r}", f"give a {CONFIG}", MAX_BYTES)
    return config_model(data, file)


def config_model(data: object, source: str) -> Transformer:
    """As :func:`read_config`, of the data of such a file; ``source`` names it."""
    if not isinstance(data, dict):
        raise InputError(source, "must be a JSON object", f"give a {CONFIG}")
    keys = text_part(ConfigKeys(data, source))
    try:
        return _model(keys, check_type(keys))
    except InputError as error:
        if error.given.startswith(source):
            raise
        raise InputError(f"{source}: {error.given}", error.rule, error.remedy) from None


def _model(given: ConfigKeys, family: ConfigFamily) -> Transformer:
    missing = {name: size for name, size in family.defaults.items() if not given.has(name)}
    keys = ConfigKeys({**given.data, **missing}, given.source)
    layers_name, hidden_name, heads_name = family.names
    layers = keys.count(*_names(layers_name, "num_hidden_layers"))
    hidden = keys.count(*_names(hidden_name, "hidden_size"))
    heads = keys.count(*_names(heads_name, "num_attention_heads"))
    kinds, window = layer_kinds(keys, family, layers)
    dense = any(kind.mlp is Mlp.DENSE for kind in kinds)
    sparse = any(kind.mlp is Mlp.EXPERTS for kind in kinds)
    latent = mla(keys) if family.latent else None
    alike = {LayerKind(mlp=Mlp.EXPERTS if sparse else Mlp.DENSE)}
    return Transformer(
        _name(keys),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if latent else family.kv_heads(keys, heads),
        ffn=family.ffn(keys, hidden) if dense else 0,
        gated=family.gated,
        vocab=keys.count("vocab_size"),
        head_size=latent.nope + latent.rope if latent else _head_size(keys, family, hidden, heads),
        tied=keys.switch("tie_word_embeddings", default=family.tied),
        sources=(keys.source,),
        experts=family.experts(keys) if family.experts and sparse else None,
        mla=latent,
        mamba=mamba(keys) if any(one.attention is Attention.MAMBA for one in kinds) else None,
        window=window,
        chunked=bool(window) and family.chunked,
        order=() if set(kinds) == alike else LayerRun.of(kinds),
        mtp=0 if family.hybrid else _ahead(keys),
        assumed=tuple(
            f"{given.source} leaves {name} out: {size} is taken, the default of {family.of_class}"
            for name, size in missing.items()
        ),
    )


def _ahead(keys: ConfigKeys) -> int:
    """Layers that predict later tokens."""
    named = (name for name in ("num_nextn_predict_layers", "num_mtp_modules") if keys.has(name))
    return keys.whole(next(named, ""), 0)


def layer_kinds(keys: ConfigKeys, family: ConfigFamily, layers: int) -> tuple[list[LayerKind], int]:
    """What each layer is made of, and the tokens that windowed attention sees (0: none has it).

    Raises:
        InputError: layers of a kind, or differences between layers, that are not modelled.
    """
    if keys.data.get("per_layer_config"):
        rule = "says that layers differ in size, which is not modelled"
        raise keys.error("per_layer_config", "{..}", rule)
    if family.hybrid:
        return hybrid_layers(keys, layers), 0
    tokens, windowed = family.window(keys, layers)
    longest = keys.optional("max_position_embeddings", 0, MAX_POSITIONS)
    windowed = frozenset() if longest and tokens >= longest else windowed
    sparse = set(family.sparse(keys, layers)) if family.experts else set()
    kinds = [
        LayerKind(
            Attention.WINDOW if at in windowed else Attention.FULL,
            Mlp.EXPERTS if at in sparse else Mlp.DENSE,
        )
        for at in range(layers)
    ]
    return kinds, tokens if windowed else 0


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


# What a configuration may say that the model does not hold: named, refused.


_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_SHOWN_KEYS, _DEPTH = 4, 1
_SPARSE = ("index_topk", "compress_ratios")
_TEXT_PARTS = ("text_config", "language_config", "llm_config")
_WRAPPED = {"gemma3": "gemma3_text", "llama4": "llama4_text", "mistral3": "mistral"}
"""Types of multimodal models, and of their text part where that names none."""


def text_part(keys: ConfigKeys) -> ConfigKeys:
    """The keys of the decoder of a multimodal model, where its type is read; else the same.

    The tower for images or sound is left out.
    """
    kind = keys.data.get("model_type")
    inner = [name for name, value in keys.data.items() if isinstance(value, dict)]
    names = [one for one in _TEXT_PARTS if one in inner]
    if kind in FAMILIES or not inner:
        return keys
    if not names:
        held = list(_decoders(keys.data, _DEPTH))
        return ConfigKeys(held[0], keys.source) if len(held) == 1 else keys
    part = keys.part(names[0]).data
    named = part.get("model_type") or _WRAPPED.get(str(kind))
    above = {key: keys.data[key] for key in ("_name_or_path",) if key in keys.data}
    return ConfigKeys({**above, **part, "model_type": named}, keys.source)


def _decoders(data: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """The parts of a configuration, of any name, whose type is read."""
    for part in (one for one in data.values() if isinstance(one, dict)):
        if part.get("model_type") in FAMILIES:
            yield part
        elif depth:
            yield from _decoders(part, depth - 1)


def check_type(keys: ConfigKeys) -> ConfigFamily:
    """The family of a configuration.

    Raises:
        InputError: it names none, none that is known, or an attention or experts that it lacks.
    """
    kind = keys.data.get("model_type")
    if not isinstance(kind, str) or not kind:
        found = ", ".join(str(key)[:40] for key in list(keys.data)[:_SHOWN_KEYS])
        rule = f"this key is missing, which says what the others mean ({found or 'none'})"
        raise InputError(f"{keys.source}: model_type", rule, "give a whole config.json")
    if keys.switch("is_encoder_decoder", default=False):
        raise keys.error("model_type", kind, "has an encoder; decoders alone are modelled")
    for key in _SPARSE:
        if keys.has(key):
            raise keys.error(key, keys.data[key], "sparse or compressed attention is not modelled")
    if kind in UNMODELLED:
        raise keys.error("model_type", kind, UNMODELLED[kind])
    if kind not in FAMILIES:
        others = f"is none of the families that are read: {', '.join(sorted(FAMILIES))}"
        rule = UNREAD.get(kind, others)
        raise keys.error("model_type", kind, rule, "write its sizes as a model file")
    if FAMILIES[kind].experts is None:
        _check_experts(keys)
    return FAMILIES[kind]


def _check_experts(keys: ConfigKeys) -> None:
    """Whether a dense family says more than one expert."""
    for name in _EXPERTS:
        value = keys.data.get(name)
        if isinstance(value, int) and value > 1:
            rule = f"is of a mixture of experts, which {keys.text('model_type')} is not"
            raise keys.error(name, value, rule)
