"""TorchTitan: the options, or the lines of its configuration, that say what a strategy says.

It shards by FSDP2, over dp_shard and cp: parameters are gathered again for the backward pass
(ZeRO-3) or kept from the forward pass on (ZeRO-2); dp_replicate shards nothing (ZeRO-0).  A model
is a configuration of its registry, and no option has sizes.  Experts lie over dp_shard, cp and tp,
ep innermost, and are never cut; with ep = 1 tp cuts them like other MLPs.

Source: pytorch/torchtitan at the commit below: ``torchtitan/config/configs.py`` (options),
``trainer.py``, ``distributed/`` (``parallel_dims.py``, ``pipeline_parallel.py``, ``fsdp.py``,
``activation_checkpoint.py``) and ``models/common/`` (``decoder.py``, ``MOE_SHARDING.md``,
``token_dispatcher.py``), ``models/deepseek_v3/mtp.py``; its schedules are torch's
(``torch/distributed/pipelining/schedules.py``, torch 2.13), as is what cuts masks over cp
(``torch/distributed/tensor/experimental/_context_parallel/_attention.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.titan_models import TitanModel, model_text, titan_model
from p2smt.interop.trainers.trainer import MissingFeature, Trainer, needs_selective
from p2smt.parallelism.folded import PP_OUTERMOST
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Attention, Mlp, Transformer

_BLOCK = 128
"""Tokens of a block of flex attention's mask."""


def _too_long(model: Transformer, batch: Batch, some: Strategy) -> bool:
    known = titan_model(model, some)
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


def _other_layers(model: Transformer, _: Batch, __: Strategy) -> bool:
    """Layers that none of its blocks are."""
    kinds = model.kinds()
    alone = any(kind.attention is Attention.NONE or kind.mlp is Mlp.NONE for kind in kinds)
    return model.chunked or model.mamba is not None or alone


def _cut_experts(model: Transformer, _: Batch, some: Strategy) -> bool:
    """It cuts experts by tp where it does not spread them, and nowhere else."""
    cut = some.tp if some.ep == 1 else 1
    return model.experts is not None and some.etp != cut


def _sharded_experts(_: Transformer, __: Batch, some: Strategy) -> bool:
    """Whether replicas of experts would be sharded within tp, where nothing else is."""
    return some.zero == 0 and some.ep > 1 and some.ep != some.tp


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
    MissingFeature("dropout", lambda _, __, some: some.dropout),
    MissingFeature("recomputation of attention alone (selective)", needs_selective),
    MissingFeature("recomputation of single modules", lambda _, __, some: some.modules != ()),
    MissingFeature("Mamba layers, chunks, and attention or MLP alone", _other_layers),
    MissingFeature(
        "experts that see fewer elements (latent)",
        lambda model, _, __: model.experts is not None and model.experts.latent > 0,
    ),
    MissingFeature("tensor parallelism of experts (etp) but as tp without ep", _cut_experts),
    MissingFeature("ZeRO-0 with ep other than tp (its FSDP shards experts)", _sharded_experts),
    MissingFeature("dispatch beside computing (overlap)", lambda _, __, some: some.overlap),
    MissingFeature(
        "the flex dispatcher without ep",
        lambda _, __, some: some.dispatcher == "flex" and some.ep == 1,
    ),
    MissingFeature(
        "multi-token prediction (MTP) with pp or cp",
        lambda model, _, some: model.mtp > 0 and some.pp * some.cp > 1,
    ),
    MissingFeature("graphs of single modules", lambda _, __, some: some.graphs == "partial"),
    MissingFeature(
        "graphs with pipeline stages or ep",
        lambda _, __, some: some.graphs == "full" and some.pp * some.ep > 1,
    ),
)
_SUBCOMMANDS = {Recompute.NONE: "none", Recompute.FULL: "full"}
_Settings = Mapping[str, Mapping[str, int | str | bool]]
"""Values by the name of their option, by section."""


def _settings(model: Transformer, batch: Batch, strategy: Strategy) -> _Settings:
    stages = _stages(model, batch, strategy) if strategy.pp > 1 else {}
    return {
        "training": {**_batch(batch, strategy), "disable_cuda_graphs": strategy.graphs == "none"},
        "parallelism": {**_degrees(strategy), **stages},
    }


def _write(
    model: Transformer, batch: Batch, strategy: Strategy, layout: RankLayout | None = None
) -> Exported:
    known = titan_model(model, strategy)
    lines = [f"--module {known.module}", f"--config {known.config}"] if known else []
    for section, values in _settings(model, batch, strategy).items():
        lines += [_option(f"{section}.", name, value) for name, value in values.items()]
    lines.append(f"activation-checkpoint:{_SUBCOMMANDS[strategy.recompute]}")
    notes = _notes(model, strategy, layout, "add --module and --config of", known)
    return Exported("\n".join(lines) + "\n", tuple(notes))


def _option(section: str, name: str, value: int | str | bool) -> str:
    if isinstance(value, bool):
        return f"--{section}{'' if value else 'no_'}{name}"
    return f"--{section}{name} {value}"


def _write_python(
    model: Transformer, batch: Batch, strategy: Strategy, layout: RankLayout | None = None
) -> Exported:
    """A function that returns its ``Trainer.Config``: what ``--config`` names."""
    known = titan_model(model, strategy)
    full = strategy.recompute is Recompute.FULL
    given, made = ("", f"{known.config}()") if known else ("config: Trainer.Config", "")
    source = f"torchtitan.models.{known.module}.config_registry" if known else ""
    settings = _settings(model, batch, strategy)
    lines = [
        '"""A training of TorchTitan, written by p2smt."""',
        "",
        "from torchtitan.config import ParallelismConfig",
        *(["from torchtitan.distributed.activation_checkpoint import FullAC"] if full else []),
        *([f"from {source} import {known.config}"] if known else []),
        "from torchtitan.trainer import Trainer",
        "",
        "",
        f"def planned({given}) -> Trainer.Config:",
        *([f"    config = {made}"] if made else []),
        *(
            f"    config.training.{name} = {_literal(v)}"
            for name, v in settings["training"].items()
        ),
        "    config.parallelism = ParallelismConfig(",
        *(f"        {name}={_literal(value)}," for name, value in settings["parallelism"].items()),
        "    )",
        f"    config.activation_checkpoint = {'FullAC.Config()' if full else None}",
        "    return config",
    ]
    notes = _notes(model, strategy, layout, "call it with", known)
    return Exported("\n".join(lines) + "\n", tuple(notes))


def _literal(value: int | str | bool) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _batch(batch: Batch, strategy: Strategy) -> Mapping[str, int | str]:
    """Sequences are packed: batches count in tokens."""
    return {
        "num_tokens_per_microbatch_per_dp_rank": strategy.micro_batch * batch.tokens,
        "num_tokens_per_train_step": batch.sequences * batch.tokens,
        "max_context_length": batch.tokens,
        "dtype": "float32",
        "mixed_precision_param": "bfloat16",
    }


_DEGREES = MappingProxyType(
    {
        "pp": "pipeline_parallel_degree",
        "dp_replicate": "data_parallel_replicate_degree",
        "dp_shard": "data_parallel_shard_degree",
        "cp": "context_parallel_degree",
        "tp": "tensor_parallel_degree",
        "ep": "expert_parallel_degree",
    }
)


def degree_options(sizes: Mapping[str, int]) -> dict[str, int]:
    """Options of ``[parallelism]`` by the sizes of its axes, 1 where one is left out."""
    return {
        option: sizes.get(axis, 1)
        for axis, option in _DEGREES.items()
        if axis != "ep" or sizes.get("ep", 1) > 1
    }


def degree_lines(degrees: Mapping[str, int]) -> list[str]:
    """The same as on its command line."""
    return [_option("parallelism.", name, value) for name, value in degrees.items()]


def strategy_degrees(strategy: Strategy) -> dict[str, int]:
    """The degrees of a strategy: without ZeRO all of dp is copies, else ``dp_replicate``."""
    replicas = strategy.dp if strategy.zero == 0 else strategy.dp_replicate
    return degree_options(
        {
            "pp": strategy.pp,
            "dp_replicate": replicas,
            "dp_shard": strategy.dp // replicas,
            "cp": strategy.cp,
            "tp": strategy.tp,
            "ep": strategy.ep,
        }
    )


def _degrees(strategy: Strategy) -> Mapping[str, int | str | bool]:
    return {
        **strategy_degrees(strategy),
        "enable_sequence_parallel": strategy.sequence_parallel,
        "fsdp_reshard_after_forward": "always" if strategy.zero == 3 else "never",
    }


def _stages(model: Transformer, batch: Batch, strategy: Strategy) -> Mapping[str, int | str]:
    layers = chunk_layers(model.layers, strategy, model.mtp)
    each = max(layers)
    return {
        "pipeline_parallel_schedule": "Interleaved1F1B" if strategy.vpp > 1 else "1F1B",
        "num_pp_microbatches": micro_batches(batch, strategy),
        "pipeline_parallel_layers_per_stage": each,
        "pipeline_parallel_first_stage_less_layers": each - layers[0],
        "pipeline_parallel_last_stage_less_layers": each - layers[-1],
    }


def _split(model: Transformer, strategy: Strategy) -> str:
    layers = chunk_layers(model.layers, strategy, model.mtp)
    if all(count == max(layers) for count in layers[1:-1]):
        return ""
    return "stages of different sizes, but for a first and a last that are smaller"


def _notes(
    model: Transformer,
    strategy: Strategy,
    layout: RankLayout | None,
    how: str,
    known: TitanModel | None,
) -> Iterator[str]:
    yield f"for {strategy.devices} ranks; data and learning rate are those of the configuration"
    if known is None:
        backend = "hybridep" if layout is not None and layout.on_racks else "deepep"
        flex = f', moe_comm_backend "{backend}"' if strategy.dispatcher == "flex" else ""
        yield f"{how} a configuration of yours with {model_text(model)}{flex}"


def _ranks_wrong(_: Strategy, layout: RankLayout) -> str:
    if layout.has(PP_OUTERMOST):
        return ""
    return "numbers ranks of attention over pp, dp, cp, tp, of experts over pp, ed, ep, alone"


TORCHTITAN = Trainer(
    name="torchtitan",
    title="TorchTitan",
    commit="b5bcd76c66d0acb1a08b176d9639425bc55e0b2a",
    frameworks=("fsdp",),
    dtypes=("bf16",),
    missing=_MISSING,
    split=_split,
    write=_write,
    python=_write_python,
    ranks=_ranks_wrong,
    given=lambda _: ("dp_replicate",),
)


# The layers of each chunk of a pipeline, in the order of the model.


def counts_ends(layers: tuple[int, ...]) -> bool:
    """Whether embedding and logits stand for a layer of the first and the last chunk."""
    each = layers[0] + 1
    return len(layers) > 2 and layers == (each - 1, *(each,) * (len(layers) - 2), each - 1)


def micro_batches(batch: Batch, strategy: Strategy) -> int:
    """How many micro-batches a pipeline takes in an iteration."""
    return batch.sequences // (strategy.dp * strategy.micro_batch)
