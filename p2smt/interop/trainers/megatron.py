"""Megatron-LM: the options of its command line that say what a strategy says.

Source: NVIDIA/Megatron-LM at the commit below: ``megatron/training/arguments.py`` (options, and
``validate_args``), ``megatron/core/transformer/transformer_config.py`` and
``pipeline_parallel_layer_layout.py``, ``megatron/training/config/`` (options made from classes).
``megatron/training/initialize.py`` makes the buffers of ``--tp-comm-overlap``.
ZeRO-1 is its distributed optimizer, ZeRO-2 and 3 are Megatron-FSDP; both shard over dp and cp.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import groupby

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.torchtitan import counts_ends
from p2smt.interop.trainers.trainer import MissingFeature, Trainer
from p2smt.training.efficiency import Framework
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import DTYPES, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

_MISSING = (
    MissingFeature(
        "context parallelism without fused attention (flash)",
        lambda _, __, some: some.cp > 1 and not some.flash,
    ),
)
_RECOMPUTE = {
    Recompute.NONE: (),
    Recompute.SELECTIVE: ("--recompute-granularity selective", "--recompute-modules core_attn"),
    Recompute.FULL: (
        "--recompute-granularity full",
        "--recompute-method uniform",
        "--recompute-num-layers 1",
    ),
}
_FSDP = {2: "optim_grads", 3: "optim_grads_params"}
_OVERLAP = ("--overlap-grad-reduce", "--overlap-param-gather")
_TP_OVERLAP = "--tp-comm-overlap"
_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


def _write(model: Transformer, batch: Batch, strategy: Strategy) -> Exported:
    lines = [
        *_sizes(model, strategy),
        *_batch(batch, strategy),
        *_degrees(strategy),
        *_stages(model, strategy),
        *_arithmetic(strategy),
        *_sharding(strategy),
    ]
    return Exported("\n".join(lines) + "\n", tuple(_notes(strategy)))


def _sizes(model: Transformer, strategy: Strategy) -> Iterator[str]:
    """The model; its vocabulary padded to what tp divides, else Megatron pads it to more."""
    yield f"--num-layers {model.layers}"
    yield f"--hidden-size {model.hidden}"
    yield f"--ffn-hidden-size {model.ffn}"
    yield f"--num-attention-heads {model.heads}"
    yield f"--kv-channels {model.head_size}"
    if model.kv_heads != model.heads:
        yield "--group-query-attention"
        yield f"--num-query-groups {model.kv_heads}"
    if model.gated:
        yield "--swiglu"
    if not model.tied:
        yield "--untie-embeddings-and-output-weights"
    yield f"--padded-vocab-size {-(-model.vocab // strategy.tp) * strategy.tp}"


def _batch(batch: Batch, strategy: Strategy) -> Iterator[str]:
    yield f"--seq-length {batch.tokens}"
    yield f"--max-position-embeddings {batch.tokens}"
    yield f"--micro-batch-size {strategy.micro_batch}"
    yield f"--global-batch-size {batch.sequences}"


def _degrees(strategy: Strategy) -> Iterator[str]:
    """What is left of the ranks is dp."""
    yield f"--tensor-model-parallel-size {strategy.tp}"
    yield f"--pipeline-model-parallel-size {strategy.pp}"
    yield f"--context-parallel-size {strategy.cp}"
    if strategy.sequence_parallel:
        yield "--sequence-parallel"


def _stages(model: Transformer, strategy: Strategy) -> Iterator[str]:
    """How layers go to chunks: evenly where they do, else chunk by chunk."""
    layers = chunk_layers(model.layers, strategy, model.mtp)
    ends = counts_ends(layers)
    if len(set(layers)) > 1 and not ends:
        yield f"--pipeline-model-parallel-layout {shlex.quote(_layout(layers))}"
        return
    if ends:
        yield "--account-for-embedding-in-pipeline-split"
        yield "--account-for-loss-in-pipeline-split"
    if strategy.vpp > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {strategy.vpp}"


def _layout(layers: tuple[int, ...]) -> str:
    """The chunks in the order of the model: E embedding, t a layer, L logits and loss."""
    chunks = [f"t*{count}" if count > 1 else "t" * count for count in layers]
    chunks[0] = "E" + chunks[0]
    chunks[-1] += "L"
    alike = [(text, len(list(group))) for text, group in groupby(chunks[1:-1])]
    middle = "".join(_repeated(f"{text}|", count) for text, count in alike)
    return f"{chunks[0]}|{middle}{chunks[-1]}" if len(chunks) > 1 else chunks[0]


def _repeated(text: str, count: int) -> str:
    return text if count == 1 else f"({text})*{count}"


_LOW = {
    "fp8": ("--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--fp4-format e2m1",),
}
"""Products in low precision: formats and how they are scaled (megatron/training/arguments.py)."""


def _arithmetic(strategy: Strategy) -> Iterator[str]:
    yield f"--{'bf16' if strategy.low_precision else strategy.dtype}"
    yield from _LOW.get(strategy.dtype, ())
    yield f"--attention-backend {'flash' if strategy.flash else 'unfused'}"
    yield from _RECOMPUTE[strategy.recompute]


def _sharding(strategy: Strategy) -> Iterator[str]:
    if strategy.zero == 0:
        yield _OVERLAP[0]
        return
    yield "--use-distributed-optimizer"
    if strategy.zero > 1:
        yield "--use-megatron-fsdp"
        yield f"--data-parallel-sharding-strategy {_FSDP[strategy.zero]}"
        yield "--no-gradient-accumulation-fusion"
        yield "--ckpt-format fsdp_dtensor"
    yield from _OVERLAP


def _overlap(strategy: Strategy, framework: Framework) -> Exported:
    """Collectives of tp beside products, in buffers of Transformer Engine; these are in bf16.

    Gradients and parameters of dp overlap by ``_sharding``, sends between chunks by default.
    """
    if not (framework.tp_hidden and strategy.sequence_parallel):
        return Exported("")
    if strategy.dtype != "bf16":
        note = f"the time assumes that collectives of tp overlap products: {_TP_OVERLAP} does so "
        return Exported("", (note + "in bf16 alone, else what is hidden of tp shows",))
    note = f"{_TP_OVERLAP}, which the time assumes, needs Transformer Engine and tp within NVLink"
    return Exported(f"{_TP_OVERLAP}\n", (note,))


def _notes(strategy: Strategy) -> Iterator[str]:
    yield f"for {strategy.devices} ranks; data, norms, biases and learning rate are yours to add"
    if strategy.zero > 1:
        yield f"Megatron-FSDP needs {_CONNECTIONS} unset, or more than 1"
    elif strategy.tp > 1 or strategy.cp > 1:
        yield f"before Blackwell, tp or cp needs {_CONNECTIONS}=1 in the environment"
    if strategy.zero > 1 and strategy.pp > 1:
        yield "Megatron takes Megatron-FSDP with pipeline stages, its manual does not mention them"


MEGATRON = Trainer(
    name="megatron",
    title="Megatron-LM",
    commit="d98e8a64ddf34856e74b24714e3bedb2f5a39553",
    frameworks=("megatron-core", "megatron", "nemo", "megatron-deepspeed", "megatron-bridge"),
    dtypes=DTYPES,
    missing=_MISSING,
    split=lambda _, __: "",
    write=_write,
    overlap=_overlap,
)
