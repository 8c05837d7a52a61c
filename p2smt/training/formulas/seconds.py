"""Rows: seconds of a micro-batch without communication, by the roofline of the device.

A matrix product takes the longer of its arithmetic and its memory traffic; other work is bound by
memory.  Both reach the fraction ``eta`` of what the device states.
"""

from __future__ import annotations

from sympy import Expr, Integer, Rational

from p2smt.training.formulas.symbols import (
    COUNTED,
    FLASH,
    KEY_WIDTH,
    PAPER,
    QUERY_WIDTH,
    SPREAD,
    STAGE_PARAMETERS,
    TOKENS,
    B,
    FormulaRow,
    L,
    Max,
    V,
    W,
    a,
    b,
    c,
    d,
    dr,
    eta,
    f,
    first,
    flash,
    full,
    fused,
    g,
    h,
    k,
    last,
    layer_s,
    n,
    peak,
    q,
    s,
    selective,
    state,
    t,
    zero_1,
)

# Rows: operations and bytes of memory that the forward pass of a micro-batch takes.


_T, _Q, _K = TOKENS.symbol, QUERY_WIDTH.symbol, KEY_WIDTH.symbol


def _product(name: str, inner: Expr, outer: Expr, meaning: str) -> tuple[FormulaRow, FormulaRow]:
    """Operations and bytes of (tokens, inner) times (inner, outer), 2 bytes an element."""
    bytes_ = 2 * (_T * inner + inner * outer + _T * outer)
    return (
        FormulaRow(f"{name}_flops", 2 * _T * inner * outer, "flop", meaning, COUNTED),
        FormulaRow(f"{name}_bytes", bytes_, "bytes", f"{meaning}: read and written", COUNTED),
    )


QKV = _product("qkv", h, _Q + 2 * _K, "queries, keys and values")
OUTPUT = _product("output", _Q, h, "output of attention")
UP = _product("up", h, g * f / t, "into the MLP")
DOWN = _product("down", f / t, h, "out of the MLP")
LOGITS = _product("logits", h, V / t, "logits")

_KEYS = b * s * _K  # of all the tokens that a device's queries meet, ring attention's too
_SCORES = _T * s * a / t

SCORES_FLOPS = FormulaRow(
    "scores_flops",
    2 * _T * s * _Q * (1 - flash / 2),
    "flop",
    "queries times keys, as much again for scores times values; fused attention skips what "
    "causality masks",
    COUNTED,
)
SCORES_BYTES = FormulaRow(
    "scores_bytes",
    2 * (_T * _Q + _KEYS + _SCORES),
    "bytes",
    "each of these two products without fused attention",
    COUNTED,
)
SOFTMAX_BYTES = FormulaRow(
    "softmax_bytes",
    9 * _SCORES,
    "bytes",
    "softmax, its dropout and the dropout's mask, without fused attention",
    COUNTED,
)
FLASH_BYTES = FormulaRow(
    "flash_bytes",
    2 * (2 * _T * _Q + 2 * _KEYS),
    "bytes",
    "fused attention: queries, keys, values, output",
    FLASH,
)
ELEMENTWISE_BYTES = FormulaRow(
    "elementwise_bytes",
    22 * _T * h / SPREAD.symbol + 2 * (g + 1) * _T * f / t + 4 * _T * (_Q + _K),
    "bytes",
    "a layer's norms (4 each), residuals with dropout (7 each), activation, rotation or bias",
    COUNTED,
)
EMBEDDING_BYTES = FormulaRow(
    "embedding_bytes", 4 * _T * h, "bytes", "rows of the embedding: read and written", COUNTED
)
LOSS_FORWARD_BYTES = FormulaRow(
    "loss_forward_bytes",
    18 * _T * V / t,
    "bytes",
    "loss: logits to fp32 (6), their maximum (4), softmax (8)",
    COUNTED,
)
LOSS_BACKWARD_BYTES = FormulaRow(
    "loss_backward_bytes",
    14 * _T * V / t,
    "bytes",
    "gradient of the loss (8), in 2 bytes again (6)",
    COUNTED,
)
MODEL_FLOPS = FormulaRow(
    "model_flops",
    3 * B * s * (2 * L * h * (2 * q + 2 * k + (g + 1) * f) + 2 * h * V + Integer(2) * L * s * q),
    "flop",
    "of the whole model in an iteration: forward, and twice that backward; attention only where "
    "causality lets tokens meet, nothing computed twice",
    f"{PAPER} appendix A, with half of the scores",
)

COMPUTE_ROWS = (
    *(*QKV, *OUTPUT, *UP, *DOWN, *LOGITS),
    SCORES_FLOPS,
    SCORES_BYTES,
    SOFTMAX_BYTES,
    FLASH_BYTES,
    ELEMENTWISE_BYTES,
    EMBEDDING_BYTES,
    LOSS_FORWARD_BYTES,
    LOSS_BACKWARD_BYTES,
    MODEL_FLOPS,
)


ROOFLINE = "roofline: doi 10.1145/1498765.1498785"
_FORWARD = Rational(1, 3)  # of the work of a layer: the backward pass has twice as much


def _roofline(flops: Expr, bytes_: Expr) -> Expr:
    return Max(flops / peak, bytes_ / W) / eta


def _product_row(name: str, rows: tuple[FormulaRow, FormulaRow]) -> FormulaRow:
    flops, bytes_ = rows
    seconds = _roofline(flops.symbol, bytes_.symbol)
    return FormulaRow(f"{name}_s", seconds, "s", f"{flops.meaning}, forward", ROOFLINE)


QKV_S = _product_row("qkv", QKV)
OUTPUT_S = _product_row("output", OUTPUT)
UP_S = _product_row("up", UP)
DOWN_S = _product_row("down", DOWN)
LOGITS_S = _product_row("logits", LOGITS)
PRODUCTS_S = FormulaRow(
    "products_s",
    QKV_S.symbol + OUTPUT_S.symbol + UP_S.symbol + DOWN_S.symbol,
    "s",
    "matrix products of a layer, forward",
    COUNTED,
)
CORE_S = FormulaRow(
    "attention_s",
    flash * _roofline(2 * SCORES_FLOPS.symbol / fused, FLASH_BYTES.symbol)
    + (1 - flash)
    * (2 * _roofline(SCORES_FLOPS.symbol, SCORES_BYTES.symbol) + SOFTMAX_BYTES.symbol / (W * eta)),
    "s",
    "attention of a layer, forward: scores, softmax, scores times values",
    ROOFLINE,
)
CORE_BACKWARD_S = FormulaRow(
    "attention_backward_s",
    CORE_S.symbol * (2 + flash / 2),
    "s",
    "attention, backward: four products for two, and a fifth where scores were not kept",
    FLASH,
)
ELEMENTWISE_S = FormulaRow(
    "elementwise_s", ELEMENTWISE_BYTES.symbol / (W * eta), "s", "the rest of a layer", ROOFLINE
)
LAYER_FORWARD_S = FormulaRow(
    "layer_forward_s",
    PRODUCTS_S.symbol + CORE_S.symbol + ELEMENTWISE_S.symbol + _FORWARD * layer_s,
    "s",
    "a layer, forward",
    COUNTED,
)
LAYER_BACKWARD_S = FormulaRow(
    "layer_backward_s",
    2 * (PRODUCTS_S.symbol + ELEMENTWISE_S.symbol)
    + CORE_BACKWARD_S.symbol
    + (1 - _FORWARD) * layer_s
    + full * LAYER_FORWARD_S.symbol
    + selective * CORE_S.symbol,
    "s",
    "a layer, backward, with what is computed again",
    f"{PAPER} section 5",
)
STAGE_FORWARD_S = FormulaRow(
    "stage_forward_s",
    n * LAYER_FORWARD_S.symbol
    + first * EMBEDDING_BYTES.symbol / (W * eta)
    + last * (LOGITS_S.symbol + LOSS_FORWARD_BYTES.symbol / (W * eta)),
    "s",
    "a stage, forward",
    COUNTED,
)
STAGE_BACKWARD_S = FormulaRow(
    "stage_backward_s",
    n * LAYER_BACKWARD_S.symbol
    + first * 2 * EMBEDDING_BYTES.symbol / (W * eta)
    + last * (2 * LOGITS_S.symbol + LOSS_BACKWARD_BYTES.symbol / (W * eta)),
    "s",
    "a stage, backward",
    COUNTED,
)
OPTIMIZER_S = FormulaRow(
    "optimizer_s",
    (6 + 2 * state) * STAGE_PARAMETERS.symbol / (1 + zero_1 * (d * c / dr - 1)) / (W * eta),
    "s",
    "step of Adam: gradient (4), its own bytes of a parameter read and written, parameter (2)",
    COUNTED,
)

SECONDS_ROWS = (
    *(QKV_S, OUTPUT_S, UP_S, DOWN_S, LOGITS_S, PRODUCTS_S),
    CORE_S,
    CORE_BACKWARD_S,
    ELEMENTWISE_S,
    LAYER_FORWARD_S,
    LAYER_BACKWARD_S,
    STAGE_FORWARD_S,
    STAGE_BACKWARD_S,
    OPTIMIZER_S,
)
