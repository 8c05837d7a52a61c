"""Rows of models with layers of several kinds: bytes that a device of a stage holds at its peak."""

from __future__ import annotations

from sympy import Expr, Max, Min, ceiling

from p2smt.training.formulas.kinds import DEEPSEEK, KEY, ROUTED, TAU
from p2smt.training.formulas.memory import MASKS_KEPT, PASSES, on_device
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
    copy_bytes,
    d,
    dr,
    dropout,
    ed,
    en,
    er,
    et,
    ev,
    f,
    fe,
    first,
    flash,
    fp8_params,
    fs,
    full,
    full_a,
    full_d,
    full_m,
    full_x,
    g,
    h,
    last,
    loss_b,
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
    s,
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


_AHEAD = END_PARAMETERS.symbol * Min(1, nt) * (1 - first) * (1 - tied)
"""The embedding that layers which predict later tokens have beside them on a stage of their own."""
_P, _X = row_symbol("stage_parameters") + _AHEAD, row_symbol("stage_experts")
_LARGEST = Max(row_symbol("attention_parameters"), row_symbol("mamba_parameters")) + Max(
    row_symbol("dense_parameters"), row_symbol("mixed_parameters")
)
_ENDS = END_PARAMETERS.symbol * (first + last - tied * first * last)


def _sharded(each: Expr, zero: Expr) -> Expr:
    return each * (_P / (1 + zero * (d * c / dr - 1)) + _X / (1 + zero * (ed / dr - 1)))


PARAMETER_BYTES = FormulaRow(
    "parameter_bytes",
    _sharded(2 * (1 - fp8_params) + copy_bytes, zero_3)
    + (2 * fp8_params - copy_bytes) * (_ENDS + _AHEAD) / (1 + zero_3 * (d * c / dr - 1))
    + zero_3 * 2 * (2 * (_LARGEST + row_symbol("expert_parameters")) + _ENDS),
    "bytes",
    "parameters in 16 bits, unless they are kept in low precision, and copies for products in it, "
    "which embedding and logits lack; those of ZeRO-3 are whole for two layers, embedding and "
    "logits",
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
    norm = _T * h / SPREAD.symbol * (2 + _LO * (1 - again_norm) + dropout)
    scores = a * _T / t * (flash * 4 + (1 - flash) * (2 + 3 * dropout) * s)
    softmax = scores * (1 - again_core)
    if mla:
        heads = (2 * (2 * KEY + ev) + 2 * (en + ev)) * a * _T / t
        attention = 4 * (rq + rkv + er) * _TAU + heads * (1 - again_up)
        attention += 2 * ev * a * _T / t + softmax
    else:
        attention = 4 * _T * (QUERY_WIDTH.symbol + KEY_WIDTH.symbol) + softmax
    dense = (2 * g + _LO) * f * _T / t
    weighted = 2 * (2 - g)  # a gate is fused with the router's weight, another activation is kept
    inside = 2 * g * fe * _R / et + (_LO + weighted) * fe * _R / et * (1 - again_act)
    shared = (2 * g + _LO) * fs * _T / t * (1 - again_shared)
    mixture = _LO * w * _R + inside + 12 * E * _TAU + shared
    kept = {
        "attention": norm + attention,
        "mamba": norm + (10 * HP + 8 * GN) * _T / t,
        "dense": norm + dense * (1 - again_mlp),
        "mixture": norm + mixture * (1 - again_experts),
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
    first_half = Max(
        ceiling(full_a) * Min(1, nf + nw) * attention,
        ceiling(full_m) * Min(1, nm) * (kept["mamba"] - norm),
    )
    second_half = Max(ceiling(full_d) * Min(1, nd) * dense, ceiling(full_x) * Min(1, nx) * mixture)
    again = (
        ceiling(full) * 2 * norm
        + first_half
        + second_half
        + again_core * scores
        + Max(again_mlp * dense, again_experts * mixture)
    )
    slopes = Max(
        Min(1, nd) * 2 * (g + 1) * f * _T / t,
        Min(1, nx) * (2 * (g + 1) * fe / et + 4 * w) * _R,
        Min(1, nf + nw) * (1 - flash) * 4 * a * s * _T / t,
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
        MASKS_KEPT,
        _loss_bytes(layer / v),
        FormulaRow(
            "backward_bytes",
            again + slopes,
            "bytes",
            "of the one layer that is in its backward pass: what is computed again, and gradients "
            "inside an MLP, of experts with their tokens, or of scores and softmax",
            COUNTED,
        ),
        FormulaRow(
            "activation_bytes",
            on_device(held, largest)
            + MASKS_KEPT.symbol
            + Max(row_symbol("loss_bytes"), row_symbol("backward_bytes")),
            "bytes",
            "activations of a stage: those that are kept, and at the peak of the loss or of a "
            "layer's backward pass",
            f"{PAPER} section 4.3",
        ),
    )


def _loss_bytes(chunk: Expr) -> FormulaRow:
    """What the loss takes, on a stage a chunk of which keeps so many bytes."""
    logits, matrix = V * _T / t, 4 * V * h / t
    return FormulaRow(
        "loss_bytes",
        (last + nt) * 4 * _T * h / SPREAD.symbol
        + nt * 4 * logits
        + last * Max(loss_b * logits, 2 * logits + matrix)
        + first * (1 - last) * Max(0, matrix - chunk),
        "bytes",
        "inputs of the last norm and of the logits, and what their loss takes: logits in 16 bits "
        "with their softmax in fp32, then their gradient beside the matrix's in fp32; the softmax "
        "of each later token; the embedding's gradient, when its chunk's activations are free",
        "vocab_parallel_cross_entropy of Megatron Core; counted",
    )
