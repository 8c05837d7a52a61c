"""A model with what the names of its weights need: its family, and which matrices have biases.

Names in published files are those that serving frameworks look for when they load such files:
``load_weights`` and the modules of vLLM 0.11.0 (its wheel), ``vllm/model_executor/models/``
``llama.py``, ``qwen2.py``, ``qwen3.py``, ``mixtral.py`` (361-363), ``qwen2_moe.py``,
``qwen3_moe.py`` and ``deepseek_v2.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.interop.config_keys import ConfigKeys
from p2smt.interop.model_config import CONFIG, MAX_BYTES, config_model, text_part
from p2smt.training import model_file
from p2smt.training.model_names import model_names
from p2smt.training.transformer import Transformer


@dataclass(frozen=True, slots=True)
class WeightFamily:
    """What a family's layers have besides the matrices that all have, and what these are called.

    ``query_bias``: q, k and v have biases; ``may_bias``: they and o have where ``attention_bias``
    is true.  ``head_norms``: queries and keys have a norm over the elements of a head.  ``router``
    and ``experts``: where these stand in a layer; ``matrices``: gate, up and down of an expert.
    ``shared``: where the shared experts stand (empty: it has none), ``shared_gate``: they have a
    gate.  ``router_bias``: the correction that balances experts (empty: none).  ``sequence``: vLLM
    holds shared experts whole where it shares sequences among the ranks of experts.
    """

    query_bias: bool = False
    may_bias: bool = False
    head_norms: bool = False
    router: str = "mlp.gate"
    experts: str = "mlp.experts"
    matrices: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    shared: str = ""
    shared_gate: str = ""
    router_bias: str = ""
    sequence: bool = False


_DEEPSEEK_2 = WeightFamily(shared="mlp.shared_experts", sequence=True)
_DEEPSEEK_3 = replace(_DEEPSEEK_2, router_bias="mlp.gate.e_score_correction_bias")
WEIGHT_FAMILIES: Mapping[str, WeightFamily] = {
    "llama": WeightFamily(may_bias=True),
    "mistral": WeightFamily(),
    "qwen2": WeightFamily(query_bias=True),
    "qwen3": WeightFamily(may_bias=True, head_norms=True),
    "mixtral": WeightFamily(
        router="block_sparse_moe.gate",
        experts="block_sparse_moe.experts",
        matrices=("w1", "w3", "w2"),
    ),
    "qwen2_moe": WeightFamily(
        query_bias=True, shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate"
    ),
    "qwen3_moe": WeightFamily(may_bias=True, head_norms=True),
    "deepseek_v2": _DEEPSEEK_2,
    "deepseek_v3": _DEEPSEEK_3,
    "kimi_k2": _DEEPSEEK_3,
}
"""Families by their ``model_type``."""

_PACKAGED: tuple[tuple[str, str], ...] = (
    ("llama-4", ""),
    ("llama-", "llama"),
    ("mistral-", "mistral"),
    ("mixtral-", "mixtral"),
    ("qwen-2.5-", "qwen2"),
    ("qwen-3-", "qwen3"),
    ("qwen1.5-moe-", "qwen2_moe"),
    ("qwen2-57b-", "qwen2_moe"),
    ("qwen3-", "qwen3_moe"),
    ("deepseek-v2", "deepseek_v2"),
    ("deepseek-v3", "deepseek_v3"),
    ("kimi-k2", "kimi_k2"),
)
"""The families of the models that come with the package, by the beginnings of their names."""

_UNNAMED: Mapping[str, str] = {
    "phi3": "stores q, k and v, and gate and up, as one tensor each",
    "gpt_oss": "stores all experts of a layer as one tensor, with sinks and biases",
    "llama4_text": "stores all experts of a layer as one tensor",
    "nemotron_h": "has Mamba layers, whose projections are packed",
    "dbrx": "stores q, k and v, and all experts of a layer, as one tensor each",
    "gpt2": "stores q, k and v as one tensor, transposed",
}
"""What a table of names would have to say of families that have none here."""


def family_named(model_type: str) -> WeightFamily:
    """The family of a ``model_type``.

    Raises:
        InputError: there is no table of names for it.
    """
    if model_type in WEIGHT_FAMILIES:
        return WEIGHT_FAMILIES[model_type]
    raise _no_names(f"model_type {model_type[:40]!r}", _UNNAMED.get(model_type, ""))


def family_of_packaged(name: str) -> WeightFamily:
    """The family of a model that comes with the package.

    Raises:
        InputError: there is no table of names for it.
    """
    found = next((family for begins, family in _PACKAGED if name.startswith(begins)), "")
    if not found:
        raise _no_names(f"model {name[:60]!r}", "")
    return WEIGHT_FAMILIES[found]


def _no_names(given: str, reason: str) -> InputError:
    known = f"the names of its weights are not known; known are {', '.join(WEIGHT_FAMILIES)}"
    return InputError(given, reason or known, "describe both sides by layout.json files")


@dataclass(frozen=True, slots=True)
class WeightModel:
    """The sizes of a decoder and how its weights are named.

    ``query_bias``: q, k and v have biases; ``output_bias``: what attention gives out, too.  Layers
    of multi-token prediction are none of it: serving frameworks leave them out of the model.
    """

    sizes: Transformer
    family: WeightFamily
    query_bias: bool
    output_bias: bool


def read_weight_model(name_or_path: str) -> WeightModel:
    """The model of a name that p2smt knows, or of a ``config.json`` or a folder that has one.

    Raises:
        InputError: there is no such model or file; the names of its weights are not known; or it
            is quantised, or has biases where there are no rules for them.
    """
    if name_or_path.endswith(".json") or os.path.isdir(name_or_path):
        return _of_config(name_or_path)
    sizes = model_file.read_model(name_or_path)
    if os.path.exists(name_or_path) or sizes.name not in model_names():
        rule = "is a file of sizes, which says no names of weights"
        raise InputError(f"model {name_or_path[:80]!r}", rule, "give the model's config.json")
    family = family_of_packaged(sizes.name)
    return WeightModel(sizes, family, family.query_bias, output_bias=False)


def _of_config(path: str) -> WeightModel:
    file = os.path.join(path, CONFIG) if os.path.isdir(path) else path
    data = read_json(file, f"model file {file!r}", f"give a {CONFIG}", MAX_BYTES)
    sizes = config_model(data, file)
    keys = text_part(ConfigKeys(data, file))
    family = family_named(keys.text("model_type"))
    for part in (ConfigKeys(data, file), keys):
        if part.has("quantization_config"):
            rule = "weights have scales, for which there are no rules"
            raise part.error("quantization_config", "..", rule, "give the bf16 model's config.json")
    if keys.switch("mlp_bias", default=False):
        raise keys.error("mlp_bias", "true", "there are no rules for biases of an MLP")
    biased = keys.switch("attention_bias", default=False)
    if biased and not family.may_bias:
        raise keys.error("attention_bias", "true", "there are no rules for them in this family")
    return WeightModel(sizes, family, biased or family.query_bias, biased)
