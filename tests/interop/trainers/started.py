"""What a trainer would run: read back from what it is given, and asked for by a strategy."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Mlp, Transformer


class Refused(Exception):
    """The trainer ends before the first step; the text is the rule, and where it stands."""


def require(holds: bool, rule: str) -> None:
    """A rule of a trainer."""
    if not holds:
        raise Refused(rule)


@dataclass(frozen=True, slots=True)
class Mixture:
    """What goes beyond equal dense layers with full attention and none captured.

    ``layers``: letters of the layers of each chunk, attention (* full, + latent, w window, M
    Mamba-2), then MLP (- dense, E experts).  Sizes in the order of the classes of
    :mod:`p2smt.training.transformer`, empty where the model has none; ``ahead``: layers of MTP.
    ``ahead_in``: the chunk, from 1, that has them, 0 the last.  ``degrees``: ed, ep, etp.
    ``graphs``: modules that are captured, or ``full``.
    """

    layers: tuple[str, ...]
    experts: tuple[int, ...]
    latent: tuple[int, ...]
    mamba: tuple[int, ...]
    window: int
    ahead: int
    degrees: tuple[int, int, int]
    dispatcher: str
    overlap: bool
    graphs: tuple[str, ...]
    chunked: bool = False
    fp8_attention: bool = False
    ahead_in: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """A run that starts.  What the trainer is not told is None, and so is left to its user.

    Switches that do nothing are off: sequence parallelism of one rank of tp, ZeRO of one replica.
    """

    degrees: tuple[int, int, int, int]  # pp, dp, cp, tp
    chunks: tuple[int, ...]
    micro_batch: int
    micro_batches: int
    batch: tuple[int, int | None]
    sequence_parallel: bool
    zero: int
    recompute: Recompute | tuple[str, ...]  # modules, sorted
    flash: bool | None
    dtype: str
    sizes: tuple[int, ...] | None
    again: int = 0  # layers of a chunk that are computed again whole, 0: all
    copies: int = 1  # of the shards of ZeRO
    shared: bool = False
    moments: int = 12  # bytes of a parameter in the optimizer
    dropout: bool | None = False
    low_parameters: bool = False  # in low precision alone
    mixture: Mixture | None = None


def sizes_of(model: Transformer) -> tuple[int, ...]:
    """A model's sizes and switches."""
    ffn = model.ffn if any(kind.mlp is Mlp.DENSE for kind in model.kinds()) else 0
    numbers = (model.layers, model.hidden, ffn, model.heads, model.kv_heads, model.head_size)
    return (*numbers, model.vocab, int(model.gated), int(model.tied))


def asked(model: Transformer, batch: Batch, strategy: Strategy) -> Started:
    """What a strategy means; a window that sees everything is none."""
    model = model.seen(batch.tokens)
    chunks, count = strategy.split, strategy.pp * strategy.vpp
    if not chunks and model.layers % count == 0:
        chunks = (model.layers // count,) * count
    elif not chunks and model.mtp and (model.layers + 2) % count:
        each = (model.layers + 2 + model.mtp) // count
        ends = 2 + model.mtp  # of the last chunk, and what it lacks of the first
        chunks = (each - max(0, ends - each), *(each,) * (count - 2), max(0, each - ends))
    elif not chunks:
        whole = [(model.layers + 2) // count] * count
        whole[0] -= 1
        whole[-1] -= 1
        chunks = tuple(whole)
    return Started(
        degrees=strategy.sizes,  # type: ignore[arg-type]
        chunks=chunks,
        micro_batch=strategy.micro_batch,
        micro_batches=batch.sequences // strategy.dp // strategy.micro_batch,
        batch=(batch.sequences, batch.tokens),
        sequence_parallel=strategy.sequence_parallel and strategy.tp > 1,
        zero=strategy.zero if strategy.dp * strategy.cp > 1 else 0,
        recompute=_again(strategy),
        flash=strategy.flash,
        dtype=strategy.dtype,
        sizes=sizes_of(model),
        again=strategy.recompute_layers,
        copies=strategy.dp_replicate,
        shared=strategy.shared_overlap,
        moments=strategy.optimizer_bytes,
        dropout=strategy.dropout,
        low_parameters=strategy.dtype in ("fp8", "mxfp8", "nvfp4") and strategy.fp8_params,
        mixture=mixture_of(model, strategy, chunks),
    )


def _again(strategy: Strategy) -> Recompute | tuple[str, ...]:
    if strategy.recompute is Recompute.SELECTIVE:
        return ("core_attn",)
    return tuple(sorted(strategy.modules)) or strategy.recompute


_ATTENTION = {"full": "*", "window": "w", "mamba": "M", "none": ""}
_MLP = {"dense": "-", "experts": "E", "none": ""}


def mixture_of(model: Transformer, strategy: Strategy, chunks: tuple[int, ...]) -> Mixture:
    """What a strategy means beyond equal dense layers, whose chunks have so many layers."""
    kinds = [kind for run in model.runs for _ in range(run.repeat) for kind in run.kinds]
    letters = [_ATTENTION[kind.attention.value] + _MLP[kind.mlp.value] for kind in kinds]
    if model.mla:
        letters = [one.replace("*", "+") for one in letters]
    at, layers = 0, []
    for count in chunks:
        layers.append("".join(letters[at : at + count]))
        at += count
    one, mla, mamba = model.experts, model.mla, model.mamba
    return Mixture(
        layers=tuple(layers),
        experts=()
        if one is None
        else (
            *(one.count, one.active, one.width, one.shared_width, one.latent),
            *(one.groups, one.top_groups, int(one.clamped)),
        ),
        latent=() if mla is None else (mla.query_rank, mla.kv_rank, mla.nope, mla.rope, mla.value),
        mamba=() if mamba is None else (mamba.heads, mamba.head_size, mamba.groups, mamba.state),
        window=model.window,
        ahead=model.mtp,
        degrees=(strategy.ed, strategy.ep, strategy.etp) if one else (1, 1, 1),
        dispatcher=strategy.dispatcher if one else "alltoall",
        overlap=strategy.overlap,
        graphs=_graphs(model, strategy),
        chunked=model.chunked,
        fp8_attention=strategy.fp8_attention,
        ahead_in=strategy.mtp_chunk % max(len(strategy.split), 1),
    )


def _graphs(model: Transformer, strategy: Strategy) -> tuple[str, ...]:
    if strategy.graphs != "partial":
        return () if strategy.graphs == "none" else ("full",)
    router = [] if "moe" in strategy.modules else ["moe_router", "moe_preprocess"]
    modules = ["attn", *(router if model.experts else ["mlp"])]
    return tuple(sorted(modules + ["mamba"] * (model.mamba is not None)))
