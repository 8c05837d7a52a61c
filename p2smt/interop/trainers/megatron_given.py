"""Megatron-LM: options for fields of a strategy that are given, never searched.

Source: NVIDIA/Megatron-LM at the commit of :mod:`p2smt.interop.trainers.megatron`:
``megatron/training/arguments.py`` lines 3216 and 3666-3685, ``megatron/core/transformer/
transformer_config.py`` line 717.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from p2smt.training.strategy import Strategy

MOMENTS = MappingProxyType({8: "bf16", 6: "fp8"})
"""Types of both moments of Adam by the bytes of a parameter; it is itself in fp32 (4)."""


def given_fields(strategy: Strategy) -> tuple[str, ...]:
    """Fields whose value has an option here."""
    moments = strategy.optimizer_bytes in MOMENTS
    usual = ("recompute_layers", "dp_replicate", "shared_overlap", "mtp_chunk")
    return (*usual, *(("optimizer_bytes",) if moments else ()))


def given_options(strategy: Strategy) -> Iterator[str]:
    """The lines of these fields; none where all are at their defaults."""
    if strategy.dp_replicate > 1:
        yield f"--num-distributed-optimizer-instances {strategy.dp_replicate}"
    if strategy.shared_overlap:
        yield "--moe-shared-expert-overlap"
    if moments := MOMENTS.get(strategy.optimizer_bytes):
        yield "--use-precision-aware-optimizer"
        yield f"--exp-avg-dtype {moments}"
        yield f"--exp-avg-sq-dtype {moments}"
