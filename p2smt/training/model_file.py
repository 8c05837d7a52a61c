"""Models as YAML files: reading them, and those that come with the package.

A file, with all keys that must be there (the model below has the others):

    layers: 32
    hidden: 4096
    heads: 32
    kv_heads: 8       # without it, as many as heads
    ffn: 14336
    gated: true       # SwiGLU: three matrices in the MLP, not two
    vocab: 128256     # rows of the embedding as it is trained, with what pads it
"""

from __future__ import annotations

import difflib
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from p2smt.errors import InputError
from p2smt.files.validation import StrictModel, validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.training.transformer import MAX_SIZE, Transformer

__all__ = ["dump_transformer", "model_from_data", "model_names", "model_text", "read_model"]

_PACKAGED = "p2smt.training.models"
_SUFFIX = ".yaml"
_FILE_SUFFIXES = (".yaml", ".yml", ".json")
_MIXTURE = re.compile(r"moe|mixtral|deepseek-?(v[2-9]|r1)|gpt-oss|llama-?4|a\d+b$|\d+x\d+b", re.I)
"""Names of known mixtures of experts."""
MOST_NEAR = 5
"""Names listed where a name is not known."""


def model_names() -> tuple[str, ...]:
    """The models that come with the package, sorted."""
    names = (entry.name for entry in files(_PACKAGED).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def model_text(name: str) -> str:
    """The YAML text of a model that comes with the package, with its sources.

    Raises:
        InputError: there is no model of that name.
    """
    if name not in model_names():
        raise _unknown(name)
    return files(_PACKAGED).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def read_model(name_or_path: str) -> Transformer:
    """The model of that name, or in a YAML file.

    Raises:
        InputError: there is no such model or file (near names are listed), or the file is bad.
    """
    if name_or_path in model_names():
        return _parsed(model_text(name_or_path), f"model {name_or_path}")
    by_path = os.sep in name_or_path or os.path.exists(name_or_path)
    if name_or_path.endswith(_FILE_SUFFIXES) or by_path:
        return _parsed(read_text(name_or_path, "model file"), name_or_path)
    raise _unknown(name_or_path)


def model_from_data(data: object, source: str) -> Transformer:
    """The model in plain data; ``source`` names it in messages.

    Raises:
        InputError: a key is unknown, missing or has a bad value.
    """
    return build_transformer(validated(TransformerModel, data, source), source)


def _parsed(text: str, source: str) -> Transformer:
    return model_from_data(load_yaml(text, source), source)


def _unknown(name: str) -> InputError:
    """Names near the one given, or all."""
    if _MIXTURE.search(name[:60]):
        rule = "is a mixture of experts (MoE), which is not modelled: dense transformers are"
        raise InputError(f"model {name[:60]!r}", rule, "name a dense model")
    known = model_names()
    near = difflib.get_close_matches(name[:60].lower(), known, n=MOST_NEAR, cutoff=0.5)
    remedy = f"did you mean {', '.join(near)}?" if near else f"the models are {', '.join(known)}"
    return InputError(f"model {name[:60]!r}", "is neither a known model nor a file", remedy)


# The shape of a model file: its keys as a pydantic model, to and from :class:`Transformer`.


ModelSize = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_SIZE})]


def _as_switch(value: object) -> object:
    """0 and 1 as false and true; others as they are."""
    return bool(value) if type(value) is int and value in (0, 1) else value


ModelSwitch = Annotated[
    bool, BeforeValidator(_as_switch, json_schema_input_type=bool | Literal[0, 1])
]
_EXPERTS = ("experts", "num_experts", "expert_ffn", "topk", "router")


class TransformerModel(StrictModel):
    """A model file; without ``kv_heads`` as many as heads, ``head_size`` is hidden / heads.

    Without ``name`` the file's; ``gated`` and ``tied`` may be 0 or 1, as in files of runs.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "$comment": "Not said here: kv_heads divides heads; without head_size heads divides "
            "hidden."
        }
    )

    name: Annotated[str, Field(min_length=1)] | None = None
    layers: ModelSize
    hidden: ModelSize
    heads: ModelSize
    kv_heads: ModelSize | None = None
    ffn: ModelSize
    gated: ModelSwitch
    vocab: ModelSize
    head_size: ModelSize | None = None
    tied: ModelSwitch = False
    sources: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _dense(cls, data: Any) -> Any:
        """What has experts, or is a config.json, is told so: other keys it has are not all."""
        if isinstance(data, dict) and (found := next((k for k in _EXPERTS if k in data), None)):
            rule = "a mixture of experts (MoE) is not modelled, dense transformers are"
            raise InputError(f"key {found}", rule, "name a dense model")
        if isinstance(data, dict) and "model_type" in data:
            rule = "is a key of a config.json of Hugging Face, and this is read as a model file"
            raise InputError("key model_type", rule, "name the file config.json")
        return data


def build_transformer(model: TransformerModel, source: str) -> Transformer:
    """The model that a file describes.

    Raises:
        InputError: a size is out of range, or sizes do not divide each other; names ``source``.
    """
    try:
        return Transformer(
            model.name or Path(source).stem,
            layers=model.layers,
            hidden=model.hidden,
            heads=model.heads,
            kv_heads=model.heads if model.kv_heads is None else model.kv_heads,
            ffn=model.ffn,
            gated=model.gated,
            vocab=model.vocab,
            head_size=head_size_of(model.head_size, model.hidden, model.heads),
            tied=model.tied,
            sources=tuple(model.sources),
        )
    except InputError as error:
        raise InputError(f"{source}: {error.given}", error.rule, error.remedy) from None


def head_size_of(given: int | None, hidden: int, heads: int) -> int:
    """Elements of a head: as given, or hidden / heads.

    Raises:
        InputError: it is not given, and heads do not divide hidden.
    """
    if given is not None:
        return given
    if heads < 1 or hidden % heads:
        rule = "heads must divide hidden where head_size is not given"
        raise InputError(f"hidden {hidden}, {heads} heads", rule, "add head_size")
    return hidden // heads


def dump_transformer(model: Transformer) -> dict[str, object]:
    """A model as plain data for JSON or YAML; reading it back gives an equal one."""
    keys = ("name", "layers", "hidden", "heads", "kv_heads", "ffn", "gated", "vocab", "head_size")
    found = {key: getattr(model, key) for key in (*keys, "tied")}
    return found | ({"sources": list(model.sources)} if model.sources else {})
