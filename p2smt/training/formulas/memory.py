"""Rows: bytes that a device of a stage holds at its peak."""

from __future__ import annotations

from sympy import Expr, Piecewise, ceiling

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
    Max,
    Min,
    V,
    a,
    c,
    d,
    dr,
    dropout,
    f,
    first,
    flash,
    full,
    g,
    h,
    i,
    last,
    loss_b,
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
    _T * a / t * ((1 - flash) * (2 + 3 * dropout) * s + flash * 4),
    "bytes",
    "softmax, its dropout and mask of a layer; fused attention keeps one fp32 a row",
    f"{PAPER} equation 1; {FLASH}",
)
LAYER_KEPT = FormulaRow(
    "layer_kept_bytes",
    _T * h * (8 + 2 * dropout) / SPREAD.symbol
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
MASKS_KEPT = FormulaRow(
    "masks_kept_bytes",
    first * dropout * _T * h / SPREAD.symbol * Min(_M, Piecewise((2 * p, v > 1), (p, True))),
    "bytes",
    "dropout mask of the embedding, of all micro-batches that are under way",
    f"{PAPER} section 4.3",
)
LOSS_BYTES = FormulaRow(
    "loss_bytes",
    last * 4 * _T * h / SPREAD.symbol
    + last * Max(loss_b * V * _T / t, 2 * V * _T / t + 4 * V * h / t)
    + first * (1 - last) * Max(0, 4 * V * h / t - KEPT.symbol * n / v),
    "bytes",
    "inputs of the last norm and of the logits, and what their loss takes: logits in 16 bits with "
    "their softmax in fp32, then their gradient beside the matrix's in fp32; the embedding's, "
    "when the activations of its chunk are free again",
    "vocab_parallel_cross_entropy of Megatron Core; counted",
)
BACKWARD_BYTES = FormulaRow(
    "backward_bytes",
    ceiling(full) * LAYER_KEPT.symbol
    + selective * SCORES_KEPT.symbol
    + Max(2 * (g + 1) * _T * f / t, (1 - flash) * 4 * _T * a * s / t),
    "bytes",
    "of the one layer that is in its backward pass: activations that are computed again, and "
    "gradients of those inside the MLP, or of scores and softmax",
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
    + MASKS_KEPT.symbol
    + Max(LOSS_BYTES.symbol, BACKWARD_BYTES.symbol),
    "bytes",
    "activations of a stage: those that are kept, and at the peak of the loss or of a layer's "
    "backward pass",
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
    MASKS_KEPT,
    LOSS_BYTES,
    BACKWARD_BYTES,
    ACTIVATION_BYTES,
)
