"""Rows of models with layers of several kinds: what each axis sends, and what hides it.

Experts have axes of their own beside the pipeline: ``ep``, ``et`` (their tensor parallelism) and
``ed`` (data parallelism of experts); tokens leave and come back inside ``ep`` and ``et``.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr, Integer, Max, Min, Rational

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.kinds import (
    DENSE,
    GSHARD,
    MAMBA,
    ROUTED,
    SHARED,
    TAU,
    Product,
    attention_products,
)
from p2smt.training.formulas.symbols import (
    END_PARAMETERS,
    KEY_WIDTH,
    PAPER,
    RING,
    TOKENS,
    ZERO,
    E,
    G,
    a,
    again_core,
    again_experts,
    b,
    beside,
    c,
    d,
    direct,
    dr,
    ed,
    en,
    er,
    ev,
    first,
    fs,
    full_d,
    full_f,
    full_m,
    full_w,
    full_x,
    h,
    hidden_dispatch,
    hides,
    last,
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
    r,
    rkv,
    row_symbol,
    rq,
    s,
    skew,
    sp,
    t,
    tied,
    w,
    win,
    zero_1,
    zero_2,
    zero_3,
)
from p2smt.training.formulas.traffic import EVERY_BACKWARD, PP_TRAFFIC, TrafficRow, copies
from p2smt.training.prediction import DISPATCH_REQUEST, Cover

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
    return TrafficRow(f"tp {name}", kind, ("tp",), payload, calls, source, cover, hidden, cover_s)


def _cp(mla: bool) -> tuple[TrafficRow, ...]:
    """Keys and values of all tokens; of a window those that it reaches."""
    keys = 2 * b * s * a * (en + er + ev) / t if mla else 4 * b * s * KEY_WIDTH.symbol
    rows = []
    for name, calls, core_s, payload, full in (
        ("cp", nf, row_symbol("core_s"), keys, full_f),
        ("cp window", nw, row_symbol("window_s"), keys * Min(1, win / s), full_w),
    ):
        again = 1 + Max(full, again_core)
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
                    Cover.ATTENTION,
                    Integer(1),
                    under,
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
            Cover.COMPUTE,
            Max(hidden_dispatch, beside),
            (1 - beside) * hides * _STAGE_S + beside * nx * shared,
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
        of = (named, kind, axes, payload, times * calls, section, cover, part, under)
        return TrafficRow(*of, once=True)

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
            Cover.COMPUTE,
            overlap_fetch,
            _STAGE_S,
            edge=edge,
        ),
        TrafficRow(
            f"{of} scatter",
            _RS,
            axes,
            G * elements,
            zero_2 * calls,
            EVERY_BACKWARD,
            Cover.LAYERS_BACKWARD,
            overlap_dp,
            _BACKWARD_S,
            edge=edge,
        ),
    )
