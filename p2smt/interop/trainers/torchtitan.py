"""TorchTitan: the options of its command line that say what a strategy says.

It shards by FSDP2, over dp_shard and cp: parameters are gathered again for the backward pass
(ZeRO-3) or kept from the forward pass on (ZeRO-2); dp_replicate shards nothing (ZeRO-0).  A model
is a configuration of its registry, and no option has sizes.

Source: pytorch/torchtitan at the commit below: ``torchtitan/config/configs.py`` (options),
``trainer.py``, ``distributed/`` (``parallel_dims.py``, ``pipeline_parallel.py``, ``fsdp.py``,
``activation_checkpoint.py``) and ``models/common/decoder.py``; its schedules are torch's
(``torch/distributed/pipelining/schedules.py``, torch 2.13), as is what cuts masks over cp
(``torch/distributed/tensor/experimental/_context_parallel/_attention.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.trainer import MissingFeature, Trainer, needs_selective
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

_BLOCK = 128
"""Tokens of a block of flex attention's mask."""


def _too_long(model: Transformer, batch: Batch, _: Strategy) -> bool:
    known = titan_model(model)
    return known is not None and batch.tokens > known.most_tokens


def _uneven_tokens(_: Transformer, batch: Batch, some: Strategy) -> bool:
    """Tokens of a micro-batch go to cp in pairs of parts, and then to tp."""
    tp, cp = some.tp, some.cp
    over_tp = tp if some.sequence_parallel else 1
    over_cp = 2 * cp if cp > 1 else 1
    return some.micro_batch * batch.tokens % (over_tp * over_cp) != 0


def _odd_blocks(_: Transformer, batch: Batch, some: Strategy) -> bool:
    """Flex attention cuts its mask over cp by blocks."""
    return some.cp > 1 and some.micro_batch * batch.tokens % (_BLOCK * some.cp) != 0


def _few_micro_batches(_: Transformer, batch: Batch, some: Strategy) -> bool:
    count = batch.sequences // (some.dp * some.micro_batch)
    return some.vpp == 1 and count < some.pp


def _no_words(model: Transformer, _: Batch, some: Strategy) -> bool:
    """Some rank of tp is left without a part of the vocabulary."""
    tp = some.tp
    return (tp - 1) * (-(-model.vocab // tp)) >= model.vocab


_MISSING = (
    MissingFeature("MLPs that are not gated", lambda model, _, __: not model.gated),
    MissingFeature(
        "tied embeddings with pipeline stages", lambda model, _, some: some.pp > 1 and model.tied
    ),
    MissingFeature("sequences of so many tokens for this model", _too_long),
    MissingFeature(
        "tp that does not divide kv_heads", lambda model, _, some: model.kv_heads % some.tp != 0
    ),
    MissingFeature("ranks of tp without a part of the vocabulary", _no_words),
    MissingFeature("micro-batches whose tokens cp and tp do not divide", _uneven_tokens),
    MissingFeature(f"parts of cp that are no multiple of {_BLOCK} tokens", _odd_blocks),
    MissingFeature("fewer micro-batches than pipeline stages", _few_micro_batches),
    MissingFeature(
        "ZeRO-1 (its FSDP shards gradients as well)",
        lambda _, __, some: some.dp * some.cp > 1 and some.zero == 1,
    ),
    MissingFeature(
        "ZeRO-0 with context parallelism (its FSDP shards over cp)",
        lambda _, __, some: some.cp > 1 and some.zero == 0,
    ),
    MissingFeature("attention that is not fused (flash)", lambda _, __, some: not some.flash),
    MissingFeature("recomputation of attention alone (selective)", needs_selective),
)
_SUBCOMMANDS = {
    Recompute.NONE: "activation-checkpoint:none",
    Recompute.FULL: "activation-checkpoint:full",
}


def _write(model: Transformer, batch: Batch, strategy: Strategy) -> Exported:
    lines = [
        *_configuration(model),
        *_batch(batch, strategy),
        *_degrees(strategy),
        *(_stages(model, batch, strategy) if strategy.pp > 1 else ()),
        _SUBCOMMANDS[strategy.recompute],
    ]
    return Exported("\n".join(lines) + "\n", tuple(_notes(model, strategy)))


def _configuration(model: Transformer) -> Iterator[str]:
    known = titan_model(model)
    if known is not None:
        yield f"--module {known.module}"
        yield f"--config {known.config}"


def _batch(batch: Batch, strategy: Strategy) -> Iterator[str]:
    """Sequences are packed: batches count in tokens."""
    tokens = strategy.micro_batch * batch.tokens
    yield f"--training.num_tokens_per_microbatch_per_dp_rank {tokens}"
    yield f"--training.num_tokens_per_train_step {batch.sequences * batch.tokens}"
    yield f"--training.max_context_length {batch.tokens}"
    yield "--training.dtype float32"
    yield "--training.mixed_precision_param bfloat16"


def _degrees(strategy: Strategy) -> Iterator[str]:
    replicas, shards = (strategy.dp, 1) if strategy.zero == 0 else (1, strategy.dp)
    yield f"--parallelism.data_parallel_replicate_degree {replicas}"
    yield f"--parallelism.data_parallel_shard_degree {shards}"
    yield f"--parallelism.context_parallel_degree {strategy.cp}"
    yield f"--parallelism.tensor_parallel_degree {strategy.tp}"
    yield f"--parallelism.pipeline_parallel_degree {strategy.pp}"
    off = "" if strategy.sequence_parallel else "no_"
    yield f"--parallelism.{off}enable_sequence_parallel"
    kept = "always" if strategy.zero == 3 else "never"
    yield f"--parallelism.fsdp_reshard_after_forward {kept}"


def _stages(model: Transformer, batch: Batch, strategy: Strategy) -> Iterator[str]:
    layers = chunk_layers(model.layers, strategy, model.mtp)
    each, schedule = max(layers), "Interleaved1F1B" if strategy.vpp > 1 else "1F1B"
    yield f"--parallelism.pipeline_parallel_schedule {schedule}"
    yield f"--parallelism.num_pp_microbatches {micro_batches(batch, strategy)}"
    yield f"--parallelism.pipeline_parallel_layers_per_stage {each}"
    yield f"--parallelism.pipeline_parallel_first_stage_less_layers {each - layers[0]}"
    yield f"--parallelism.pipeline_parallel_last_stage_less_layers {each - layers[-1]}"
    yield "--training.disable_cuda_graphs"


def _split(model: Transformer, strategy: Strategy) -> str:
    layers = chunk_layers(model.layers, strategy, model.mtp)
    if all(count == max(layers) for count in layers[1:-1]):
        return ""
    return "stages of different sizes, but for a first and a last that are smaller"


def _notes(model: Transformer, strategy: Strategy) -> Iterator[str]:
    yield f"for {strategy.devices} ranks; data and learning rate are those of the configuration"
    if titan_model(model) is None:
        sizes = f"{model.layers} layers, hidden {model.hidden}, {model.heads} heads"
        sizes += f", {model.kv_heads} kv_heads, ffn {model.ffn}, vocabulary {model.vocab}"
        yield f"add --module and --config of a configuration of yours with {sizes}"


TORCHTITAN = Trainer(
    name="torchtitan",
    title="TorchTitan",
    commit="b5bcd76c66d0acb1a08b176d9639425bc55e0b2a",
    frameworks=("fsdp",),
    dtypes=("bf16",),
    missing=_MISSING,
    split=_split,
    write=_write,
)


# The layers of each chunk of a pipeline, in the order of the model.


def counts_ends(layers: tuple[int, ...]) -> bool:
    """Whether embedding and logits stand for a layer of the first and the last chunk."""
    each = layers[0] + 1
    return len(layers) > 2 and layers == (each - 1, *(each,) * (len(layers) - 2), each - 1)


def micro_batches(batch: Batch, strategy: Strategy) -> int:
    """How many micro-batches a pipeline takes in an iteration."""
    return batch.sequences // (strategy.dp * strategy.micro_batch)


# The models that TorchTitan has configurations for, told by their sizes.
# Source: ``torchtitan/models/{llama3,qwen3}/config_registry.py`` and ``__init__.py``; those that
# compute in bf16.  ``llama3_405b`` computes in float8, so it is none of them.


TitanSizes = tuple[int, int, int, int, int, int, int, bool]
"""Layers, hidden, heads, kv_heads, ffn, vocab, head_size, whether tied."""
_LLAMA, _QWEN = 131072, 40960


@dataclass(frozen=True, slots=True)
class TitanModel:
    """A configuration: what ``--module`` and ``--config`` name, and its longest sequence."""

    module: str
    config: str
    most_tokens: int


_MODELS: dict[TitanSizes, TitanModel] = {
    (32, 4096, 32, 8, 14336, 128256, 128, False): TitanModel("llama3", "llama3_8b", _LLAMA),
    (80, 8192, 64, 8, 28672, 128256, 128, False): TitanModel("llama3", "llama3_70b", _LLAMA),
    (28, 1024, 16, 8, 3072, 151936, 128, True): TitanModel("qwen3", "qwen3_0_6b", _QWEN),
    (28, 2048, 16, 8, 6144, 151936, 128, True): TitanModel("qwen3", "qwen3_1_7b", _QWEN),
    (40, 5120, 40, 8, 17408, 151936, 128, False): TitanModel("qwen3", "qwen3_14b", _QWEN),
    (64, 5120, 64, 8, 25600, 151936, 128, False): TitanModel("qwen3", "qwen3_32b", _QWEN),
}


def titan_model(model: Transformer) -> TitanModel | None:
    """The configuration that has these sizes, if there is one."""
    sizes = (model.layers, model.hidden, model.heads, model.kv_heads, model.ffn, model.vocab)
    return _MODELS.get((*sizes, model.head_size, model.tied))
