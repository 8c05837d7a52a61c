"""What a configuration may say that the model of a dense decoder does not hold: named, refused."""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.interop.models.families import FAMILIES, ConfigFamily
from p2smt.interop.models.keys import ConfigKeys

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
        rule = f"is none of the dense decoders that are read: {', '.join(FAMILIES)}"
        raise keys.error("model_type", kind, rule, "write its sizes as a model file")
    return FAMILIES[kind]


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
    if seen and seen < longest:
        stated = "" if keys.has("sliding_window") else " (the default where the key is absent)"
        rule = f"is in force below {longest} positions{stated}: {_NO_WINDOW}"
        remedy = "write null where sequences are no longer than the window"
        raise keys.error("sliding_window", seen, rule, remedy)


def _check_kinds(keys: ConfigKeys) -> None:
    kinds = keys.data.get("layer_types")
    if kinds is None:
        return
    if not isinstance(kinds, list):
        raise keys.error("layer_types", kinds, "must be a list")
    if _SLIDING in kinds:
        raise keys.error("layer_types", _SLIDING, _NO_WINDOW)
    other = next((kind for kind in kinds if kind not in _FULL), None)
    if other is not None:
        raise keys.error("layer_types", other, "layers other than full_attention are not modelled")
