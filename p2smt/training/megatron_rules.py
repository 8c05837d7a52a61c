"""Rules of Megatron-LM on fields that are given, not searched, and where all its rules are from.

Lines are those of files in the folder ``megatron`` of NVIDIA/Megatron-LM at d98e8a64.  What is
priced under an assumption of ours has a rule of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import OPTIMIZER_BYTES, Recompute, Strategy, recompute_text
from p2smt.training.transformer import Attention, Mlp, Transformer

BrokenRule = tuple[str, str, str, str]
"""A rule's name, what was given, the rule in words, and a remedy."""
Against = Callable[[Transformer, Strategy], str]
"""What was given against a rule, as users write it; empty: the rule holds."""
OURS = "the price assumes it"

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "devices": "training/arguments.py 432",
        "heads": "core/transformer/transformer_config.py 1446-1450",
        "kv_heads": "core/transformer/transformer_config.py 1461-1468",
        "ffn": "core/tensor_parallel/layers.py 1038",
        "mamba": "core/ssm/mamba_mixer.py 262, 270",
        "sequence": "training/arguments.py 1335-1338",
        "sequence_parallel": "core/tensor_parallel/mappings.py 72-74",
        "sequence_parallel_tp": "core/model_parallel_config.py 502",
        "zero": OURS,
        "batch": "core/num_microbatches_calculator.py 381",
        "interleaving": "training/arguments.py 1000-1008",
        "schedule": "core/pipeline_parallel/schedules.py 1172-1180",
        "layers": "training/arguments.py 968, 997",
        "split": "core/transformer/pipeline_parallel_layer_layout.py 92-110",
        "experts": "core/transformer/transformer_config.py 1595",
        "ep": "core/transformer/moe/moe_layer.py 186; training/arguments.py 1657",
        "etp": "core/tensor_parallel/layers.py 1038",
        "expert-ranks": "core/parallel_state.py 874-884",
        "expert-sp": "core/transformer/moe/moe_layer.py 636-640",
        "overlap": "core/transformer/transformer_config.py 3002-3046",
        "shared-width": "core/tensor_parallel/layers.py 1038",
        "graphs": "core/transformer/transformer_config.py 2855-2858",
        "graphs-experts": "core/transformer/transformer_config.py 1868-1881",
    }
)
"""Where the rules of :mod:`p2smt.training.validity` are from, by their names."""


@dataclass(frozen=True, slots=True)
class GivenRule:
    """A rule by name, in words, with what mends it and where it is from.

    ``against`` says what was given where a strategy breaks it.
    """

    name: str
    sentence: str
    remedy: str
    source: str
    against: Against


def given_violations(model: Transformer, strategy: Strategy) -> Iterator[BrokenRule]:
    """The rules that a strategy breaks, whose degrees and layers are in order."""
    for rule in GIVEN_RULES:
        if given := rule.against(model, strategy):
            numbers = {
                "most": max(chunk_layers(model.layers, strategy, model.mtp)),
                "ed": strategy.ed,
                "dp": strategy.dp,
                "name": model.name[:40],
            }
            yield rule.name, given, rule.sentence.format(**numbers), rule.remedy


# What is computed again.


def _layers_of_a_chunk(model: Transformer, strategy: Strategy) -> str:
    most = max(chunk_layers(model.layers, strategy, model.mtp))
    return _again(strategy) if strategy.recompute_layers > most else ""


def _again(strategy: Strategy) -> str:
    return f"recompute={recompute_text(strategy)}"


def _modules_without_layers(model: Transformer, strategy: Strategy) -> str:
    has = modules_in(model)
    return ",".join(f"recompute={name}" for name in strategy.modules if name not in has)


def modules_in(model: Transformer) -> frozenset[str]:
    """The modules that layers of a model have, of those that may be computed again one by one."""
    kinds, experts = model.kinds(), model.experts
    attention = any(one.attention in (Attention.FULL, Attention.WINDOW) for one in kinds)
    there = {
        "layernorm": True,
        "core_attn": attention,
        "mla_up_proj": attention and model.mla is not None,
        "mlp": any(one.mlp is Mlp.DENSE for one in kinds),
        "moe": experts is not None,
        "moe_act": experts is not None,
        "shared_experts": experts is not None and experts.shared_width > 0,
    }
    return frozenset(name for name, has in there.items() if has)


# Copies of shards, the optimizer, and what waits on the host.


def _copies_of_dp(_: Transformer, strategy: Strategy) -> str:
    copies = strategy.dp_replicate
    return f"dp_replicate={copies},dp={strategy.dp}" if strategy.dp % copies else ""


def _copies_of_ed(model: Transformer, strategy: Strategy) -> str:
    copies = strategy.dp_replicate
    wrong = model.experts and strategy.ed % copies
    return f"dp_replicate={copies},ep={strategy.ep},etp={strategy.etp}" if wrong else ""


def _copies_of_shards(_: Transformer, strategy: Strategy) -> str:
    copies = strategy.dp_replicate
    alone = strategy.zero == 0 or strategy.dp * strategy.cp == copies
    return f"dp_replicate={copies},zero={strategy.zero}" if copies > 1 and alone else ""


def _plain_optimizer(_: Transformer, strategy: Strategy) -> str:
    fewer = strategy.optimizer_bytes < OPTIMIZER_BYTES and strategy.zero == 0
    return f"optimizer_bytes={strategy.optimizer_bytes},zero=0" if fewer else ""


def _offload(wrong: Callable[[Strategy], str]) -> Against:
    """What goes with activations on the host and must not."""

    def against(_: Transformer, strategy: Strategy) -> str:
        found = wrong(strategy) if strategy.offload else ""
        return f"offload={strategy.offload:g}{found and ',' + found}" if found else ""

    return against


def _stages(strategy: Strategy) -> str:
    return f"pp={strategy.pp}" if strategy.pp > 1 else ""


def _computed_again(strategy: Strategy) -> str:
    plain = strategy.recompute is Recompute.NONE and not strategy.modules
    return "" if plain else _again(strategy)


def _partial_graphs(strategy: Strategy) -> str:
    return "graphs=partial" if strategy.graphs == "partial" else ""


def _all_layers(_: Transformer, strategy: Strategy) -> str:
    return "offload=1" if strategy.offload == 1 else ""


# Mixtures of experts, low precision and multi-token prediction.


def _beside(wrong: Against) -> Against:
    """What goes with dispatch beside shared experts and must not."""

    def against(model: Transformer, strategy: Strategy) -> str:
        found = wrong(model, strategy) if strategy.shared_overlap else ""
        return f"shared_overlap=1,{found}" if found else ""

    return against


def _no_shared(model: Transformer, strategy: Strategy) -> str:
    shared = model.experts and model.experts.shared_width
    return "" if shared and strategy.ep > 1 else f"ep={strategy.ep}"


def _both_overlaps(_: Transformer, strategy: Strategy) -> str:
    return "overlap=1" if strategy.overlap else ""


def _shared_again(_: Transformer, strategy: Strategy) -> str:
    return _again(strategy) if "shared_experts" in strategy.modules else ""


def _imbalance(model: Transformer, strategy: Strategy) -> str:
    wrong = strategy.imbalance > 1 and not model.experts
    return f"imbalance={strategy.imbalance:g}" if wrong else ""


def _wide_attention(_: Transformer, strategy: Strategy) -> str:
    wrong = strategy.fp8_attention and not strategy.low_precision
    return f"fp8_attention=1,dtype={strategy.dtype}" if wrong else ""


def _chunk_given(strategy: Strategy) -> str:
    return f"split with m in chunk {strategy.mtp_chunk}" if strategy.mtp_chunk else ""


def _no_mtp(model: Transformer, strategy: Strategy) -> str:
    return "" if model.mtp else _chunk_given(strategy)


def _early_mtp(_: Transformer, strategy: Strategy) -> str:
    later = any(strategy.split[strategy.mtp_chunk :])
    return _chunk_given(strategy) if later else ""


def _inner_mtp(_: Transformer, strategy: Strategy) -> str:
    inner = strategy.mtp_chunk <= strategy.pp * (strategy.vpp - 1)
    return _chunk_given(strategy) if inner else ""


_CONFIG = "core/transformer/transformer_config.py"
_LAYOUT = "core/transformer/pipeline_parallel_layer_layout.py"
GIVEN_RULES: tuple[GivenRule, ...] = (
    GivenRule(
        "recompute-layers",
        "counts layers of a chunk, which has {most} at most",
        "take recompute=full for all",
        f"{_CONFIG} 1919-1925",
        _layers_of_a_chunk,
    ),
    GivenRule(
        "modules",
        "{name} has no such layers to compute again",
        "leave it out",
        f"{_CONFIG} 1964-1973",
        _modules_without_layers,
    ),
    GivenRule(
        "dp_replicate",
        "must divide dp = {dp}",
        "take a divisor of it",
        "core/parallel_state.py 922-926",
        _copies_of_dp,
    ),
    GivenRule(
        "dp_replicate-experts",
        "must divide the data parallelism of experts too, dp cp tp / (ep etp) = {ed}",
        "take a smaller ep, or dp_replicate=1",
        "core/parallel_state.py 1447-1449",
        _copies_of_ed,
    ),
    GivenRule(
        "dp_replicate-zero",
        "copies what ZeRO shards, so zero must be 1 to 3 and shards lie on 2 ranks or more",
        "add zero=1, or take dp_replicate=1",
        OURS,
        _copies_of_shards,
    ),
    GivenRule(
        "optimizer_bytes",
        "fewer than 12 bytes are of the distributed optimizer (ZeRO) alone",
        "add zero=1",
        "core/optimizer/__init__.py 1057",
        _plain_optimizer,
    ),
    GivenRule(
        "offload-pp",
        "activations wait on the host with pp=1 alone",
        "take pp=1, or offload=0",
        f"{_CONFIG} 1891-1894",
        _offload(_stages),
    ),
    GivenRule(
        "offload-recompute",
        "activations that wait on the host are not computed again",
        "take recompute=none, or offload=0",
        f"{_CONFIG} 1896-1899",
        _offload(_computed_again),
    ),
    GivenRule(
        "offload-graphs",
        "goes with no graphs, or with full ones",
        "take graphs=none",
        f"{_CONFIG} 2800-2801",
        _offload(_partial_graphs),
    ),
    GivenRule(
        "offload-layers",
        "a layer at least must stay on the device",
        "take a smaller part, such as 0.9",
        f"{_CONFIG} 1884-1889",
        _all_layers,
    ),
    GivenRule(
        "shared-overlap",
        "needs shared experts, and ep of 2 or more",
        "take shared_overlap=0",
        f"{_CONFIG} 1813-1826",
        _beside(_no_shared),
    ),
    GivenRule(
        "shared-overlap-both",
        "tokens move beside shared experts or beside another micro-batch, not both",
        "take overlap=0, or shared_overlap=0",
        f"{_CONFIG} 3039-3041",
        _beside(_both_overlaps),
    ),
    GivenRule(
        "shared-overlap-recompute",
        "shared experts that run beside dispatch are not computed again one by one",
        "leave shared_experts out",
        f"{_CONFIG} 1991-1998",
        _beside(_shared_again),
    ),
    GivenRule(
        "imbalance",
        "is of tokens on their way to experts, and {name} has none",
        "leave it out",
        OURS,
        _imbalance,
    ),
    GivenRule(
        "fp8-attention",
        "needs products in 8 bits or fewer",
        "take dtype=fp8, mxfp8 or nvfp4",
        "core/extensions/transformer_engine.py 3350",
        _wide_attention,
    ),
    GivenRule(
        "mtp",
        "{name} has no layers of multi-token prediction",
        "leave m out",
        f"{_LAYOUT} 111-114",
        _no_mtp,
    ),
    GivenRule(
        "mtp-after",
        "layers of multi-token prediction follow all others",
        "move m to the last chunk that has layers, or further",
        f"{_LAYOUT} 115-120",
        _early_mtp,
    ),
    GivenRule(
        "mtp-last",
        "they lie in the last chunk of their stage",
        "move m to one of the last pp chunks",
        f"{_LAYOUT} 121-126",
        _inner_mtp,
    ),
)
"""Every rule; the first that is broken is named first."""
