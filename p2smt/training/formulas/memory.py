"""Rows: bytes that a device of a stage holds at its peak."""

from __future__ import annotations

from sympy import Expr, Max, Min, Piecewise, ceiling

from p2smt.training.formulas.symbols import (
    COUNTED,
    END_PARAMETERS,
    FLASH,
    KEY_WIDTH,
    LAYER_PARAMETERS,
    MICRO_BATCHES,
    PAPER,
    QUERY_WIDTH,
    SPREAD,
    STAGE_PARAMETERS,
    TOKENS,
    ZERO,
    FormulaRow,
    G,
    V,
    a,
    c,
    d,
    dr,
    f,
    first,
    flash,
    full,
    g,
    h,
    i,
    last,
    n,
    n_again,
    n_plain,
    n_uneven,
    off,
    p,
    s,
    selective,
    state,
    t,
    tied,
    v,
    zero_1,
    zero_2,
    zero_3,
)

_T, _M = TOKENS.symbol, MICRO_BATCHES.symbol
_P, _LAYER, _END = STAGE_PARAMETERS.symbol, LAYER_PARAMETERS.symbol, END_PARAMETERS.symbol
_ENDS = _END * (first + last - tied * first * last)
_MASKS = 1 - flash  # dropout is counted where attention is not fused: GPTs of 2020 to 2022

PARAMETER_BYTES = FormulaRow(
    "parameter_bytes",
    2 * _P / (1 + zero_3 * (d * c / dr - 1)) + zero_3 * 2 * (2 * _LAYER + _ENDS),
    "bytes",
    "parameters; those of ZeRO-3 are whole for two layers (one computes, the next is fetched) and "
    "for embedding and logits",
    f"{ZERO} section 5.3",
)
GRADIENT_BYTES = FormulaRow(
    "gradient_bytes",
    G * _P / (1 + zero_2 * (d * c / dr - 1)) + zero_2 * G * Max(_LAYER, _END * Max(first, last)),
    "bytes",
    "gradients; sharded ones are whole for the layer that is reduced, or for embedding or logits "
    "where these are larger",
    f"{ZERO} section 5.2",
)
OPTIMIZER_BYTES = FormulaRow(
    "optimizer_bytes",
    state * _P / (1 + zero_1 * (d * c / dr - 1)),
    "bytes",
    "parameters and two moments of Adam, 12 bytes in fp32",
    f"{ZERO} section 3.1",
)
SCORES_KEPT = FormulaRow(
    "scores_kept_bytes",
    _T * a / t * ((1 - flash) * 5 * s + flash * 4),
    "bytes",
    "softmax, its dropout and mask of a layer; fused attention keeps one fp32 a row",
    f"{PAPER} equation 1; {FLASH}",
)
LAYER_KEPT = FormulaRow(
    "layer_kept_bytes",
    _T * h * (8 + 2 * _MASKS) / SPREAD.symbol
    + 4 * _T * (QUERY_WIDTH.symbol + KEY_WIDTH.symbol)
    + 2 * (g + 1) * _T * f / t
    + SCORES_KEPT.symbol,
    "bytes",
    "activations of a layer for a micro-batch, nothing recomputed",
    f"{PAPER} equations 1, 2 and 4",
)
KEPT = FormulaRow(
    "kept_bytes",
    (1 - full) * (LAYER_KEPT.symbol - selective * SCORES_KEPT.symbol)
    + full * 2 * _T * h / SPREAD.symbol,
    "bytes",
    "activations of a layer for a micro-batch that are kept until its backward pass",
    f"{PAPER} equation 6 and section 5",
)
PASSES = FormulaRow(
    "passes",
    Min(_M * v, Piecewise((2 * (p - i - 1) + (v - 1) * p + 1, v > 1), (p - i, True))),
    "",
    "chunks of a stage whose activations are held at once, over all micro-batches",
    f"{PAPER} section 4.2.3",
)
HELD_LAYERS = FormulaRow(
    "held_layers",
    PASSES.symbol * n / v + n_uneven,
    "layers",
    "layers whose activations are held at once, over all micro-batches",
    f"{PAPER} section 4.2.3",
)
ENDS_KEPT = FormulaRow(
    "ends_kept_bytes",
    first * _MASKS * _T * h / SPREAD.symbol * Min(_M, Piecewise((2 * p, v > 1), (p, True)))
    + last * _T * (4 * h / SPREAD.symbol + 4 * V / t),
    "bytes",
    "dropout mask of the embedding; inputs of the last norm and of the logits, logits in fp32",
    f"{PAPER} section 4.3",
)
RECOMPUTED = FormulaRow(
    "recomputed_bytes",
    ceiling(full) * LAYER_KEPT.symbol + selective * SCORES_KEPT.symbol,
    "bytes",
    "activations that are computed again, of the one layer that is in its backward pass",
    COUNTED,
)


def on_device(held: Expr, layer: Expr) -> Expr:
    """What is left of activations where layers wait on the host: the layers that stay, and two
    more, of which one computes and one is on its way."""
    return held - Max(0, off * held - 2 * ceiling(off) * layer)


ACTIVATION_BYTES = FormulaRow(
    "activation_bytes",
    on_device(
        HELD_LAYERS.symbol * KEPT.symbol
        + n_again * 2 * _T * h / SPREAD.symbol
        + n_plain * LAYER_KEPT.symbol,
        KEPT.symbol,
    )
    + ENDS_KEPT.symbol
    + RECOMPUTED.symbol,
    "bytes",
    "activations of a stage",
    f"{PAPER} section 4.3",
)

MEMORY_ROWS = (
    PARAMETER_BYTES,
    GRADIENT_BYTES,
    OPTIMIZER_BYTES,
    SCORES_KEPT,
    LAYER_KEPT,
    KEPT,
    PASSES,
    HELD_LAYERS,
    ENDS_KEPT,
    RECOMPUTED,
    ACTIVATION_BYTES,
)
