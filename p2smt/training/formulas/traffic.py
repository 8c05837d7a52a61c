"""Rows: what each axis sends, how often, and what it hides under.

A request is repeated ``calls`` times for every micro-batch of a stage, or once in an iteration
where it is ``once``.  ``part`` of its time may hide, under ``cover_s`` at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, Piecewise

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.compiled.table import Traffic
from p2smt.training.formulas.seconds import (
    CORE_BACKWARD_S,
    CORE_S,
    DOWN_S,
    LOGITS_S,
    OUTPUT_S,
    QKV_S,
    STAGE_BACKWARD_S,
    STAGE_FORWARD_S,
    UP_S,
)
from p2smt.training.formulas.symbols import (
    END_PARAMETERS,
    KEY_WIDTH,
    LAYER_PARAMETERS,
    MEGATRON,
    PAPER,
    RING,
    STAGE_PARAMETERS,
    TOKENS,
    ZERO,
    FormulaRow,
    G,
    Max,
    b,
    c,
    d,
    dr,
    first,
    full,
    h,
    last,
    mtp,
    n,
    overlap_dp,
    overlap_fetch,
    overlap_pp,
    overlap_tp,
    s,
    selective,
    sp,
    t,
    tied,
    v,
    zero_1,
    zero_2,
    zero_3,
)
from p2smt.training.prediction import Cover

EVERY_BACKWARD = (
    f"{ZERO} section 5.2; reduced in every backward pass: Megatron-FSDP's optim_grads "
    "(grad_reduce_every_bprop), DeepSpeed issue 2252"
)
COPIES = "arXiv 2304.11277 section 3.2.2"  # PyTorch FSDP: hybrid sharding
_NONE = Integer(0)
_HIDDEN = 2 * TOKENS.symbol * h
_KEYS = 4 * b * s * KEY_WIDTH.symbol
_PRODUCT_PART = overlap_tp * (1 - 1 / t)
_STAGE_S = STAGE_FORWARD_S.symbol + STAGE_BACKWARD_S.symbol
_BUCKET_PART = overlap_dp * (1 - 1 / Max(n, 1))


@dataclass(frozen=True, slots=True)
class TrafficRow(Traffic):
    """A request of some axes with its formulas, and where they are from."""

    payload: Expr
    calls: Expr
    source: str
    part: Expr = _NONE
    cover_s: Expr = _NONE

    def row(self, what: str) -> FormulaRow:
        """One of its formulas: ``payload``, ``calls``, ``part`` or ``cover_s``."""
        unit, meaning = _WHAT[what]
        found = getattr(self, what)
        return FormulaRow(self.row_name(what), found, unit, f"{self.name}: {meaning}", self.source)


_WHAT = {
    "payload": ("bytes", "the whole vector"),
    "calls": ("", "for a micro-batch of a stage"),
    "part": ("", "part of it that may hide"),
    "cover_s": ("s", "work that it may hide under"),
}


_AR, _AG, _RS = RequestKind.ALL_REDUCE, RequestKind.ALL_GATHER, RequestKind.REDUCE_SCATTER
_INTO: Expr = n * (QKV_S.symbol + UP_S.symbol)
_OUT: Expr = n * (OUTPUT_S.symbol + DOWN_S.symbol)
_LOGITS: Expr = last * LOGITS_S.symbol


def _tp(
    name: str, kind: RequestKind, calls: Expr, cover_s: Expr = _NONE, part: Expr = _PRODUCT_PART
) -> TrafficRow:
    source = f"{PAPER} section 4.2.2"
    if cover_s == 0:
        return TrafficRow(name, kind, ("tp",), _HIDDEN, calls, source)
    of = (name, kind, ("tp",), _HIDDEN, calls, source, part, cover_s)
    return TrafficRow(*of, cover=Cover.PRODUCT)


TP_TRAFFIC = (
    _tp("tp forward", _AR, (1 - sp) * (2 * n * (1 + full) + first)),
    _tp("tp backward", _AR, (1 - sp) * (2 * n + last)),
    _tp("tp forward gather", _AG, sp * (2 * n * (1 + full) + last), _INTO * (1 + full) + _LOGITS),
    _tp("tp forward scatter", _RS, sp * (2 * n * (1 + full) + first), _OUT * (1 + full)),
    _tp("tp backward gather", _AG, sp * (2 * n + first), _OUT),
    _tp("tp backward scatter", _RS, sp * (2 * n + last), _INTO + _LOGITS),
    _tp("tp inputs again", _AG, sp * (2 * n + last), _INTO + _LOGITS, Integer(1)),
)


def _cp(name: str, calls: Expr, core_s: Expr) -> TrafficRow:
    hidden_s = core_s * (1 - 1 / c)  # the last block computes when all has arrived
    of = (name, _AG, ("cp",), _KEYS, calls, RING, Integer(1), hidden_s)
    return TrafficRow(*of, cover=Cover.ATTENTION)


_AGAIN = 1 + full + selective
CP_TRAFFIC = (
    _cp("cp forward", n * _AGAIN, n * _AGAIN * CORE_S.symbol),
    _cp("cp backward", 2 * n, n * CORE_BACKWARD_S.symbol),
)
PP_TRAFFIC = (
    TrafficRow(
        "pp send",
        RequestKind.SEND,
        ("pp",),
        _HIDDEN / t,
        2 * v,
        f"{MEGATRON} sections 2.2 and 4.1",
        Piecewise((overlap_pp, v > 1), (0, True)),
        _STAGE_S,
        closes=True,
        cover=Cover.COMPUTE,
    ),
    TrafficRow(
        "pp shared embedding",
        RequestKind.SEND,
        ("pp",),
        G * END_PARAMETERS.symbol,
        Max(tied, mtp),
        "counted: the first and the last stage exchange gradients of their common matrix",
        once=True,
    ),
)


def _gradients(name: str, kind: RequestKind, calls: Expr) -> TrafficRow:
    """Gradients of a stage, reduced in buckets: all but that of the first layer may hide."""
    return TrafficRow(
        name,
        kind,
        ("dp", "cp"),
        G * STAGE_PARAMETERS.symbol,
        calls,
        f"{ZERO} section 7.2.1",
        _BUCKET_PART,
        STAGE_BACKWARD_S.symbol,
        once=True,
        cover=Cover.BACKWARD,
    )


def copies(name: str, axis: str, elements: Expr, calls: Expr = zero_1) -> TrafficRow:
    """Gradients of a shard, added up over its copies when all micro-batches are done (HSDP)."""
    return TrafficRow(
        f"{name} copies",
        RequestKind.ALL_REDUCE,
        (axis,),
        G * elements,
        calls,
        COPIES,
        _BUCKET_PART,
        STAGE_BACKWARD_S.symbol,
        once=True,
        cover=Cover.BACKWARD,
    )


def _fetch(name: str, payload: Expr, calls: Expr, edge: int = 0) -> TrafficRow:
    """Parameters of ZeRO-3, for every micro-batch."""
    return TrafficRow(
        name,
        _AG,
        ("dp", "cp"),
        payload,
        zero_3 * calls,
        f"{ZERO} section 7.2.2",
        overlap_fetch,
        _STAGE_S,
        edge=edge,
        cover=Cover.COMPUTE,
    )


def _scatter(name: str, elements: Expr, calls: Expr, edge: int = 0) -> TrafficRow:
    """Gradients that are kept as shards: no device has room to add up whole ones."""
    return TrafficRow(
        name,
        _RS,
        ("dp", "cp"),
        G * elements,
        zero_2 * calls,
        EVERY_BACKWARD,
        overlap_dp,
        STAGE_BACKWARD_S.symbol,
        edge=edge,
        cover=Cover.LAYERS_BACKWARD,
    )


_ENDS = first + last - tied * first * last
DP_TRAFFIC = (
    _gradients("dp gradients", _AR, 1 - zero_1),
    _gradients("dp gradients scatter", _RS, zero_1 - zero_2),
    TrafficRow(
        "dp parameters gather",
        _AG,
        ("dp", "cp"),
        2 * STAGE_PARAMETERS.symbol,
        zero_1 - zero_3,
        f"{ZERO} section 7.2.1",
        _BUCKET_PART,
        STAGE_FORWARD_S.symbol,
        once=True,
        cover=Cover.FORWARD,
    ),
    copies("dp", "dpr", STAGE_PARAMETERS.symbol / (d * c / dr)),
    _fetch("dp layer gather", 2 * LAYER_PARAMETERS.symbol, 2 * n, edge=1),
    _scatter("dp layer scatter", LAYER_PARAMETERS.symbol, n, edge=1),
    _fetch("dp ends gather", 2 * END_PARAMETERS.symbol, _ENDS),
    _scatter("dp ends scatter", END_PARAMETERS.symbol, _ENDS),
)
TRAFFIC = (*TP_TRAFFIC, *CP_TRAFFIC, *PP_TRAFFIC, *DP_TRAFFIC)
