"""Rows of models with layers of several kinds: seconds without communication, then what is sent.

Products run in low precision where the strategy has one; the core of attention, routers, embedding
and logits do not.  The host launches kernels beside the device: where it takes about as long, both
are seen (``OVERLAP``), and where kernels are captured in graphs it takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sympy import Expr, Integer, Rational

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.kinds import (
    AHEAD,
    DENSE,
    EXPERTS,
    GSHARD,
    LATENT,
    LOCAL,
    LOGITS,
    MAMBA,
    MLA_UP,
    ROUTED,
    SHARED,
    TAU,
    Product,
    attention_products,
    products,
)
from p2smt.training.formulas.seconds import ROOFLINE
from p2smt.training.formulas.symbols import (
    COUNTED,
    END_PARAMETERS,
    FLASH,
    HP,
    KEY_WIDTH,
    PAPER,
    RING,
    TOKENS,
    ZERO,
    E,
    FormulaRow,
    G,
    Max,
    Min,
    V,
    a,
    again_act,
    again_core,
    again_experts,
    again_mlp,
    again_norm,
    again_shared,
    again_up,
    b,
    beside,
    c,
    core_8,
    d,
    direct,
    dr,
    ed,
    edge,
    en,
    er,
    eta,
    eta_core,
    eta_low,
    eta_memory,
    ev,
    first,
    fs,
    full,
    full_d,
    full_f,
    full_m,
    full_w,
    full_x,
    h,
    hidden_dispatch,
    hides,
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
    overlap_dp,
    overlap_fetch,
    overlap_tp,
    peak,
    peak_low,
    quantised,
    r,
    rkv,
    row_symbol,
    rq,
    s,
    skew,
    sp,
    state,
    state_bytes,
    t,
    tied,
    w,
    win,
    zero_1,
    zero_2,
    zero_3,
)
from p2smt.training.formulas.symbols import W as BANDWIDTH
from p2smt.training.formulas.traffic import EVERY_BACKWARD, PP_TRAFFIC, TrafficRow, copies
from p2smt.training.prediction import DISPATCH_REQUEST, Cover

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


# Rows of models with layers of several kinds: what each axis sends, and what hides it.
#
# Experts have axes of their own beside the pipeline: ``ep``, ``et`` (their tensor parallelism) and
# ``ed`` (data parallelism of experts); tokens leave and come back inside ``ep`` and ``et``.


_AR, _AG, _RS = RequestKind.ALL_REDUCE, RequestKind.ALL_GATHER, RequestKind.REDUCE_SCATTER
_T = TOKENS.symbol
_FORWARD_S, _BACKWARD_S = row_symbol("stage_forward_s"), row_symbol("stage_backward_s")
_STAGE_S = _FORWARD_S + _BACKWARD_S
_P, _X = row_symbol("stage_parameters"), row_symbol("stage_experts")
_ENDS = first + last - tied * first * last
_NONE = Integer(0)


def _seconds(these: tuple[Product, ...]) -> Expr:
    found: Expr = sum((row_symbol(f"{one.name}_s") for one in these), _NONE)
    return found


def traffic(mla: bool) -> tuple[TrafficRow, ...]:
    """Every request of a model, in the order of their axes."""
    pairs = nm + nd + nx * Min(1, fs) + (0 if mla else nf + nw)
    attention = nf + nw
    under = (
        attention * _seconds(attention_products(mla))
        + nm * _seconds(MAMBA)
        + nd * _seconds(DENSE)
        + nx * _seconds(SHARED)
    ) / 2
    scattered = pairs + (attention if mla else 0)
    attention_again = nf * full_f + nw * full_w
    pairs_again = nm * full_m + nd * full_d + nx * full_x * Min(1, fs)
    pairs_again += 0 if mla else attention_again
    scattered_again = pairs_again + (attention_again if mla else 0)
    rows = [
        _tp("forward", _AR, (1 - sp) * (scattered + scattered_again + first), _NONE),
        _tp("backward", _AR, (1 - sp) * (scattered + last + nt), _NONE),
        _tp("forward gather", _AG, sp * (pairs + pairs_again + last + nt), under),
        _tp("forward scatter", _RS, sp * (scattered + scattered_again + first), under),
        _tp("backward gather", _AG, sp * (scattered + first), under),
        _tp("backward scatter", _RS, sp * (pairs + last + nt), under),
        _tp("inputs again", _AG, sp * (pairs + last + nt), under, Integer(1)),
    ]
    if mla:
        ranks = 2 * _T * (rq + rkv + er + direct * h)
        gathered = _tp("latent gather", _AG, 2 * attention + attention_again, under)
        scattering = _tp("latent scatter", _RS, attention, under)
        rows += [replace(gathered, payload=ranks), replace(scattering, payload=ranks)]
    return (*rows, *_cp(mla), *_experts(), *PP_TRAFFIC, *_data())


def _tp(
    name: str, kind: RequestKind, calls: Expr, cover_s: Expr, part: Expr | None = None
) -> TrafficRow:
    hidden = overlap_tp * (1 - 1 / t) if part is None else part
    cover = Cover.NOTHING if cover_s == 0 else Cover.PRODUCT
    source = f"{PAPER} section 4.2.2"
    payload = 2 * _T * h
    of = (f"tp {name}", kind, ("tp",), payload, calls, source, hidden, cover_s)
    return TrafficRow(*of, cover=cover)


def _cp(mla: bool) -> tuple[TrafficRow, ...]:
    """Keys and values of all tokens; of a window those that it reaches."""
    keys = 2 * b * s * a * (en + er + ev) / t if mla else 4 * b * s * KEY_WIDTH.symbol
    rows = []
    for name, calls, core_s, payload, recomputed in (
        ("cp", nf, row_symbol("core_s"), keys, full_f),
        ("cp window", nw, row_symbol("window_s"), keys * Min(1, win / s), full_w),
    ):
        again = 1 + Max(recomputed, again_core)
        for way, times, hidden in (
            ("forward", again, again * core_s),
            ("backward", Integer(2), Rational(5, 2) * core_s),
        ):
            under = calls * hidden * (1 - 1 / c)
            rows.append(
                TrafficRow(
                    f"{name} {way}",
                    _AG,
                    ("cp",),
                    payload,
                    calls * times,
                    RING,
                    Integer(1),
                    under,
                    cover=Cover.ATTENTION,
                )
            )
    return tuple(rows)


def _experts() -> tuple[TrafficRow, ...]:
    again = Max(full_x, again_experts)
    calls = nx * (4 + 2 * again)
    shared = (3 + again) * _seconds(SHARED)  # forward, and twice that backward
    rows = 2 * ROUTED.symbol * w
    return (
        TrafficRow(
            DISPATCH_REQUEST,
            RequestKind.ALL_TO_ALL,
            ("ep",),
            2 * TAU.symbol * w * r * skew,
            calls,
            GSHARD,
            Max(hidden_dispatch, beside),
            (1 - beside) * hides * _STAGE_S + beside * nx * shared,
            cover=Cover.COMPUTE,
        ),
        TrafficRow("et gather", _AG, ("et",), rows, 2 * nx, GSHARD),
        TrafficRow("et scatter", _RS, ("et",), rows, 2 * nx, GSHARD),
    )


def _data() -> tuple[TrafficRow, ...]:
    """Gradients and parameters: of experts over ``ed``, of all else over dp and cp."""
    each = (_P - _ENDS * END_PARAMETERS.symbol) / Max(n, 1)
    return (
        *_once("dp", ("dp", "cp"), _P),
        *_once("experts", ("ed",), _X, Min(1, E)),
        copies("dp", "dpr", _P / (d * c / dr)),
        copies("experts", "edr", _X / (ed / dr), zero_1 * Min(1, E)),
        *_layers("dp", ("dp", "cp"), each, n),
        *_layers("experts", ("ed",), _X / Max(nx, 1), nx),
        *_layers("dp ends", ("dp", "cp"), END_PARAMETERS.symbol, _ENDS, edge=0),
    )


def _once(
    name: str, axes: tuple[str, ...], elements: Expr, times: Expr | int = 1
) -> tuple[TrafficRow, ...]:
    part = overlap_dp * (1 - 1 / Max(n, 1))
    section = f"{ZERO} section 7.2.1"

    def row(what: str, kind: RequestKind, payload: Expr, calls: Expr, forward: bool) -> TrafficRow:
        cover = Cover.FORWARD if forward else Cover.BACKWARD
        under = _FORWARD_S if forward else _BACKWARD_S
        named = f"{name} {what}"
        of = (named, kind, axes, payload, times * calls, section, part, under)
        return TrafficRow(*of, cover=cover, once=True)

    return (
        row("gradients", _AR, G * elements, 1 - zero_1, False),
        row("gradients scatter", _RS, G * elements, zero_1 - zero_2, False),
        row("parameters gather", _AG, 2 * elements, zero_1 - zero_3, True),
    )


def _layers(
    name: str, axes: tuple[str, ...], elements: Expr, calls: Expr, edge: int = 1
) -> tuple[TrafficRow, ...]:
    """Parameters of ZeRO-3, and gradients that are kept as shards, for every micro-batch."""
    of = name if name.endswith("ends") else f"{name} layer"
    times = 1 if name.endswith("ends") else 2
    return (
        TrafficRow(
            f"{of} gather",
            _AG,
            axes,
            2 * elements,
            zero_3 * times * calls,
            f"{ZERO} section 7.2.2",
            overlap_fetch,
            _STAGE_S,
            cover=Cover.COMPUTE,
            edge=edge,
        ),
        TrafficRow(
            f"{of} scatter",
            _RS,
            axes,
            G * elements,
            zero_2 * calls,
            EVERY_BACKWARD,
            overlap_dp,
            _BACKWARD_S,
            cover=Cover.LAYERS_BACKWARD,
            edge=edge,
        ),
    )
