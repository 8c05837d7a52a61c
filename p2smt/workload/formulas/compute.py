"""Rows: operations and bytes of memory that the forward pass of a micro-batch takes."""

from __future__ import annotations

from sympy import Expr, Integer

from p2smt.workload.formulas.row import COUNTED, FLASH, PAPER, FormulaRow
from p2smt.workload.formulas.sizes import KEY_WIDTH, QUERY_WIDTH, SPREAD, TOKENS
from p2smt.workload.formulas.symbols import B, L, V, a, b, f, flash, g, h, k, q, s, t

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
