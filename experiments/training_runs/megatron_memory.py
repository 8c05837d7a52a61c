"""The memory that Megatron-LM's own tests measured, beside what is predicted of their options.

Rows of mcore_memory.csv: a golden file of NVIDIA/Megatron-LM each (path and commit), with torch's
peak of allocated bytes on the last rank, and the options as the test gives them.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from experiments.training_runs.mixture_file import layout_chunks
from experiments.training_runs.store import HERE
from p2smt.training.efficiencies.frameworks import framework
from p2smt.training.efficiency import Framework, TrainingRun
from p2smt.training.formulas.quantities import quantities
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import MEMORY
from p2smt.training.strategy import MODULES, Batch, Recompute, Strategy, strategy_text
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)

ROWS = HERE / "mcore_memory.csv"
FAMILIES = ("gpt", "moe", "hybrid")
LEAST_BYTES = 2 * 10**9
"""Peaks below are mostly what no model of layers has: workspaces, graphs, the data's buffers."""
OTHER_WORK, ANOTHER_CLUSTER = ("grpo",), "dracooci"
"""Tests of reinforcement learning; and images of a cluster that differs from all others."""
GPT2_VOCAB = 50257
Options = Mapping[str, Any]


def number(options: Options, name: str, default: int = 0) -> int:
    return int(options.get(name, default))


def vocabulary(options: Options) -> int:
    tp = number(options, "tensor-model-parallel-size", 1)
    each = number(options, "make-vocab-size-divisible-by", 128) * tp
    return -(-number(options, "vocab-size", GPT2_VOCAB) // each) * each


LETTERS = {
    "M": LayerKind(Attention.MAMBA, Mlp.NONE),
    "*": LayerKind(Attention.FULL, Mlp.NONE),
    "-": LayerKind(Attention.NONE, Mlp.DENSE),
    "E": LayerKind(Attention.NONE, Mlp.EXPERTS),
}


def kinds(options: Options) -> list[LayerKind]:
    pattern = options.get("hybrid-layer-pattern", options.get("hybrid-override-pattern", ""))
    if pattern:
        return [LETTERS[one] for one in pattern.split("/")[0]]
    layers = number(options, "num-layers")
    if "num-experts" not in options:
        return [LayerKind()] * layers
    frequency = options.get("moe-layer-freq", 1)
    if isinstance(frequency, int) or frequency.isdigit():
        marks = [int(at % int(frequency) == 0) for at in range(layers)]
    else:
        marks = [
            int(digit)
            for digit, many in re.findall(r"\[([01])\]\*(\d+)", frequency)
            for _ in range(int(many))
        ]
    return [LayerKind(mlp=Mlp.EXPERTS if mark else Mlp.DENSE) for mark in marks]


def model_of(name: str, options: Options) -> Transformer:
    hidden, heads = number(options, "hidden-size"), number(options, "num-attention-heads")
    ffn = number(options, "ffn-hidden-size", 4 * hidden)
    if "swiglu" in options and "ffn-hidden-size" not in options:
        ffn = int((4 * hidden * 2 / 3) / 64) * 64
    experts = mla = mamba = None
    if "num-experts" in options:
        experts = Experts(
            number(options, "num-experts"),
            number(options, "moe-router-topk", 2),
            number(options, "moe-ffn-hidden-size", ffn),
            number(options, "moe-shared-expert-intermediate-size"),
        )
    if "multi-latent-attention" in options:
        mla = LatentAttention(
            number(options, "kv-lora-rank"),
            number(options, "qk-head-dim"),
            number(options, "qk-pos-emb-head-dim"),
            number(options, "v-head-dim"),
            number(options, "q-lora-rank"),
        )
    layers = kinds(options)
    if any(one.attention is Attention.MAMBA for one in layers):
        size = number(options, "mamba-head-dim", 64)
        mamba = Mamba(
            number(options, "mamba-num-heads", 2 * hidden // size),
            size,
            number(options, "mamba-num-groups", 8),
            number(options, "mamba-state-dim", 128),
        )
    grouped = "group-query-attention" in options
    return Transformer(
        name=name,
        layers=len(layers),
        hidden=hidden,
        heads=heads,
        kv_heads=number(options, "num-query-groups", heads) if grouped else heads,
        ffn=ffn,
        gated="swiglu" in options,
        vocab=vocabulary(options),
        head_size=number(options, "kv-channels", hidden // heads),
        tied="untie-embeddings-and-output-weights" not in options,
        experts=experts,
        mla=mla,
        mamba=mamba,
        order=LayerRun.of(layers),
        mtp=number(options, "mtp-num-layers"),
    )


def strategy_of(options: Options, gpus: int, model: Transformer) -> Strategy:
    def degree(name: str) -> int:
        return number(options, f"{name}-model-parallel-size", 1)

    tp, pp = degree("tensor"), degree("pipeline")
    cp = number(options, "context-parallel-size", 1)
    mbs = number(options, "micro-batch-size")
    dp = min(gpus // (tp * pp * cp), number(options, "global-batch-size") // mbs)
    vpp, split = chunks(options, pp, model)
    ep = degree("expert")
    etp = number(options, "expert-tensor-parallel-size", tp if model.experts else 1)
    modules = tuple(re.findall(r"\w+", str(options.get("recompute-modules", ""))))
    kept = options.get("recompute-granularity")
    fsdp = options.get("data-parallel-sharding-strategy") == "optim_grads_params"
    zero = 3 if fsdp else int("use-distributed-optimizer" in options)
    return Strategy(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        vpp=vpp,
        micro_batch=mbs,
        sequence_parallel="sequence-parallel" in options and tp > 1,
        zero=zero if dp * cp > 1 else 0,
        recompute=Recompute.FULL if kept == "full" else Recompute.NONE,
        modules=tuple(one for one in MODULES if one in modules),
        flash=not unfused(options),
        dtype=dtype(options),
        ep=ep,
        etp=etp,
        split=split,
        overlap="overlap-moe-expert-parallel-comm" in options,
        fp8_params="fp8-format" not in options or "fp8-param-gather" in options,
        dropout=float(options.get("hidden-dropout", 0.1)) > 0,
    )


def unfused(options: Options) -> bool:
    return (
        options.get("attention-backend") in ("unfused", "local")
        or options.get("transformer-impl") == "local"
    )


def dtype(options: Options) -> str:
    if "fp8-format" in options:
        return "fp8"
    return "fp16" if "fp16" in options else "bf16"


def chunks(options: Options, pp: int, model: Transformer) -> tuple[int, tuple[int, ...]]:
    if layout := options.get("pipeline-model-parallel-layout"):
        split = layout_chunks(layout)
        return len(split) // pp, split
    first, last = (
        number(options, f"decoder-{which}-pipeline-num-layers") for which in ("first", "last")
    )
    if first or last:
        inner = (model.layers - first - last) // (pp - 2)
        return 1, (first, *[inner] * (pp - 2), last)
    if each := number(options, "num-layers-per-virtual-pipeline-stage"):
        return model.layers // pp // each, ()
    return number(options, "num-virtual-stages-per-pipeline-rank", 1), ()


def megatron(options: Options) -> Framework:
    facts = framework("megatron-core")
    fused = "cross-entropy-loss-fusion" in options
    return replace(facts, loss_bytes=10 if fused else 6)


@dataclass(frozen=True, slots=True)
class Peak:
    """A run's peak, measured and predicted, and its strategy as text."""

    name: str
    strategy: str
    measured_bytes: float
    predicted_bytes: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_bytes / self.measured_bytes - 1


def tests_peaks() -> Iterator[Peak]:
    """Every test of a decoder from ``LEAST_BYTES`` on: the medians over its images."""
    for name, rows in _tests().items():
        measured = statistics.median(float(row["mem_max"]) for row in rows)
        if measured >= LEAST_BYTES:
            found = [_last_stage_bytes(_run(name, row)) for row in rows]
            strategy = strategy_text(_run(name, rows[0])[0].strategy)
            yield Peak(name, strategy, measured, statistics.median(found))


def _tests() -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["test"]
            decoder = name.split("/")[0] in FAMILIES and not any(one in name for one in OTHER_WORK)
            if decoder and row["mem_max"] and ANOTHER_CLUSTER not in row["platform"]:
                found.setdefault(name, []).append(row)
    return found


def _run(name: str, row: Mapping[str, str]) -> tuple[TrainingRun, Framework]:
    options = json.loads(row["args"])
    nodes, gpus = map(int, row["nodes_gpus"].split(";")[0].split("x"))
    model = model_of(name, options)
    strategy = strategy_of(options, nodes * gpus, model)
    tokens = number(options, "seq-length") or number(options, "max-position-embeddings")
    batch = Batch(number(options, "global-batch-size"), tokens)
    return TrainingRun(model, batch, strategy), megatron(options)


def _last_stage_bytes(given: tuple[TrainingRun, Framework]) -> float:
    """Bytes of a device of the last stage, which the golden values are of."""
    run, facts = given
    found = quantities(run.model, run.batch, StrategyColumns.of((run.strategy,)), facts)
    at = int(found.stages.index[0].argmax())
    return float(sum(found.of_stage(part)[0, at] for part in MEMORY))
