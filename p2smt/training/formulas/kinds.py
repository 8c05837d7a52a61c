"""Rows of models whose layers are of several kinds: sizes, operations, bytes, and what is held.

A layer is an attention (full, windowed, Mamba-2) and an MLP (dense, experts); either may be absent.
A stage adds up what each kind takes, times how many layers of it the stage has.  Attention is
grouped-query or latent (MLA): the same for all layers of a model, so each has a table of its own.
Operations and bytes are those of the forward pass; a device of a stage holds most at its peak.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, ceiling

from p2smt.training.formulas.memory import MASKS_KEPT, PASSES, on_device
from p2smt.training.formulas.symbols import (
    COUNTED,
    END_PARAMETERS,
    FLASH,
    GN,
    HP,
    KEY_WIDTH,
    MICRO_BATCHES,
    PAPER,
    QUERY_WIDTH,
    SPREAD,
    TOKENS,
    ZERO,
    B,
    E,
    FormulaRow,
    G,
    Hm,
    Max,
    Min,
    Ns,
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
    clamp,
    copy_bytes,
    d,
    direct,
    dr,
    dropout,
    e,
    ed,
    en,
    ep,
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
    r,
    rkv,
    row_symbol,
    rq,
    s,
    skew,
    state,
    t,
    tied,
    token_flops,
    v,
    w,
    win,
    wl,
    zero_1,
    zero_2,
    zero_3,
)

DEEPSEEK = "arXiv 2405.04434"  # DeepSeek-V2: multi-head latent attention
MAMBA2 = "arXiv 2405.21060"  # Transformers are SSMs
GSHARD = "arXiv 2006.16668"  # experts spread over devices
NARROW = 224
"""Elements of a head's key and value together below which exponentials bound the core."""
BLOCK = 64
"""Tokens by which a window grows, on average: kernels compute whole blocks of 128."""

_T = TOKENS.symbol
_Q, _K = QUERY_WIDTH.symbol, KEY_WIDTH.symbol

TAU = FormulaRow("tau", _T / t, "tokens", "of a micro-batch that a device routes", COUNTED)
ROUTED = FormulaRow(
    "routed", r * et * TAU.symbol * skew, "tokens", "that a device's experts see", GSHARD
)
QUERY_KEY = FormulaRow(
    "query_key", en + er, "elements", "of a head's query and key in latent attention", DEEPSEEK
)
LOCAL = FormulaRow(
    "local_experts", E / ep, "", "experts of a layer that a device has, or its part of", GSHARD
)
KEY = QUERY_KEY.symbol


@dataclass(frozen=True, slots=True)
class Product:
    """(rows, inner) times (inner, outer) on a device, forward; ``weights``: elements of the latter
    where several are multiplied at once."""

    name: str
    rows: Expr
    inner: Expr
    outer: Expr
    meaning: str
    weights: Expr | None = None

    @property
    def flops(self) -> FormulaRow:
        """Its operations."""
        count = 2 * self.rows * self.inner * self.outer
        return FormulaRow(f"{self.name}_flops", count, "flop", self.meaning, COUNTED)

    @property
    def bytes(self) -> FormulaRow:
        """What it reads and writes, 2 bytes an element."""
        weights = self.inner * self.outer if self.weights is None else self.weights
        moved = 2 * (self.rows * (self.inner + self.outer) + weights)
        text = f"{self.meaning}: read and written"
        return FormulaRow(f"{self.name}_bytes", moved, "bytes", text, COUNTED)

    @property
    def inputs(self) -> Expr:
        """Elements of its input."""
        return self.rows * self.inner


_R, _TAU = ROUTED.symbol, TAU.symbol
GQA = (
    Product("qkv", _T, h, _Q + 2 * _K, "queries, keys and values"),
    Product("output", _T, _Q, h, "output of attention"),
)
MLA_UP = (
    Product("q_up", _T, rq + direct * h, a * KEY / t, "queries of heads"),
    Product("kv_up", _T, rkv, a * (en + ev) / t, "keys and values of heads"),
)
MLA = (
    Product("q_down", _TAU * Min(1, rq), h, rq, "queries to their rank"),
    Product("kv_down", _TAU, h, rkv + er, "keys and values to their rank"),
    *MLA_UP,
    Product("output", _T, a * ev / t, h, "output of attention"),
)
MAMBA = (
    Product("mamba_in", _T, h, (2 * HP + 2 * GN + Hm) / t, "into Mamba-2"),
    Product("mamba_out", _T, HP / t, h, "out of Mamba-2"),
)
DENSE = (
    Product("up", _T, h, g * f / t, "into the MLP"),
    Product("down", _T, f / t, h, "out of the MLP"),
)
EXPERTS = (
    Product("expert_up", _R, w, g * fe / et, "into experts", LOCAL.symbol * w * g * fe / et),
    Product("expert_down", _R, fe / et, w, "out of experts", LOCAL.symbol * w * fe / et),
)
SHARED = (
    Product("shared_up", _T * Min(1, fs), h, g * fs / t, "into shared experts"),
    Product("shared_down", _T * Min(1, fs), fs / t, h, "out of shared experts"),
)
LATENT = (
    Product("latent_in", _TAU * Min(1, wl), h, wl, "tokens to what experts see of them"),
    Product("latent_out", _TAU * Min(1, wl), wl, h, "and back"),
)
AHEAD = Product("mtp_in", _T, 2 * h, h / t, "state and embedding into a layer of MTP")
LOGITS = Product("logits", _T, h, V / t, "logits")


def attention_products(mla: bool) -> tuple[Product, ...]:
    """Those of an attention, grouped-query or latent."""
    return MLA if mla else GQA


def products(mla: bool) -> tuple[Product, ...]:
    """All that low precision applies to."""
    return (*attention_products(mla), *MAMBA, *DENSE, *EXPERTS, *SHARED, *LATENT, AHEAD)


def core_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Operations of scores and values, and of Mamba-2's states, forward."""
    widths = a * (KEY + ev) / t if mla else 2 * _Q
    seen = Min(win + BLOCK, s / 2)
    return (
        FormulaRow("core_flops", _T * s * widths, "flop", "scores and values, causal", FLASH),
        FormulaRow("window_flops", 2 * _T * seen * widths, "flop", "under a window", FLASH),
        FormulaRow(
            "narrow",
            Max(1, NARROW / (KEY + ev if mla else 2 * e)),
            "",
            "how much longer narrow heads take: as many exponentials for fewer operations",
            "fitted to gpt-oss",
        ),
        FormulaRow("mamba_flops", 7 * _T * HP * Ns / t, "flop", "states of Mamba-2", MAMBA2),
    )


def moved_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Bytes that a part of a layer moves besides its products, forward."""
    around = 11 * _T * h / SPREAD.symbol
    turned = 8 * _T * a * KEY / t if mla else 4 * _T * (_Q + _K)
    inside = (2 * (g + 1) + clamp) * _R * fe / et
    shared = 2 * (g + 1) * _T * fs / t
    in_order = 8 * _R * w + 12 * E * _TAU
    rows = (
        ("attention_moved", around + turned, "norm (4), residual with dropout (7), rotation"),
        ("mamba_moved", around, "norm, residual"),
        ("dense_moved", around + 2 * (g + 1) * _T * f / t, "norm, residual, activation"),
        ("act_moved", inside, "activation inside experts; clamped and biased ones move more"),
        (
            "experts_moved",
            around + in_order + shared,
            "norm, residual, router in fp32, tokens put in order and back, shared experts",
        ),
    )
    return tuple(FormulaRow(name, what, "bytes", text, COUNTED) for name, what, text in rows)


def parameter_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Elements of matrices on a device: of parts of layers, of a stage, and of its experts.

    Down-projections, routers and projections of tokens are whole on each rank of tp.
    """
    latent = (
        h * (rq + rkv + er)
        + (rq + direct * h) * a * KEY / t
        + rkv * a * (en + ev) / t
        + a * ev * h / t
    )
    rows = {
        "attention": (latent if mla else 2 * h * (_Q + _K), "an attention"),
        "mamba": ((h * (3 * HP + 2 * GN + Hm)) / t, "a Mamba-2"),
        "dense": ((g + 1) * h * f / t, "a dense MLP"),
        "mixed": (h * E + 2 * h * wl + (g + 1) * h * fs / t, "what all tokens meet of a mixture"),
        "expert": (LOCAL.symbol * (g + 1) * w * fe / et, "the experts of a layer"),
    }
    parts = {
        name: FormulaRow(f"{name}_parameters", what, "elements", text, COUNTED)
        for name, (what, text) in rows.items()
    }
    stage = (
        (nf + nw) * parts["attention"].symbol
        + nm * parts["mamba"].symbol
        + nd * parts["dense"].symbol
        + nx * parts["mixed"].symbol
        + nt * 2 * h**2 / t
        + END_PARAMETERS.symbol * (first + last - tied * first * last)
        + END_PARAMETERS.symbol * Min(1, nt) * (1 - last) * (1 - first * tied)  # logits of its own
    )
    return (
        *parts.values(),
        FormulaRow("stage_parameters", stage, "elements", "of a stage but its experts", COUNTED),
        FormulaRow(
            "stage_experts", nx * parts["expert"].symbol, "elements", "of a stage's experts", GSHARD
        ),
    )


MODEL_FLOPS = FormulaRow(
    "model_flops",
    B * s * token_flops,
    "flop",
    "of the whole model in an iteration: forward, and twice that backward; routers left out",
    COUNTED,
)


def count_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Sizes, operations and bytes; all that needs no device."""
    sizes = (TOKENS, MICRO_BATCHES, SPREAD, QUERY_WIDTH, KEY_WIDTH, END_PARAMETERS)
    own = (TAU, ROUTED, QUERY_KEY, LOCAL)
    counted = (row for one in (*products(mla), LOGITS) for row in (one.flops, one.bytes))
    more = (*core_rows(mla), *moved_rows(mla), *parameter_rows(mla), MODEL_FLOPS)
    return (*sizes, *own, *counted, *more)


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
