"""Megatron-Bridge: lines of Python that make a recipe say what a strategy says.

A recipe is a function that returns a ``ConfigContainer``, which has the model; it is built on
Megatron Core, whose rules hold.  Lines set what a strategy says, and nothing else of it.

Source: NVIDIA-NeMo/Megatron-Bridge at the commit below, ``src/megatron/bridge/``:
``training/config.py``, ``training/mixed_precision.py`` (its recipes by name),
``training/comm_overlap.py``, ``utils/cuda_graph.py``, ``models/gpt_provider.py`` and
``models/hybrid/hybrid_provider.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.megatron import (
    CAPACITY,
    CONNECTIONS,
    FSDP_STRATEGIES,
    GRADIENTS_IN_BF16,
    MEGATRON,
    MOMENTS,
    again_modules,
    flex_backend,
    given_fields,
    graph_modules,
    pipeline_layout,
    ranks_wrong,
)
from p2smt.interop.trainers.megatron_model import hybrid_pattern, is_hybrid
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.titan_models import model_text
from p2smt.interop.trainers.torchtitan import counts_ends
from p2smt.interop.trainers.trainer import MissingFeature, Trainer
from p2smt.parallelism.folded import PP_OUTERMOST
from p2smt.training.efficiency import Framework
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import DTYPES, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer

_MISSING = (
    *MEGATRON.missing,
    MissingFeature(
        "interleaved pipelines of hybrids (vpp)",
        lambda model, _, some: some.vpp > 1 and is_hybrid(model),
    ),
    MissingFeature(
        "parameters in 16 bits beside low precision (its recipes keep them in that alone)",
        lambda _, __, some: some.low_precision and not some.fp8_params,
    ),
)
_PRECISION = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_current_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
"""Its recipes of precision; their products are in the formats of Megatron-LM's options."""
_TP_OVERLAP = "cfg.comm_overlap.tp_comm_overlap = True"
_Value = int | float | str | bool | None | list[str]


def _write(
    model: Transformer, batch: Batch, strategy: Strategy, layout: RankLayout | None = None
) -> Exported:
    dropped = 0.1 if strategy.dropout else 0.0  # Megatron's own part, or nothing
    lines = [
        "# lines for a recipe of Megatron-Bridge, written by p2smt: cfg is its ConfigContainer",
        *_imports(strategy),
        "",
        *_set("model", _model(model, batch, strategy)),
        f"cfg.model.attention_backend = AttnBackend.{_attention(model, strategy)}",
        *_set("model", dict.fromkeys(("attention_dropout", "hidden_dropout"), dropped)),
        *_set("model", _degrees(model, strategy)),
        *(_set("model", _experts(strategy, layout)) if model.experts else ()),
        *_set("model", _stages(model, strategy)),
        *_set("model", _recompute(strategy)),
        *_graphs(model, strategy),
        *_training(batch, strategy),
        *_sharding(strategy),
        *_given(strategy),
        *_ranks(strategy, layout),
        *_overlapped(strategy),
    ]
    return Exported("\n".join(lines) + "\n", tuple(_notes(model, strategy)))


def _imports(strategy: Strategy) -> Iterator[str]:
    if strategy.optimizer_bytes in MOMENTS:
        yield "import torch"
    yield "from megatron.bridge.training.comm_overlap import CommOverlapConfig"
    yield "from megatron.bridge.training.mixed_precision import get_mixed_precision_config"
    if strategy.graphs == "partial":
        yield "from megatron.bridge.utils.cuda_graph import set_cuda_graph_modules"
    elif strategy.graphs == "full":
        yield "from megatron.bridge.utils.cuda_graph import set_full_iteration_cuda_graph"
    else:
        yield "from megatron.bridge.utils.cuda_graph import clear_cuda_graph_modules"
    yield "from megatron.core.transformer.enums import AttnBackend"


def _set(section: str, values: dict[str, _Value]) -> Iterator[str]:
    for name, value in values.items():
        yield f"cfg.{section}.{name} = {_literal(value)}"


def _literal(value: _Value) -> str:
    return repr(value).replace("'", '"')


def _model(model: Transformer, batch: Batch, strategy: Strategy) -> dict[str, _Value]:
    """What of the model a strategy says: its tokens, layers of MTP, and a hybrid's stages."""
    found: dict[str, _Value] = {"seq_length": batch.tokens, "mtp_num_layers": model.mtp or None}
    if not model.window:  # a window that sees all tokens is none
        found["window_size"] = None
    if is_hybrid(model):
        found["hybrid_override_pattern"] = found["mtp_hybrid_override_pattern"] = None
        found["hybrid_layer_pattern"] = hybrid_pattern(model, strategy)
    return found


def _attention(model: Transformer, strategy: Strategy) -> str:
    fused = "fused" if model.mla else "flash"
    return fused if strategy.flash else "unfused"


def _degrees(model: Transformer, strategy: Strategy) -> dict[str, _Value]:
    found: dict[str, _Value] = {
        "tensor_model_parallel_size": strategy.tp,
        "sequence_parallel": strategy.sequence_parallel,
        "pipeline_model_parallel_size": strategy.pp,
        "context_parallel_size": strategy.cp,
    }
    if not is_hybrid(model):
        found["virtual_pipeline_model_parallel_size"] = strategy.vpp if strategy.vpp > 1 else None
    return found | ({"cp_comm_type": "p2p"} if strategy.cp > 1 else {})


def _experts(strategy: Strategy, layout: RankLayout | None) -> dict[str, _Value]:
    flex = strategy.dispatcher == "flex"
    return {
        "expert_model_parallel_size": strategy.ep,
        "expert_tensor_parallel_size": strategy.etp,
        "moe_token_dispatcher_type": strategy.dispatcher,
        "moe_flex_dispatcher_backend": flex_backend(strategy, layout) if flex else None,
        "moe_shared_expert_overlap": strategy.shared_overlap,
    }


def _stages(model: Transformer, strategy: Strategy) -> dict[str, _Value]:
    """A recipe's own stages are taken back; a hybrid's stand in its pattern."""
    if is_hybrid(model):
        return {}
    ends = counts_ends(chunk_layers(model.layers, strategy, model.mtp))
    return {
        "num_layers_in_first_pipeline_stage": None,
        "num_layers_in_last_pipeline_stage": None,
        "account_for_embedding_in_pipeline_split": ends,
        "account_for_loss_in_pipeline_split": ends,
        "pipeline_model_parallel_layout": pipeline_layout(model, strategy) or None,
    }


def _recompute(strategy: Strategy) -> dict[str, _Value]:
    full, modules = strategy.recompute is Recompute.FULL, list(again_modules(strategy))
    return {
        "recompute_granularity": "full" if full else "selective" if modules else None,
        "recompute_method": ("block" if strategy.recompute_layers else "uniform") if full else None,
        "recompute_num_layers": (strategy.recompute_layers or 1) if full else None,
        "recompute_modules": modules or None,
    }


def _graphs(model: Transformer, strategy: Strategy) -> Iterator[str]:
    if strategy.graphs == "none":
        yield 'cfg.model.cuda_graph_impl = "none"'
        yield "clear_cuda_graph_modules(cfg.model)"
        return
    yield "cfg.rng.te_rng_tracker = cfg.model.use_te_rng_tracker = True"
    if strategy.graphs == "partial":
        modules = _literal(list(graph_modules(model, strategy)))
        yield 'cfg.model.cuda_graph_impl = "transformer_engine"'
        yield f"set_cuda_graph_modules(cfg.model, {modules})"
        return
    yield "set_full_iteration_cuda_graph(cfg.model)"
    yield "cfg.rerun_state_machine.check_for_nan_in_loss = False"
    yield "cfg.ddp.check_for_nan_in_grad = False"
    if model.experts:
        stash: dict[str, _Value] = {
            "moe_paged_stash": True,
            "use_transformer_engine_op_fuser": True,
        }
        yield from _set("model", {"moe_expert_rank_capacity_factor": CAPACITY, **stash})


def _training(batch: Batch, strategy: Strategy) -> Iterator[str]:
    yield from _set("dataset", {"seq_length": batch.tokens})
    sizes: dict[str, _Value] = {"micro_batch_size": strategy.micro_batch}
    yield from _set("train", {**sizes, "global_batch_size": batch.sequences})
    recipe = _PRECISION[strategy.dtype]
    yield f'cfg.mixed_precision = get_mixed_precision_config("{recipe}")'


def _sharding(strategy: Strategy) -> Iterator[str]:
    sharded, fsdp = strategy.zero > 0, strategy.zero > 1
    yield from _set("ddp", {"use_distributed_optimizer": sharded})
    yield from _set("optimizer", {"use_distributed_optimizer": sharded})
    yield from _set("ddp", {"overlap_grad_reduce": True, "overlap_param_gather": sharded})
    yield from _set("optimizer", {"overlap_param_gather": sharded})
    yield from _set("dist", {"use_megatron_fsdp": fsdp})
    yield from _set("ddp", {"use_megatron_fsdp": fsdp})
    if fsdp:
        yield from _set("ddp", {"data_parallel_sharding_strategy": FSDP_STRATEGIES[strategy.zero]})
        yield from _set("model", {"gradient_accumulation_fusion": False})
        yield from _set("checkpoint", {"ckpt_format": "fsdp_dtensor"})


def _given(strategy: Strategy) -> Iterator[str]:
    """Copies of shards, and moments of Adam in fewer bytes."""
    yield from _set("ddp", {"num_distributed_optimizer_instances": strategy.dp_replicate})
    if moments := MOMENTS.get(strategy.optimizer_bytes):
        kind = {"bf16": "torch.bfloat16", "fp8": "torch.uint8"}[moments]
        yield from _set("optimizer", {"use_precision_aware_optimizer": True})
        yield f"cfg.optimizer.exp_avg_dtype = cfg.optimizer.exp_avg_sq_dtype = {kind}"


def _ranks(strategy: Strategy, layout: RankLayout | None) -> Iterator[str]:
    swapped = layout is not None and not layout.has(PP_OUTERMOST)
    yield from _set("dist", {"use_tp_pp_dp_mapping": swapped and strategy.zero < 2})


def _overlapped(strategy: Strategy) -> Iterator[str]:
    yield "cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)"
    both: dict[str, _Value] = dict.fromkeys(
        ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute"), strategy.overlap
    )
    yield from _set("comm_overlap", both)


def _assumed(strategy: Strategy, framework: Framework) -> Exported:
    """What the prediction assumes, as of Megatron-LM's options; fp16 reduces as its recipe does."""
    found = MEGATRON.overlap(strategy, framework)
    note = tuple(one.replace("--tp-comm-overlap", "tp_comm_overlap") for one in found.notes)
    wide: dict[str, _Value] = {"grad_reduce_in_fp32": GRADIENTS_IN_BF16 not in found.text}
    lines = [] if strategy.dtype == "fp16" else [*_set("mixed_precision", wide), *_set("ddp", wide)]
    lines += [_TP_OVERLAP] * ("--tp-comm-overlap" in found.text)
    return Exported("".join(f"{line}\n" for line in lines), note)


def _notes(model: Transformer, strategy: Strategy) -> Iterator[str]:
    yield f"for {strategy.devices} ranks; the recipe is one of a model with {model_text(model)}"
    if strategy.dtype == "fp8":
        yield "its recipe of fp8 leaves the first layer in bf16 (first_last_layers_bf16)"
    if strategy.zero > 1:
        yield f"Megatron-FSDP needs {CONNECTIONS} unset, or more than 1"
    if strategy.graphs == "full" and model.experts:
        yield f"capacity factor {CAPACITY} is that of NVIDIA's recipes: tokens beyond it are lost"


def _ranks_wrong(strategy: Strategy, layout: RankLayout) -> str:
    if strategy.zero > 1 and not layout.has(PP_OUTERMOST) and not ranks_wrong(strategy, layout):
        return "has no other order of ranks than pp outermost with Megatron-FSDP"
    return ranks_wrong(strategy, layout)


MEGATRON_BRIDGE = Trainer(
    name="megatron-bridge",
    format="megatron-bridge",
    title="Megatron-Bridge",
    commit="067f987df03b8355b03192d88d70f1709fedf51a",
    frameworks=("megatron-bridge", "megatron-core", "nemo"),
    dtypes=DTYPES,
    missing=_MISSING,
    write=_write,
    overlap=_assumed,
    ranks=_ranks_wrong,
    given=given_fields,
)
