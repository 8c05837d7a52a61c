"""Rows of models with layers of several kinds: seconds without communication.

Products run in low precision where the strategy has one; the core of attention, routers, embedding
and logits do not.  The host launches kernels beside the device: where it takes about as long, both
are seen (``OVERLAP``), and where kernels are captured in graphs it takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr, Max, Rational

from p2smt.training.formulas.kinds import (
    AHEAD,
    DENSE,
    EXPERTS,
    LATENT,
    LOCAL,
    LOGITS,
    MAMBA,
    MLA_UP,
    SHARED,
    TAU,
    Product,
    attention_products,
    products,
)
from p2smt.training.formulas.seconds import ROOFLINE
from p2smt.training.formulas.symbols import (
    COUNTED,
    FLASH,
    HP,
    PAPER,
    TOKENS,
    FormulaRow,
    V,
    again_act,
    again_core,
    again_experts,
    again_mlp,
    again_norm,
    again_shared,
    again_up,
    c,
    core_8,
    d,
    dr,
    ed,
    edge,
    eta,
    eta_core,
    eta_low,
    eta_memory,
    first,
    full,
    full_d,
    full_f,
    full_m,
    full_w,
    full_x,
    h,
    host_attention_s,
    host_expert_s,
    host_experts_s,
    host_mamba_s,
    host_mlp_s,
    last,
    launches,
    layer_s,
    low,
    n,
    nd,
    nf,
    nm,
    nt,
    nw,
    nx,
    peak,
    peak_low,
    quantised,
    row_symbol,
    state,
    state_bytes,
    t,
    zero_1,
)
from p2smt.training.formulas.symbols import W as BANDWIDTH

FITTED = "fitted to published runs: docs/mixtures.md"
OVERLAP = Rational(7, 4)
"""Device and host together take (device^p + host^p)^(1/p)."""
CORE_8 = 1.28
"""How much faster the core of attention is in 8 bits."""
_W = BANDWIDTH * eta_memory
_FORWARD = Rational(1, 3)


def _product_s(one: Product, in_low: bool = True) -> FormulaRow:
    """Seconds of a product, of its tiles' edges, and of quantising its input.

    Each tile of outputs is started and written once, however many elements are summed into it, and
    in 16 bits whatever its inputs are in.
    """
    rate, part = (peak_low * eta_low, eta_low) if in_low else (peak * eta, eta)
    edge_s = 2 * one.rows * one.outer * edge / (peak * part)
    seconds = Max(one.flops.symbol / rate, one.bytes.symbol / _W) + edge_s
    if in_low:
        seconds += low * quantised * one.inputs / _W
    text = f"{one.meaning}, forward{'' if in_low else ', in 16 bits'}"
    return FormulaRow(f"{one.name}_s", seconds, "s", text, f"{ROOFLINE}; edges {FITTED}")


def _sum(these: Iterable[Product]) -> Expr:
    found: Expr = sum((_product_s(one).symbol for one in these), Rational(0))
    return found


LOGITS_S = _product_s(LOGITS, in_low=False)
_LOSS = 4 * TOKENS.symbol * V / t / _W
"""Fused cross entropy: logits are read, their gradient is written in place."""


def seconds_rows(mla: bool) -> tuple[FormulaRow, ...]:
    """Seconds of parts of layers, of stages, and of the optimizer."""
    core = {
        name: FormulaRow(f"{name}_s", what, "s", text, FITTED)
        for name, what, text in (
            ("core", _core("core_flops"), "core of attention, forward"),
            ("window", _core("window_flops"), "the same under a window"),
            ("states", _states(), "states of Mamba-2"),
        )
    }
    parts = tuple(_parts(mla, {name: row.symbol for name, row in core.items()}))
    return (
        *map(_product_s, products(mla)),
        LOGITS_S,
        *core.values(),
        *parts,
        *_stages({row.name: row.symbol for row in parts}),
        OPTIMIZER_S,
    )


def _core(flops: str) -> Expr:
    return (
        row_symbol(flops) * row_symbol("narrow") / (peak * eta_core * (1 + core_8 * (CORE_8 - 1)))
    )


def _states() -> Expr:
    """The scan of Mamba-2 reads and writes states of chunks: memory bounds it."""
    moved = state_bytes * TOKENS.symbol * HP / t
    return Max(row_symbol("mamba_flops") / (peak * eta), moved / _W)


def _moved(name: str) -> Expr:
    return row_symbol(f"{name}_moved") / _W


def _parts(mla: bool, core: dict[str, Expr]) -> Iterable[FormulaRow]:
    """Seconds of each part of a layer: forward, and backward with what is computed again."""
    attention, norm = _sum(attention_products(mla)), again_norm * 4 * TAU.symbol * h / _W
    up = again_up * _sum(MLA_UP) if mla else Rational(0)
    around = _moved("attention")
    for name, one, whole in (
        ("attention", core["core"], full_f),
        ("window", core["window"], full_w),
    ):
        again = again_core * one + up + norm
        yield from _part(name, attention + around, one, Rational(5, 2), again, whole)
    states = _sum(MAMBA) + _moved("mamba")
    yield from _part("mamba", states, core["states"], Rational(2), norm, full_m)
    dense = _sum(DENSE) + _moved("dense")
    yield from _part("dense", dense, Rational(0), Rational(2), again_mlp * dense + norm, full_d)
    shared = _sum(SHARED)
    mixture = _sum((*EXPERTS, *LATENT)) + _moved("act") + _moved("experts")
    again = (
        again_experts * (mixture + shared)
        + (1 - again_experts) * (again_act * _moved("act") + again_shared * shared)
        + norm
    )
    yield from _part("mixture", mixture + shared, Rational(0), Rational(2), again, full_x)


def _part(
    name: str, plain: Expr, core: Expr, core_backward: Expr, again: Expr, full: Expr
) -> Iterable[FormulaRow]:
    forward = FormulaRow(f"{name}_forward_s", plain + core, "s", f"{name}, forward", COUNTED)
    yield forward
    backward = 2 * plain + core_backward * core + full * forward.symbol + (1 - full) * again
    text = f"{name}, backward, with what is computed again"
    yield FormulaRow(f"{name}_backward_s", backward, "s", text, f"{PAPER} section 5; {FLASH}")


HOST_S = FormulaRow(
    "host_s",
    launches
    * (
        (nf + nw) * host_attention_s
        + nm * host_mamba_s
        + nd * host_mlp_s
        + nx * (host_experts_s + host_expert_s * LOCAL.symbol)
    ),
    "s",
    "launches of a stage's kernels, forward and backward",
    FITTED,
)


def _stages(parts: dict[str, Expr]) -> Iterable[FormulaRow]:
    yield HOST_S
    ends = {
        "forward": (4 * TOKENS.symbol * h / _W, LOGITS_S.symbol + _LOSS, _FORWARD),
        "backward": (
            8 * TOKENS.symbol * h / _W,
            2 * LOGITS_S.symbol,
            1 - _FORWARD + full * _FORWARD,  # what is computed again is launched again
        ),
    }
    for way, (embedding, logits, share) in ends.items():
        ahead = _product_s(AHEAD).symbol * (1 if way == "forward" else 2)
        device = (
            nf * parts[f"attention_{way}_s"]
            + nw * parts[f"window_{way}_s"]
            + nm * parts[f"mamba_{way}_s"]
            + nd * parts[f"dense_{way}_s"]
            + nx * parts[f"mixture_{way}_s"]
            + first * embedding
            + last * logits
            + nt * (ahead + logits)
        )
        row = FormulaRow(f"device_{way}_s", device, "s", f"a stage on its device, {way}", COUNTED)
        yield row
        host = share * HOST_S.symbol
        both = (row.symbol**OVERLAP + host**OVERLAP) ** (1 / OVERLAP) + share * n * layer_s
        yield FormulaRow(f"stage_{way}_s", both, "s", f"a stage, {way}, with its host", FITTED)


OPTIMIZER_S = FormulaRow(
    "optimizer_s",
    (6 + 2 * state)
    * (
        row_symbol("stage_parameters") / (1 + zero_1 * (d * c / dr - 1))
        + row_symbol("stage_experts") / (1 + zero_1 * (ed / dr - 1))
    )
    / _W,
    "s",
    "step of Adam: gradient (4), its own bytes of a parameter read and written, parameter (2)",
    COUNTED,
)
