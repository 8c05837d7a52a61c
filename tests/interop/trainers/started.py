"""What a trainer would run: read back from what it is given, and asked for by a strategy."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer


class Refused(Exception):
    """The trainer ends before the first step; the text is the rule, and where it stands."""


def require(holds: bool, rule: str) -> None:
    """A rule of a trainer."""
    if not holds:
        raise Refused(rule)


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
    recompute: Recompute
    flash: bool | None
    dtype: str
    sizes: tuple[int, ...] | None


def sizes_of(model: Transformer) -> tuple[int, ...]:
    """A model's sizes and switches."""
    numbers = (model.layers, model.hidden, model.ffn, model.heads, model.kv_heads, model.head_size)
    return (*numbers, model.vocab, int(model.gated), int(model.tied))


def asked(model: Transformer, batch: Batch, strategy: Strategy) -> Started:
    """What a strategy means."""
    chunks, count = strategy.split, strategy.pp * strategy.vpp
    if not chunks and model.layers % count == 0:
        chunks = (model.layers // count,) * count
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
        recompute=strategy.recompute,
        flash=strategy.flash,
        dtype=strategy.dtype,
        sizes=sizes_of(model),
    )
