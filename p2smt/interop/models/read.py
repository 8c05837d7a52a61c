"""A ``config.json`` of Hugging Face to the sizes of a dense decoder."""

from __future__ import annotations

import os
from pathlib import Path

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.interop.models.families import ConfigFamily
from p2smt.interop.models.keys import ConfigKeys
from p2smt.interop.models.refusals import check_layers, check_type
from p2smt.workload.transformer import Transformer

CONFIG = "config.json"
MAX_BYTES = 4 * 1024 * 1024
"""Of a configuration: those with lists per layer or label have some hundred kilobytes."""
MAX_NAME = 60


def read_config(path: str) -> Transformer:
    """The model that a ``config.json`` describes, or the one in a folder that has such a file.

    Keys that are absent have the defaults of transformers' configuration class of that type; sizes
    must be there.

    Raises:
        InputError: no such file, not JSON, an unknown ``model_type``, a key that is missing or has
            a bad value, a mixture of experts, or a sliding window.
    """
    file = os.path.join(path, CONFIG) if os.path.isdir(path) else path
    data = read_json(file, f"model file {file!r}", f"give a {CONFIG}", MAX_BYTES)
    return config_model(data, file)


def config_model(data: object, source: str) -> Transformer:
    """As :func:`read_config`, of the data of such a file; ``source`` names it."""
    if not isinstance(data, dict):
        raise InputError(source, "must be a JSON object", f"give a {CONFIG}")
    keys = ConfigKeys(data, source)
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
