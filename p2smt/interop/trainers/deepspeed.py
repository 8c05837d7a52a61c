"""DeepSpeed: the configuration that says what a strategy says, as JSON.

A pipeline is no part of it but a ``PipelineModule``, whose arguments are given as a note; tensor
parallelism is AutoTP, which cuts models that have no pipeline.

Source: deepspeedai/DeepSpeed at the commit below: ``deepspeed/runtime/config.py``,
``deepspeed/runtime/zero/config.py``, ``deepspeed/runtime/tensor_parallel/config.py``,
``deepspeed/runtime/engine.py``, ``deepspeed/runtime/pipe/`` (``engine.py``, ``module.py``) and
``deepspeed/__init__.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.torchtitan import counts_ends, micro_batches
from p2smt.interop.trainers.trainer import MissingFeature, Trainer, needs_selective
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import SIXTEEN, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

_MISSING = (
    MissingFeature(
        "context parallelism by rings (its Ulysses exchanges heads)",
        lambda _, __, some: some.cp > 1,
    ),
    MissingFeature("interleaved pipelines (vpp)", lambda _, __, some: some.vpp > 1),
    MissingFeature(
        "ZeRO-2 and 3 with pipeline stages", lambda _, __, some: some.pp > 1 and some.zero > 1
    ),
    MissingFeature(
        "tensor parallelism with pipeline stages (AutoTP has no pipeline)",
        lambda _, __, some: some.pp > 1 and some.tp > 1,
    ),
    MissingFeature(
        "sequence parallelism between the matrices of tp",
        lambda _, __, some: some.sequence_parallel,
    ),
    MissingFeature(
        "tp beyond kv_heads (AutoTP leaves the other ranks without attention)",
        lambda model, _, some: some.tp > model.kv_heads,
    ),
    MissingFeature("recomputation of attention alone (selective)", needs_selective),
    MissingFeature(
        "recomputation of single modules by its configuration",
        lambda _, __, some: some.modules != (),
    ),
    MissingFeature(
        "expert parallelism by its configuration (its MoE layers are told, by the model)",
        lambda _, __, some: some.ep * some.etp > 1 or some.overlap or some.dispatcher == "flex",
    ),
    MissingFeature(
        "graphs of training (its graphs are of inference)",
        lambda _, __, some: some.graphs != "none",
    ),
    MissingFeature(
        "multi-token prediction (MTP) with pipeline stages",
        lambda model, _, some: some.pp > 1 and model.mtp > 0,
    ),
)


def _write(
    model: Transformer, batch: Batch, strategy: Strategy, _: RankLayout | None = None
) -> Exported:
    config: dict[str, object] = {
        "train_micro_batch_size_per_gpu": strategy.micro_batch,
        "gradient_accumulation_steps": micro_batches(batch, strategy),
        strategy.dtype: {"enabled": True},
        "zero_optimization": {"stage": strategy.zero},
    }
    if strategy.tp == 1:  # with AutoTP, DeepSpeed checks the product over all ranks, not over dp
        config = {"train_batch_size": batch.sequences, **config}
    else:
        config["tensor_parallel"] = {"autotp_size": strategy.tp}
    return Exported(json.dumps(config, indent=2) + "\n", tuple(_notes(model, strategy)))


def _notes(model: Transformer, strategy: Strategy) -> Iterator[str]:
    yield f"for {strategy.devices} ranks; the model, its attention and the optimizer are yours"
    full = strategy.recompute is Recompute.FULL
    if strategy.pp > 1:
        even = counts_ends(chunk_layers(model.layers, strategy, model.mtp))
        parts = "uniform" if even else "type:<class of a layer>"
        arguments = f"num_stages={strategy.pp}, partition_method='{parts}'"
        arguments += f", activation_checkpoint_interval={int(full)}"
        yield f"the model: PipelineModule([embedding, *layers, logits], {arguments})"
    elif full:
        yield "the model: every layer called by deepspeed.checkpointing.checkpoint"


def _split(model: Transformer, strategy: Strategy) -> str:
    layers = chunk_layers(model.layers, strategy, model.mtp)
    if len(set(layers)) == 1 or counts_ends(layers):
        return ""
    return "stages of different sizes that are given"


DEEPSPEED = Trainer(
    name="deepspeed",
    title="DeepSpeed",
    commit="edaa7221267243c7be7fb49c5d5f5c4fb97b4641",
    frameworks=("deepspeed",),
    dtypes=SIXTEEN,
    missing=_MISSING,
    split=_split,
    write=_write,
)
