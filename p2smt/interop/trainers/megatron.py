"""Megatron-LM: the options of its command line that say what a strategy says.

Source: NVIDIA/Megatron-LM at the commit below: ``megatron/training/arguments.py`` (options, and
``validate_args``), ``megatron/core/transformer/transformer_config.py`` and
``pipeline_parallel_layer_layout.py``, ``megatron/training/config/`` (options made from classes).
``megatron/training/initialize.py`` makes the buffers of ``--tp-comm-overlap``.
ZeRO-1 is its distributed optimizer, ZeRO-2 and 3 are Megatron-FSDP; both shard over dp and cp.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.megatron_model import is_hybrid, model_options
from p2smt.interop.trainers.rank_layout import RankLayout, axis_text
from p2smt.interop.trainers.torchtitan import counts_ends
from p2smt.interop.trainers.trainer import MissingFeature, Trainer
from p2smt.parallelism.folded import DP_OUTERMOST, PP_OUTERMOST
from p2smt.training.efficiency import Framework
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import DTYPES, Batch, Recompute, Strategy
from p2smt.training.transformer import Experts, Mamba, Transformer

_Needed = Callable[[Transformer, Batch, Strategy], bool]


def _of_mamba(words: Callable[[Mamba, Strategy], bool]) -> _Needed:
    return lambda model, _, some: model.mamba is not None and words(model.mamba, some)


def _of_experts(words: Callable[[Experts, Strategy], bool]) -> _Needed:
    return lambda model, _, some: model.experts is not None and words(model.experts, some)


_MISSING = (
    MissingFeature(
        "context parallelism without fused attention (flash)",
        lambda _, __, some: some.cp > 1 and not some.flash,
    ),
    MissingFeature(
        "attention within chunks (its windows slide)", lambda model, _, __: model.chunked
    ),
    MissingFeature(
        "context parallelism by rings of sliding windows",
        lambda model, _, some: some.cp > 1 and model.window > 0,
    ),
    MissingFeature(
        "sliding windows in a hybrid", lambda model, _, __: model.window > 0 and is_hybrid(model)
    ),
    MissingFeature(
        "context parallelism by rings of Mamba layers (it exchanges their heads)",
        _of_mamba(lambda _, some: some.cp > 1),
    ),
    MissingFeature(
        "biases of experts with etp", _of_experts(lambda one, some: one.clamped and some.etp > 1)
    ),
    MissingFeature(
        "the flex dispatcher for one rank (ep etp = 1)",
        lambda _, __, some: some.dispatcher == "flex" and some.ep * some.etp == 1,
    ),
    MissingFeature(
        "an option for the core of attention in 8 bits", lambda _, __, some: some.fp8_attention
    ),
    MissingFeature(
        "parameters in low precision alone without ZeRO (fp8_params=0 goes)",
        lambda _, __, some: some.low_precision and some.fp8_params and some.zero == 0,
    ),
    MissingFeature(
        "graphs of whole iterations with all experts on one rank",
        _of_experts(lambda _, some: some.graphs == "full" and some.dispatcher != "flex"),
    ),
    MissingFeature("dropout in graphs", lambda _, __, some: some.dropout and some.graphs != "none"),
    MissingFeature(
        "partial graphs beside overlap with biases, or with ZeRO-2 and 3",
        _of_experts(
            lambda one, some: (
                some.graphs == "partial" and some.overlap and (one.clamped or some.zero > 1)
            )
        ),
    ),
)


FSDP_STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
_OVERLAP = ("--overlap-grad-reduce", "--overlap-param-gather")
_TP_OVERLAP = "--tp-comm-overlap"
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


def _write(
    model: Transformer, batch: Batch, strategy: Strategy, layout: RankLayout | None = None
) -> Exported:
    lines = [
        *model_options(model, strategy),
        *_batch(batch, strategy),
        *_degrees(strategy, layout),
        *(_expert_degrees(strategy, layout) if model.experts else ()),
        *(() if is_hybrid(model) else _stages(model, strategy)),
        *_arithmetic(model, strategy),
        *_recompute(strategy),
        *_graphs(model, strategy),
        *_sharding(strategy),
        *_given(strategy),
    ]
    return Exported("\n".join(lines) + "\n", tuple(_notes(model, strategy)))


def _batch(batch: Batch, strategy: Strategy) -> Iterator[str]:
    yield f"--seq-length {batch.tokens}"
    yield f"--max-position-embeddings {batch.tokens}"
    yield f"--micro-batch-size {strategy.micro_batch}"
    yield f"--global-batch-size {batch.sequences}"


def _degrees(strategy: Strategy, layout: RankLayout | None) -> Iterator[str]:
    """What is left of the ranks is dp."""
    yield f"--tensor-model-parallel-size {strategy.tp}"
    yield f"--pipeline-model-parallel-size {strategy.pp}"
    yield f"--context-parallel-size {strategy.cp}"
    if strategy.cp > 1:
        yield "--cp-comm-type p2p"
    if strategy.sequence_parallel:
        yield "--sequence-parallel"
    if layout is not None and not layout.has(PP_OUTERMOST):
        yield "--use-tp-pp-dp-mapping"


def _expert_degrees(strategy: Strategy, layout: RankLayout | None) -> Iterator[str]:
    """Without its option, the tensor parallelism of experts would be tp."""
    yield f"--expert-model-parallel-size {strategy.ep}"
    yield f"--expert-tensor-parallel-size {strategy.etp}"
    yield f"--moe-token-dispatcher-type {strategy.dispatcher}"
    if strategy.dispatcher == "flex":
        yield f"--moe-flex-dispatcher-backend {flex_backend(strategy, layout)}"
    if strategy.overlap:
        yield "--overlap-moe-expert-parallel-comm"
        yield "--delay-wgrad-compute"


def flex_backend(strategy: Strategy, layout: RankLayout | None) -> str:
    """HybridEP where NVLink is that of a rack, or whole iterations are captured."""
    racks = layout is not None and layout.on_racks
    return "hybridep" if racks or strategy.graphs == "full" else "deepep"


def ranks_wrong(strategy: Strategy, layout: RankLayout) -> str:
    """Why neither of Megatron's orders has the groups of the layout; empty: one has."""
    orders = [PP_OUTERMOST]
    if strategy.pp == 1 or strategy.ed == strategy.dp:
        orders.append(DP_OUTERMOST)
    if any(layout.has(order) for order in orders):
        return ""
    experts = any(layout.has_attention(order) for order in orders)
    texts = [axis_text(order.experts if experts else order.attention) for order in orders]
    if len(texts) > 1:
        texts[1] += " (--use-tp-pp-dp-mapping)"
    whose = "experts" if experts else "attention"
    return f"numbers ranks of {whose} by {' or '.join(texts)}, and theirs lie otherwise"


def _stages(model: Transformer, strategy: Strategy) -> Iterator[str]:
    """How layers go to chunks: evenly where they do, else chunk by chunk."""
    layers = chunk_layers(model.layers, strategy, model.mtp)
    ends = counts_ends(layers)
    if text := pipeline_layout(model, strategy):
        yield f"--pipeline-model-parallel-layout {shlex.quote(text)}"
        return
    if ends:
        yield "--account-for-embedding-in-pipeline-split"
        yield "--account-for-loss-in-pipeline-split"
    if strategy.vpp > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {strategy.vpp}"


def pipeline_layout(model: Transformer, strategy: Strategy) -> str:
    """The layout of layers over chunks, empty where these are alike, ends counted or not."""
    layers = chunk_layers(model.layers, strategy, model.mtp)
    alike = len(set(layers)) == 1 or counts_ends(layers)
    return "" if alike and not strategy.mtp_chunk else _layout(layers, model.mtp, strategy)


def _layout(layers: tuple[int, ...], ahead: int, strategy: Strategy) -> str:
    """The chunks in the order of the model: E embedding, t a layer, m one of MTP, L the loss."""
    chunks = [f"t*{count}" if count > 1 else "t" * count for count in layers]
    chunks[0] = "E" + chunks[0]
    chunks[strategy.mtp_chunk - 1] += "m" * ahead
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


def _arithmetic(model: Transformer, strategy: Strategy) -> Iterator[str]:
    """Values narrower than queries, as of latent attention, are fused on more devices.

    Megatron drops out a tenth unless it is told not to.
    """
    yield f"--{'bf16' if strategy.low_precision else strategy.dtype}"
    yield from _LOW.get(strategy.dtype, ())
    if strategy.low_precision and strategy.fp8_params:
        yield f"--fp{4 if strategy.dtype == 'nvfp4' else 8}-param-gather"
        if strategy.dtype == "mxfp8":  # else they have a buffer in 16 bits of their own
            yield "--reuse-grad-buf-for-mxfp8-param-ag"
    if not strategy.dropout:
        yield "--attention-dropout 0.0"
        yield "--hidden-dropout 0.0"
    fused = "fused" if model.mla else "flash"
    yield f"--attention-backend {fused if strategy.flash else 'unfused'}"


def again_modules(strategy: Strategy) -> tuple[str, ...]:
    """Modules that are computed again one by one."""
    return ("core_attn",) if strategy.recompute is Recompute.SELECTIVE else strategy.modules


def _recompute(strategy: Strategy) -> Iterator[str]:
    if strategy.recompute is Recompute.FULL:
        yield "--recompute-granularity full"
        yield f"--recompute-method {'block' if strategy.recompute_layers else 'uniform'}"
        yield f"--recompute-num-layers {strategy.recompute_layers or 1}"
    elif modules := again_modules(strategy):
        yield "--recompute-granularity selective"
        yield f"--recompute-modules {' '.join(modules)}"


CAPACITY = 1.5
"""Tokens of a rank's experts, as part of a balanced share, in NVIDIA's recipes of full graphs."""


def graph_modules(model: Transformer, strategy: Strategy) -> tuple[str, ...]:
    """What partial graphs capture of each layer; experts computed again leave their router out."""
    mamba = ("mamba",) if model.mamba else ()
    router = () if "moe" in strategy.modules else ("moe_router", "moe_preprocess")
    return (*mamba, "attn", *(router if model.experts else ("mlp",)))


def _graphs(model: Transformer, strategy: Strategy) -> Iterator[str]:
    if strategy.graphs == "none":
        return
    if strategy.graphs == "partial":
        yield "--cuda-graph-impl transformer_engine"
        yield f"--cuda-graph-modules {' '.join(graph_modules(model, strategy))}"
        return
    yield "--cuda-graph-impl full_iteration"
    yield "--no-check-for-nan-in-loss-and-grad"
    if model.experts:
        yield f"--moe-expert-rank-capacity-factor {CAPACITY}"
        yield "--moe-paged-stash"
        yield "--use-transformer-engine-op-fuser"


def _sharding(strategy: Strategy) -> Iterator[str]:
    if strategy.zero == 0:
        yield _OVERLAP[0]
        return
    yield "--use-distributed-optimizer"
    if strategy.zero > 1:
        yield "--use-megatron-fsdp"
        yield f"--data-parallel-sharding-strategy {FSDP_STRATEGIES[strategy.zero]}"
        yield "--no-gradient-accumulation-fusion"
        yield "--ckpt-format fsdp_dtensor"
    yield from _OVERLAP


GRADIENTS_IN_BF16 = "--grad-reduce-in-bf16"


def _assumed(strategy: Strategy, framework: Framework) -> Exported:
    """What the prediction assumes of gradients and of tp.

    Gradients in bf16: 2 bytes of a parameter less than those that Megatron keeps and reduces by
    default (arguments.py 1213-1217).
    """
    narrow = strategy.dtype != "fp16" and framework.reduced_bytes(strategy.dtype) == 2
    overlap = _overlap(strategy, framework)
    return Exported(f"{GRADIENTS_IN_BF16}\n" * narrow + overlap.text, overlap.notes)


MOMENTS = MappingProxyType({8: "bf16", 6: "fp8"})
"""Types of both moments of Adam by the bytes of a parameter; it is itself in fp32 (4)."""


def given_fields(strategy: Strategy) -> tuple[str, ...]:
    """Fields that few trainings have and whose value has an option here."""
    moments = strategy.optimizer_bytes in MOMENTS
    usual = ("recompute_layers", "dp_replicate", "shared_overlap", "mtp_chunk")
    return (*usual, *(("optimizer_bytes",) if moments else ()))


def _given(strategy: Strategy) -> Iterator[str]:
    """Copies of shards, dispatch beside shared experts, and moments of Adam in fewer bytes."""
    if strategy.dp_replicate > 1:
        yield f"--num-distributed-optimizer-instances {strategy.dp_replicate}"
    if strategy.shared_overlap:
        yield "--moe-shared-expert-overlap"
    if moments := MOMENTS.get(strategy.optimizer_bytes):
        yield "--use-precision-aware-optimizer"
        yield f"--exp-avg-dtype {moments}"
        yield f"--exp-avg-sq-dtype {moments}"


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


def _notes(model: Transformer, strategy: Strategy) -> Iterator[str]:
    norms = "norms (Llama's: --normalization RMSNorm)"
    yours = f"data, {norms}, biases, position embedding and learning rate are yours to add"
    router = ", and how the router scores and balances" if model.experts else ""
    yield f"for {strategy.devices} ranks; {yours}{router}"
    for value in connections(strategy).values():
        if value is None:
            yield f"Megatron-FSDP needs {CONNECTIONS} unset, or more than 1"
        elif value == "1":
            yield f"before Blackwell, tp or cp needs {CONNECTIONS}=1 in the environment"
        else:
            both = ", what hides of tp and cp with 1" if strategy.tp * strategy.cp > 1 else ""
            best = f"overlap=1 is best with {CONNECTIONS}={value} in the environment{both}"
            yield f"before Blackwell, {best}"
    if strategy.zero > 1 and strategy.pp > 1:
        yield "Megatron takes Megatron-FSDP with pipeline stages, its manual does not mention them"
    if is_hybrid(model):
        yield "for pretrain_hybrid.py, which builds the layers of the pattern"
    if model.experts and model.experts.clamped:
        yield "the clamp is yours: --activation-func-clamp-value and --glu-linear-offset"
    if strategy.graphs == "full" and model.experts:
        yield f"capacity factor {CAPACITY} is that of NVIDIA's recipes: tokens beyond it are lost"


def connections(strategy: Strategy) -> Mapping[str, str | None]:
    """What the environment must say of queues to the device before Blackwell; None: nothing.

    Megatron-FSDP is the same on every device.
    """
    if strategy.zero > 1:
        return {CONNECTIONS: None}
    if strategy.overlap:
        return {CONNECTIONS: "32"}
    return {CONNECTIONS: "1"} if strategy.tp > 1 or strategy.cp > 1 else {}


MEGATRON = Trainer(
    name="megatron",
    title="Megatron-LM",
    commit="d98e8a64ddf34856e74b24714e3bedb2f5a39553",
    frameworks=("megatron-core", "megatron", "nemo", "megatron-deepspeed", "megatron-bridge"),
    dtypes=DTYPES,
    missing=_MISSING,
    write=_write,
    overlap=_assumed,
    ranks=ranks_wrong,
    given=given_fields,
)
