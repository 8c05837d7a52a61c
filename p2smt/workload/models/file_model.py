"""The shape of a model file: its keys as a pydantic model, to and from :class:`Transformer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.workload.transformer import MAX_SIZE, Transformer

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
