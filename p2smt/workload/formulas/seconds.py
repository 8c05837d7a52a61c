"""Rows: seconds of a micro-batch without communication, by the roofline of the device.

A matrix product takes the longer of its arithmetic and its memory traffic; other work is bound by
memory.  Both reach the fraction ``eta`` of what the device states.
"""

from __future__ import annotations

from sympy import Expr, Max, Rational

from p2smt.workload.formulas.compute import (
    DOWN,
    ELEMENTWISE_BYTES,
    EMBEDDING_BYTES,
    FLASH_BYTES,
    LOGITS,
    LOSS_BACKWARD_BYTES,
    LOSS_FORWARD_BYTES,
    OUTPUT,
    QKV,
    SCORES_BYTES,
    SCORES_FLOPS,
    SOFTMAX_BYTES,
    UP,
)
from p2smt.workload.formulas.row import COUNTED, FLASH, PAPER, FormulaRow
from p2smt.workload.formulas.sizes import STAGE_PARAMETERS
from p2smt.workload.formulas.symbols import (
    W,
    c,
    d,
    eta,
    first,
    flash,
    full,
    fused,
    last,
    layer_s,
    n,
    peak,
    selective,
    zero_1,
)  # fmt: skip

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
    30 * STAGE_PARAMETERS.symbol / (1 + zero_1 * (d * c - 1)) / (W * eta),
    "s",
    "step of Adam: gradient (4), fp32 parameter and moments read and written (24), parameter (2)",
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
