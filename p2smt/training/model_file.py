"""Models as YAML files: reading and writing them.

A file, with all keys that must be there (the model below has the others):

    layers: 32
    hidden: 4096
    heads: 32
    kv_heads: 8       # without it, as many as heads
    ffn: 14336
    gated: true       # SwiGLU: three matrices in the MLP, not two
    vocab: 128256     # rows of the embedding as it is trained, with what pads it

A mixture of experts has ``experts`` and, where not all layers are alike, their ``order``:

    order:
      - {repeat: 3, mlp: dense}
      - {repeat: 58, mlp: experts}
    experts: {count: 256, active: 8, width: 2048, shared_width: 2048}
"""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cache
from pathlib import Path

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.plans.training.file_model import LayerKindModel, LayerRunModel, TransformerModel
from p2smt.training.model_names import known_as, model_names, model_text
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)

_FILE_SUFFIXES = (".yaml", ".yml", ".json")


def read_model(name_or_path: str) -> Transformer:
    """The model of that name, by any usual writing of it, or in a YAML file.

    Raises:
        InputError: there is no such model or file (near names are listed), or the file is bad.
    """
    if name_or_path in model_names():
        return _packaged(name_or_path)
    if name_or_path.endswith(_FILE_SUFFIXES) or os.path.exists(name_or_path):
        return _parsed(read_text(name_or_path, "model file"), name_or_path)
    return _packaged(known_as(name_or_path))


@cache
def _packaged(name: str) -> Transformer:
    """A model that comes with the package; read once, as studies name one many times."""
    return _parsed(model_text(name), f"model {name}")


def model_from_data(data: object, source: str) -> Transformer:
    """The model in plain data; ``source`` names it in messages.

    Raises:
        InputError: a key is unknown, missing or has a bad value.
    """
    return build_transformer(validated(TransformerModel, data, source), source)


def _parsed(text: str, source: str) -> Transformer:
    return model_from_data(load_yaml(text, source), source)


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
            head_size=_head_size(model),
            tied=model.tied,
            sources=tuple(model.sources),
            experts=Experts(**model.experts.model_dump()) if model.experts else None,
            mla=LatentAttention(**model.mla.model_dump()) if model.mla else None,
            mamba=Mamba(**model.mamba.model_dump()) if model.mamba else None,
            window=model.window,
            chunked=model.chunked,
            order=tuple(
                _run(run, Mlp.EXPERTS if model.experts else Mlp.DENSE) for run in model.order
            ),
            mtp=model.mtp,
        )
    except InputError as error:
        raise InputError(f"{source}: {error.given}", error.rule, error.remedy) from None


def _head_size(model: TransformerModel) -> int:
    if model.mla and model.head_size is None:
        return model.mla.nope + model.mla.rope
    return head_size_of(model.head_size, model.hidden, model.heads)


def _run(run: LayerRunModel, usual: Mlp) -> LayerRun:
    if run.kinds and ({"attention", "mlp"} & run.model_fields_set):
        raise InputError("order: a run", "has both kinds and a kind of its own", "give one")
    kinds = run.kinds or [run]
    return LayerRun(run.repeat, tuple(_kind(kind, usual) for kind in kinds))


def _kind(kind: LayerKindModel, usual: Mlp) -> LayerKind:
    return LayerKind(Attention(kind.attention), Mlp(kind.mlp) if kind.mlp else usual)


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
    for key in ("window", "chunked", "mtp"):
        found |= {key: getattr(model, key)} if getattr(model, key) else {}
    for key in ("experts", "mla", "mamba"):
        found |= {key: asdict(part)} if (part := getattr(model, key)) else {}
    if model.order:
        found["order"] = [_run_data(run) for run in model.order]
    return found | ({"sources": list(model.sources)} if model.sources else {})


def _run_data(run: LayerRun) -> dict[str, object]:
    kinds = [{"attention": one.attention.value, "mlp": one.mlp.value} for one in run.kinds]
    own = kinds[0] if len(kinds) == 1 else {"kinds": kinds}
    return {"repeat": run.repeat, **own}
