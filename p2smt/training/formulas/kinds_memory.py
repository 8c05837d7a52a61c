"""Rows of models with layers of several kinds: bytes that a device of a stage holds at its peak."""

from __future__ import annotations

from sympy import Expr, Max, Piecewise, Rational, ceiling

from p2smt.training.formulas.kinds import DEEPSEEK, KEY, ROUTED, TAU
from p2smt.training.formulas.memory import PASSES, on_device
from p2smt.training.formulas.symbols import (
    COUNTED,
    END_PARAMETERS,
    GN,
    HP,
    KEY_WIDTH,
    PAPER,
    QUERY_WIDTH,
    SPREAD,
    TOKENS,
    ZERO,
    E,
    FormulaRow,
    G,
    V,
    a,
    again_act,
    again_core,
    again_experts,
    again_mlp,
    again_norm,
    again_shared,
    again_up,
    c,
    d,
    dr,
    ed,
    en,
    er,
    et,
    ev,
    f,
    fe,
    first,
    fs,
    full,
    full_a,
    full_d,
    full_m,
    full_x,
    g,
    h,
    last,
    low,
    n,
    n_again,
    n_plain,
    n_uneven,
    nd,
    nf,
    nm,
    nt,
    nw,
    nx,
    rkv,
    row_symbol,
    rq,
    state,
    t,
    tied,
    v,
    w,
    zero_1,
    zero_2,
    zero_3,
)

_T, _R, _TAU = TOKENS.symbol, ROUTED.symbol, TAU.symbol
_FULL = {"attention": full_a, "mamba": full_m, "dense": full_d, "mixture": full_x}
"""Part of the stage's layers of each kind that are computed again whole."""
_LO = 2 - low
"""Bytes of an element of a product's input that is kept: 1 in low precision."""


_P, _X = row_symbol("stage_parameters"), row_symbol("stage_experts")
_LARGEST = Max(row_symbol("attention_parameters"), row_symbol("mamba_parameters")) + Max(
    row_symbol("dense_parameters"), row_symbol("mixed_parameters")
)
_ENDS = END_PARAMETERS.symbol * (first + last - tied * first * last)


def _sharded(each: Expr, zero: Expr) -> Expr:
    return each * (_P / (1 + zero * (d * c / dr - 1)) + _X / (1 + zero * (ed / dr - 1)))


PARAMETER_BYTES = FormulaRow(
    "parameter_bytes",
    _sharded(Rational(2), zero_3)
    + zero_3 * 2 * (2 * (_LARGEST + row_symbol("expert_parameters")) + _ENDS),
    "bytes",
    "parameters; those of ZeRO-3 are whole for two layers, embedding and logits",
    f"{ZERO} section 5.3",
)
GRADIENT_BYTES = FormulaRow(
    "gradient_bytes",
    _sharded(G, zero_2)
    + zero_2
    * G
    * Max(_LARGEST + row_symbol("expert_parameters"), END_PARAMETERS.symbol * Max(first, last)),
    "bytes",
    "gradients; sharded ones are whole for the layer that is reduced",
    f"{ZERO} section 5.2",
)
OPTIMIZER_BYTES = FormulaRow(
    "optimizer_bytes",
    _sharded(state, zero_1),
    "bytes",
    "parameters and two moments of Adam, 12 bytes in fp32; those of experts over ed",
    f"{ZERO} section 3.1",
)


def memory_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Parameters, gradients, optimizer, and activations with what recomputation leaves of them."""
    norm = _T * h / SPREAD.symbol * (2 + _LO * (1 - again_norm))
    softmax = 4 * a * _T / t * (1 - again_core)
    if mla:
        heads = (2 * (2 * KEY + ev) + 2 * (en + ev)) * a * _T / t
        attention = 4 * (rq + rkv + er) * _TAU + heads * (1 - again_up)
        attention += 2 * ev * a * _T / t + softmax
    else:
        attention = 4 * _T * (QUERY_WIDTH.symbol + KEY_WIDTH.symbol) + softmax
    dense = (2 * g + _LO) * f * _T / t
    inside = 2 * g * fe * _R / et + _LO * fe * _R / et * (1 - again_act)
    shared = (2 * g + _LO) * fs * _T / t * (1 - again_shared)
    mixture = _LO * w * _R + inside + 12 * E * _TAU + shared
    kept = {
        "attention": norm + attention,
        "mamba": norm + (10 * HP + 8 * GN) * _T / t,
        "dense": norm + dense * (1 - again_mlp),
        "mixture": norm + mixture * (1 - again_experts),
    }
    whole = {
        "attention": attention,
        "mamba": kept["mamba"],
        "dense": dense,
        "mixture": mixture,
    }
    parts = tuple(
        FormulaRow(
            f"{name}_kept_bytes",
            (1 - _FULL[name]) * what + _FULL[name] * _T * h / SPREAD.symbol,
            "bytes",
            f"activations of a layer's {name} for a micro-batch that are kept",
            f"{PAPER} section 4; {DEEPSEEK}",
        )
        for name, what in kept.items()
    )
    again = Max(*(ceiling(_FULL[name]) * whole[name] for name in whole)) + Max(
        again_mlp * dense, again_experts * mixture
    )
    symbols = {row.name: row.symbol for row in parts}
    layer = (
        (nf + nw) * symbols["attention_kept_bytes"]
        + nm * symbols["mamba_kept_bytes"]
        + nd * symbols["dense_kept_bytes"]
        + nx * symbols["mixture_kept_bytes"]
    )
    again_layers = (nf + nw) * full_a + nm * full_m + nd * full_d + nx * full_x
    input_kept = _T * h / SPREAD.symbol
    largest = Max(symbols["attention_kept_bytes"], symbols["mamba_kept_bytes"])
    largest += Max(symbols["dense_kept_bytes"], symbols["mixture_kept_bytes"])
    held = PASSES.symbol / v * layer + n_uneven * layer / Max(n, 1)
    held += n_again * again_layers * input_kept / Max(n * full, 1)
    held += n_plain * (layer - again_layers * input_kept) / Max(n * (1 - full), 1)
    return (
        PARAMETER_BYTES,
        GRADIENT_BYTES,
        OPTIMIZER_BYTES,
        *parts,
        PASSES,
        ENDS_KEPT,
        FormulaRow("again_bytes", again, "bytes", "of one layer that is computed again", COUNTED),
        FormulaRow(
            "activation_bytes",
            on_device(held, largest) + ENDS_KEPT.symbol + row_symbol("again_bytes"),
            "bytes",
            "activations of a stage",
            f"{PAPER} section 4.3",
        ),
    )


ENDS_KEPT = FormulaRow(
    "ends_kept_bytes",
    (last + nt) * _T * (4 * h / SPREAD.symbol + 8 * V / t)
    + Piecewise((4 * V * h / t, Max(first, last) > 0), (0, True)),
    "bytes",
    "inputs of the last norm and of the logits, logits in fp32 and their gradient; the fp32 "
    "gradient of embedding or logits while it is made",
    f"{PAPER} section 4.3; counted",
)
