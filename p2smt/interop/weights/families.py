"""How families of decoders name their weights in published files.

The names are those that serving frameworks look for when they load such files: ``load_weights`` and
the modules of vLLM 0.11.0 (its wheel), ``vllm/model_executor/models/`` ``llama.py``, ``qwen2.py``,
``qwen3.py``, ``mixtral.py`` (361-363), ``qwen2_moe.py``, ``qwen3_moe.py`` and ``deepseek_v2.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from p2smt.errors import InputError


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
