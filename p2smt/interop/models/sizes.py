"""How families state heads of keys, width of the MLP and windows: small functions for the table.

Defaults are those of transformers' configuration classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from p2smt.interop.models.keys import ConfigKeys

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
