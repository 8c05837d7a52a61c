"""Rows: tokens, micro-batches, and the elements of matrices on a device."""

from __future__ import annotations

from sympy import Max

from p2smt.workload.formulas.row import COUNTED, FormulaRow
from p2smt.workload.formulas.symbols import (
    B,
    V,
    b,
    c,
    d,
    e,
    f,
    first,
    g,
    h,
    k,
    last,
    n,
    q,
    s,
    sp,
    t,
    tied,
)  # fmt: skip

TOKENS = FormulaRow("tokens", b * s / c, "tokens", "of a micro-batch on a device", COUNTED)
MICRO_BATCHES = FormulaRow(
    "micro_batches", B / (d * b), "", "that go through a pipeline in an iteration", COUNTED
)
SPREAD = FormulaRow(
    "spread",
    1 + sp * (t - 1),
    "",
    "devices over which activations between the matrices of tp are split",
    "arXiv 2205.05198 section 4.2.2",
)
QUERY_WIDTH = FormulaRow(
    "query_width", q / t, "elements", "queries of a token on a device", COUNTED
)
KEY_WIDTH = FormulaRow(
    "key_width",
    Max(k / t, e),
    "elements",
    "keys of a token on a device; a head is not divided, but held several times",
    COUNTED,
)
LAYER_PARAMETERS = FormulaRow(
    "layer_parameters",
    2 * h * QUERY_WIDTH.symbol + 2 * h * KEY_WIDTH.symbol + (g + 1) * h * f / t,
    "elements",
    "matrices of a layer on a device; norms and biases are left out",
    COUNTED,
)
END_PARAMETERS = FormulaRow(
    "end_parameters", V * h / t, "elements", "embedding, or logits, on a device", COUNTED
)
STAGE_PARAMETERS = FormulaRow(
    "stage_parameters",
    n * LAYER_PARAMETERS.symbol + END_PARAMETERS.symbol * (first + last - tied * first * last),
    "elements",
    "matrices of a stage on a device; tied ones are on both ends",
    COUNTED,
)

SIZE_ROWS = (
    TOKENS,
    MICRO_BATCHES,
    SPREAD,
    QUERY_WIDTH,
    KEY_WIDTH,
    LAYER_PARAMETERS,
    END_PARAMETERS,
    STAGE_PARAMETERS,
)
