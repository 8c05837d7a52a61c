"""Megatron-Bridge's rules on its configuration as they stand in its sources, written anew.

NVIDIA-NeMo/Megatron-Bridge, commit 067f987df03b8355b03192d88d70f1709fedf51a; files below
``src/megatron/bridge/``.  A number alone is a line of ``training/config.py``; ``co`` is
``training/comm_overlap.py``, ``mp`` ``training/mixed_precision.py``, ``gp``
``models/gpt_provider.py``, ``hp`` ``models/hybrid/hybrid_provider.py``, ``cg``
``utils/cuda_graph.py``.  What it builds is Megatron Core, whose rules are those of
:mod:`tests.interop.trainers.megatron_rules`: what the lines set is brought there as options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.interop.trainers import megatron_rules
from tests.interop.trainers.started import Started, require

# section: what a recipe has there before the lines (recipes/common.py 61-145; fields of Megatron
# Core's classes, whose names are those of its options)
FIELDS: Mapping[str, Mapping[str, object]] = {
    "model": {
        "seq_length": 0,
        "mtp_num_layers": 9,
        "hybrid_layer_pattern": "own",
        "window_size": "own",
        "hybrid_override_pattern": None,
        "mtp_hybrid_override_pattern": "own",
        "attention_backend": None,
        "tensor_model_parallel_size": 1,
        "sequence_parallel": False,
        "pipeline_model_parallel_size": 1,
        "context_parallel_size": 1,
        "cp_comm_type": None,
        "virtual_pipeline_model_parallel_size": 9,
        "pipeline_model_parallel_layout": "own",
        "expert_model_parallel_size": 1,
        "expert_tensor_parallel_size": 9,
        "moe_token_dispatcher_type": "own",
        "moe_flex_dispatcher_backend": "own",
        "moe_shared_expert_overlap": True,
        "num_layers_in_first_pipeline_stage": 9,
        "num_layers_in_last_pipeline_stage": 9,
        "gradient_accumulation_fusion": True,
        "account_for_embedding_in_pipeline_split": True,
        "account_for_loss_in_pipeline_split": True,
        "recompute_granularity": "own",
        "recompute_method": "own",
        "recompute_num_layers": 9,
        "recompute_modules": ["own"],
        "cuda_graph_impl": "own",
        "cuda_graph_modules": ["own"],
        "use_te_rng_tracker": False,
        "attention_dropout": 0.1,
        "hidden_dropout": 0.1,
        "moe_paged_stash": False,
        "moe_expert_rank_capacity_factor": None,
        "use_transformer_engine_op_fuser": False,
    },
    "rng": {"te_rng_tracker": False},
    "rerun_state_machine": {"check_for_nan_in_loss": True},
    "dataset": {"seq_length": 0},
    "train": {"micro_batch_size": 0, "global_batch_size": 0},
    "ddp": {
        "use_distributed_optimizer": True,
        "overlap_grad_reduce": True,
        "overlap_param_gather": True,
        "use_megatron_fsdp": False,
        "data_parallel_sharding_strategy": "optim_grads_params",
        "check_for_nan_in_grad": True,
        "num_distributed_optimizer_instances": 9,
        "grad_reduce_in_fp32": True,
    },
    "mixed_precision": {  # mp 33-66, of a recipe by its name
        "recipe": "",
        "grad_reduce_in_fp32": True,
    },
    "optimizer": {
        "use_distributed_optimizer": True,
        "overlap_param_gather": True,
        "use_precision_aware_optimizer": False,
        "exp_avg_dtype": None,
        "exp_avg_sq_dtype": None,
    },
    "dist": {"use_megatron_fsdp": False, "use_tp_pp_dp_mapping": False},
    "checkpoint": {"ckpt_format": "torch_dist"},
    "comm_overlap": {
        "tp_comm_overlap": None,
        "overlap_moe_expert_parallel_comm": None,
        "delay_wgrad_compute": None,
    },
}
PRECISION: Mapping[str, Sequence[str]] = {  # mp 184-298, 404-418
    "bf16_mixed": ("--bf16",),
    "fp16_mixed": ("--fp16",),
    "bf16_with_fp8_current_scaling_mixed": (
        "--bf16",
        "--fp8-format hybrid",
        "--fp8-recipe tensorwise",
        "--fp8-param-gather",
    ),
    "bf16_with_mxfp8_mixed": (
        "--bf16",
        "--fp8-format e4m3",
        "--fp8-recipe mxfp8",
        "--fp8-param-gather",
        "--reuse-grad-buf-for-mxfp8-param-ag",
    ),
    "bf16_with_nvfp4_mixed": ("--bf16", "--fp4-format e2m1", "--fp4-param-gather"),
}


class Section:
    """A part of the configuration, which has these fields alone."""

    def __init__(self, name: str) -> None:
        self.__dict__.update(FIELDS[name])

    def __setattr__(self, field: str, value: object) -> None:
        if field not in self.__dict__:
            raise AttributeError(field)
        self.__dict__[field] = value


def _comm_overlap(tp_comm_overlap: bool) -> Section:
    found = Section("comm_overlap")
    found.tp_comm_overlap = tp_comm_overlap
    return found


def _precision(recipe: str) -> Section:
    """mp 440-456."""
    require(recipe in PRECISION, "mp 453: unknown")
    found = Section("mixed_precision")
    found.recipe = recipe
    return found


def _set_modules(model: Any, modules: Sequence[str]) -> None:
    """cg 91-101."""
    model.cuda_graph_modules = list(modules)


def _set_full(model: Any) -> None:
    """cg 110-120."""
    model.cuda_graph_impl, model.cuda_graph_modules = "full_iteration", []


_MODULES: Mapping[str, Mapping[str, object]] = {
    "megatron.bridge.training.comm_overlap": {"CommOverlapConfig": _comm_overlap},
    "megatron.bridge.training.mixed_precision": {"get_mixed_precision_config": _precision},
    "megatron.bridge.utils.cuda_graph": {
        "set_cuda_graph_modules": _set_modules,
        "set_full_iteration_cuda_graph": _set_full,
        "clear_cuda_graph_modules": lambda model: _set_modules(model, ()),
    },
    "torch": {"bfloat16": "bf16", "uint8": "fp8"},
    "megatron.core.transformer.enums": {
        "AttnBackend": SimpleNamespace(flash="flash", fused="fused", unfused="unfused")
    },
}


def start(lines: str, model: Sequence[str], ranks: int, connections: str | None) -> Started:
    """What Megatron-Bridge would run on so many ranks.

    model: options of Megatron-LM that a recipe's own model is; connections:
    CUDA_DEVICE_MAX_CONNECTIONS in the environment.

    Raises:
        Refused: it would not.
    """
    cfg = SimpleNamespace(**{name: Section(name) for name in FIELDS})
    with pytest.MonkeyPatch.context() as patch:
        for name, values in _MODULES.items():
            module = ModuleType(name)
            module.__dict__.update(values)
            patch.setitem(sys.modules, name, module)
        exec(lines, {"cfg": cfg})
    options = [*_own(cfg.model, model), *_options(cfg), *_numbers(cfg.mixed_precision)]
    require(cfg.ddp.grad_reduce_in_fp32 == cfg.mixed_precision.grad_reduce_in_fp32, "mp 111-140")
    return megatron_rules.start("\n".join(options), ranks, connections)


def _numbers(precision: Any) -> Iterator[str]:
    """What data types and gradients are; mp 111-140 gives them to the model and the optimizer."""
    yield from PRECISION[precision.recipe]
    if "bf16" in precision.recipe and not precision.grad_reduce_in_fp32:
        yield "--grad-reduce-in-bf16"


_PATTERN = "--hybrid-layer-pattern"


def _own(given: Any, model: Sequence[str]) -> Iterator[str]:
    """The recipe's own model with the MTP and the pattern of the lines."""
    hybrid = any(line.startswith(_PATTERN) for line in model)
    for line in model:
        whole = given.window_size is None and line.startswith("--window-")
        if not (whole or line.startswith((_PATTERN, "--mtp-num-layers"))):
            yield line
    if hybrid:
        require(given.hybrid_override_pattern is None, "hp 184-187")
        require(given.mtp_hybrid_override_pattern is None, "hp 200-211: they would be doubled")
        chunks = given.hybrid_layer_pattern.split("/")[0].count("|") + 1
        require(chunks == given.pipeline_model_parallel_size, "hp 291-294: no chunks of a stage")
        yield f"{_PATTERN} '{given.hybrid_layer_pattern}'"
        ahead = given.hybrid_layer_pattern.count("/")
        require((given.mtp_num_layers or 0) == ahead, "hp 213-232: told apart from the pattern")
    elif given.mtp_num_layers:
        yield f"--mtp-num-layers {given.mtp_num_layers}"


_SAME = {
    "tensor_model_parallel_size": "tensor-model-parallel-size",
    "pipeline_model_parallel_size": "pipeline-model-parallel-size",
    "context_parallel_size": "context-parallel-size",
    "cp_comm_type": "cp-comm-type",
    "expert_model_parallel_size": "expert-model-parallel-size",
    "attention_backend": "attention-backend",
    "recompute_granularity": "recompute-granularity",
    "recompute_method": "recompute-method",
    "recompute_num_layers": "recompute-num-layers",
    "attention_dropout": "attention-dropout",
    "hidden_dropout": "hidden-dropout",
    "cuda_graph_impl": "cuda-graph-impl",
    "moe_expert_rank_capacity_factor": "moe-expert-rank-capacity-factor",
}
_SWITCHES = {
    "sequence_parallel": "sequence-parallel",
    "moe_paged_stash": "moe-paged-stash",
    "use_transformer_engine_op_fuser": "use-transformer-engine-op-fuser",
    "account_for_embedding_in_pipeline_split": "account-for-embedding-in-pipeline-split",
    "account_for_loss_in_pipeline_split": "account-for-loss-in-pipeline-split",
}


def _options(cfg: Any) -> Iterator[str]:
    """What the sections say, as options of Megatron-LM."""
    model = cfg.model
    hybrid = model.hybrid_layer_pattern != "own"
    for field, option in _SAME.items():
        value = getattr(model, field)
        if value is not None:
            yield f"--{option} {value}"
    for field, option in _SWITCHES.items():
        if getattr(model, field) and not (hybrid and field.startswith("account")):
            yield f"--{option}"
    for field, option in (
        ("recompute_modules", "recompute-modules"),
        ("cuda_graph_modules", "cuda-graph-modules"),
    ):
        if words := getattr(model, field):
            yield f"--{option} {' '.join(words)}"
    yield from [] if hybrid else _stages(model)
    yield from _experts(cfg)
    yield from _graphs(cfg)
    yield from _sharding(cfg)
    require(model.seq_length == cfg.dataset.seq_length, "1644-1648")
    yield f"--seq-length {model.seq_length}"
    yield f"--max-position-embeddings {model.seq_length}"
    yield f"--micro-batch-size {cfg.train.micro_batch_size}"
    yield f"--global-batch-size {cfg.train.global_batch_size}"
    if cfg.comm_overlap.tp_comm_overlap:  # co 442-451 switch it off elsewhere
        yield "--tp-comm-overlap"
    if cfg.dist.use_tp_pp_dp_mapping:
        yield "--use-tp-pp-dp-mapping"


def _stages(model: Any) -> Iterator[str]:
    ends = (model.num_layers_in_first_pipeline_stage, model.num_layers_in_last_pipeline_stage)
    require(ends == (None, None), "no strategy: stages of the recipe")
    virtual, layout = (
        model.virtual_pipeline_model_parallel_size,
        model.pipeline_model_parallel_layout,
    )
    if layout is not None:
        chunks = megatron_rules.unrolled(layout).count("|") + 1
        pp = model.pipeline_model_parallel_size
        # transformer_config.py 2279-2285
        require(virtual is None or virtual * pp == chunks, "tc: vpp conflicts with the layout")
        yield f"--pipeline-model-parallel-layout '{layout}'"
    elif virtual is not None:
        yield f"--num-virtual-stages-per-pipeline-rank {virtual}"


def _experts(cfg: Any) -> Iterator[str]:
    model, overlap = cfg.model, cfg.comm_overlap
    if model.expert_tensor_parallel_size != 9:
        if model.moe_shared_expert_overlap:
            yield "--moe-shared-expert-overlap"
        yield f"--expert-tensor-parallel-size {model.expert_tensor_parallel_size}"
        yield f"--moe-token-dispatcher-type {model.moe_token_dispatcher_type}"
        if model.moe_token_dispatcher_type == "flex":
            yield f"--moe-flex-dispatcher-backend {model.moe_flex_dispatcher_backend}"
    both = (overlap.overlap_moe_expert_parallel_comm, overlap.delay_wgrad_compute)
    require(None not in both, "no strategy: what the recipe overlaps")
    require(both[0] or not both[1], "co 532-535")
    if both[0]:
        yield "--overlap-moe-expert-parallel-comm"
    if both[1]:
        yield "--delay-wgrad-compute"


def _graphs(cfg: Any) -> Iterator[str]:
    kind = cfg.model.cuda_graph_impl
    if kind != "none":
        require(cfg.model.use_te_rng_tracker, "gp 234-238")
    if kind == "full_iteration":
        require(not cfg.rerun_state_machine.check_for_nan_in_loss, "1509-1513")
        require(not cfg.ddp.check_for_nan_in_grad, "Megatron-LM's arguments.py 1235-1237")
        yield "--no-check-for-nan-in-loss-and-grad"


def _sharding(cfg: Any) -> Iterator[str]:
    ddp, fsdp = cfg.ddp, cfg.dist.use_megatron_fsdp or cfg.ddp.use_megatron_fsdp
    if ddp.use_distributed_optimizer or cfg.optimizer.use_distributed_optimizer:  # 2114-2126
        yield "--use-distributed-optimizer"
    if ddp.overlap_grad_reduce:
        yield "--overlap-grad-reduce"
    if ddp.overlap_param_gather or cfg.optimizer.overlap_param_gather:  # 2128-2140
        yield "--overlap-param-gather"
    if fsdp:
        require(not cfg.dist.use_tp_pp_dp_mapping, "1124")
        yield "--use-megatron-fsdp"
        yield f"--data-parallel-sharding-strategy {ddp.data_parallel_sharding_strategy}"
    if not cfg.model.gradient_accumulation_fusion:
        yield "--no-gradient-accumulation-fusion"
    yield f"--ckpt-format {cfg.checkpoint.ckpt_format}"
    yield f"--num-distributed-optimizer-instances {ddp.num_distributed_optimizer_instances}"
    if cfg.optimizer.use_precision_aware_optimizer:
        yield "--use-precision-aware-optimizer"
    for name in ("exp_avg_dtype", "exp_avg_sq_dtype"):
        if kind := getattr(cfg.optimizer, name):
            yield f"--{name.replace('_', '-')} {kind}"
