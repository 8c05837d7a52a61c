"""Rows of models whose layers are of several kinds: sizes, operations and bytes, forward.

A layer is an attention (full, windowed, Mamba-2) and an MLP (dense, experts); either may be absent.
A stage adds up what each kind takes, times how many layers of it the stage has.  Attention is
grouped-query or latent (MLA): the same for all layers of a model, so each has a table of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Max, Min

from p2smt.training.formulas.symbols import (
    COUNTED,
    END_PARAMETERS,
    FLASH,
    GN,
    HP,
    KEY_WIDTH,
    MICRO_BATCHES,
    QUERY_WIDTH,
    SPREAD,
    TOKENS,
    B,
    E,
    FormulaRow,
    Hm,
    Ns,
    V,
    a,
    clamp,
    direct,
    e,
    en,
    ep,
    er,
    et,
    ev,
    f,
    fe,
    first,
    fs,
    g,
    h,
    last,
    nd,
    nf,
    nm,
    nt,
    nw,
    nx,
    r,
    rkv,
    rq,
    s,
    skew,
    t,
    tied,
    token_flops,
    w,
    win,
    wl,
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
