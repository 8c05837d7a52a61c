"""Models as YAML files: reading them, and those that come with the package.

A file, with all keys that must be there (:mod:`p2smt.workload.models.file_model` has the others):

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

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.workload.models.file_model import TransformerModel, build_transformer, dump_transformer
from p2smt.workload.transformer import Transformer

__all__ = ["dump_transformer", "model_from_data", "model_names", "model_text", "read_model"]

_PACKAGED = "p2smt.workload.models"
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
