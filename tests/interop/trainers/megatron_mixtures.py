"""Megatron-LM's rules on kinds of layers, experts and graphs as in its sources, written anew.

Of the commit of :mod:`tests.interop.trainers.megatron_rules`, whose names of files hold; ``hy`` is
``megatron/core/models/hybrid/hybrid_layer_allocation.py``, ``ml``
``megatron/core/transformer/moe/moe_layer.py``, ``td`` ``token_dispatcher.py`` beside it, ``ps``
``megatron/core/parallel_state.py``, ``au`` ``megatron/training/argument_utils.py``, ``mm``
``megatron/core/ssm/mamba_mixer.py``, ``gl`` ``megatron/core/models/gpt/gpt_layer_specs.py``, ``cp``
``context_parallel.py`` beside ``te``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from tests.interop.trainers.started import Mixture, require

WORDS = "words"
OPTIONS: Mapping[str, tuple[object, object]] = {
    "multi-latent-attention": ("flag", False),  # tc 286
    "q-lora-rank": (int, None),  # 3548
    "kv-lora-rank": (int, 32),  # 3550
    "qk-head-dim": (int, 128),  # 3552
    "qk-pos-emb-head-dim": (int, 64),  # 3554
    "v-head-dim": (int, 128),  # 3556
    "position-embedding-type": (
        ("learned_absolute", "rope", "yarn", "mrope", "relative", "none"),
        "learned_absolute",
    ),  # 2397
    "window-size": (str, None),  # 2384
    "window-attn-skip-freq": (str, None),  # 2387
    "hybrid-layer-pattern": (str, None),  # training/models/hybrid.py 61
    "mamba-num-heads": (int, None),  # tc: mamba_num_heads
    "mamba-head-dim": (int, 64),
    "mamba-num-groups": (int, 8),
    "mamba-state-dim": (int, 128),
    "num-experts": (int, None),  # 3518
    "moe-router-topk": (int, 2),  # tc: moe_router_topk
    "moe-router-pre-softmax": ("flag", False),
    "moe-ffn-hidden-size": (int, None),
    "moe-shared-expert-intermediate-size": (int, None),
    "moe-layer-freq": (str, "1"),  # 3520
    "moe-router-num-groups": (int, None),
    "moe-router-group-topk": (int, None),
    "moe-router-dtype": (("fp32", "fp64"), None),
    "moe-latent-size": (int, None),
    "moe-grouped-gemm": ("flag", False),
    "disable-bias-linear": ("flag", False),  # tc: add_bias_linear
    "quick-geglu": ("flag", False),  # 2452
    "mtp-num-layers": (int, None),  # tc 68
    "expert-model-parallel-size": (int, 1),  # mp 127
    "expert-tensor-parallel-size": (int, None),  # mp 130
    "moe-token-dispatcher-type": (("allgather", "alltoall", "flex"), "allgather"),
    "moe-flex-dispatcher-backend": (("deepep", "hybridep", "ncclep"), "deepep"),
    "overlap-moe-expert-parallel-comm": ("flag", False),  # mp 343
    "delay-wgrad-compute": ("flag", False),  # mp 348
    "attention-dropout": (float, 0.1),  # tc: attention_dropout
    "hidden-dropout": (float, 0.1),
    "cuda-graph-impl": (("none", "local", "transformer_engine", "full_iteration"), "none"),
    "cuda-graph-modules": (WORDS, ()),  # 2050
    "no-check-for-nan-in-loss-and-grad": ("flag", False),  # 2872
    "moe-expert-rank-capacity-factor": (float, None),
    "moe-paged-stash": ("flag", False),
    "use-transformer-engine-op-fuser": ("flag", False),
    "cp-comm-type": (WORDS, ("p2p",)),  # 3221
    "use-tp-pp-dp-mapping": ("flag", False),  # co common_config.py 105
}
GRAPHED = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")  # 2053
MODULES = (
    *("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"),
)  # tc 1945-1957, those that strategies have


class Arguments(Protocol):
    """Options by name, numbers as numbers."""

    def number(self, name: str) -> int: ...
    def __getitem__(self, name: str) -> object: ...


@dataclass(frozen=True, slots=True)
class Setting:
    """What the rules read besides options."""

    ranks: int
    degrees: tuple[int, int, int, int]  # pp, dp, cp, tp
    chunks: tuple[int, ...]
    sequence_parallel: bool
    zero: int
    recompute: object  # Recompute.FULL.value, or modules


def mixture(args: Arguments, setting: Setting) -> Mixture:
    """What goes beyond equal dense layers."""
    _check_attention(args, setting)
    layers = _layers(args, setting)
    everything = "".join(layers)
    graphs = _graphs(args, setting, everything)
    experts = _experts(args, setting, everything)
    return Mixture(
        layers=layers,
        experts=experts,
        latent=_latent(args),
        mamba=_mamba(args, setting, everything),
        window=_window(args) if "w" in everything else 0,
        ahead=ahead(args),
        degrees=_degrees(args, setting) if experts else (1, 1, 1),
        dispatcher=str(args["moe-token-dispatcher-type"]) if experts else "alltoall",
        overlap=_overlap(args, setting) if experts else False,
        graphs=graphs,
    )


def _check_attention(args: Arguments, setting: Setting) -> None:
    cp = setting.degrees[2]
    require(args["cp-comm-type"] == ("p2p",), "no strategy: cp by other means than rings")
    latent = args["multi-latent-attention"]
    require(not (latent and args["group-query-attention"]), "1973-1974")
    require(cp == 1 or args["window-size"] is None, "cp 5054-5060: no windows by p2p")
    if ahead(args):
        require(args["position-embedding-type"] in ("rope", "none"), "882-886")
    if latent:
        require(args["position-embedding-type"] == "rope", "no strategy: heads without rotation")
        require(args["attention-backend"] != "flash", "te 944-983: not on every device")


def ahead(args: Arguments) -> int:
    """Layers of multi-token prediction; a hybrid's stand in its pattern (864-879)."""
    pattern = args["hybrid-layer-pattern"]
    if pattern is not None:
        return str(pattern).count("/")
    return 0 if args["mtp-num-layers"] is None else args.number("mtp-num-layers")


def segments(pattern: str) -> tuple[str, ...]:
    """hy 149-275: the chunks of a hybrid, whose later tokens are alike."""
    main, *later = pattern.split("/")
    require(len(set(later)) <= 1, "hy 259-265")
    require(set(main) <= set("MGD*+-E|"), "hy 286-292")
    require(all(one and set(one) <= set("MGD*+-E") for one in later), "hy 267, 286-292")
    require(not ("*" in main and "+" in main), "hy 295")
    return tuple(main.split("|"))


def _layers(args: Arguments, setting: Setting) -> tuple[str, ...]:
    """Letters of the layers of each chunk: attention (* + w M), then MLP (- E)."""
    pattern = args["hybrid-layer-pattern"]
    if pattern is not None:
        require(args["window-size"] is None, "no strategy: windows by numbers of single layers")
        return segments(str(pattern))
    count = args.number("num-layers")
    full = "+" if args["multi-latent-attention"] else "*"
    attention = ["w" if seen else full for seen in _windowed(args, count)]
    mlps = ["E" if expert else "-" for expert in _moe_layers(args, count)]
    letters = [one + other for one, other in zip(attention, mlps, strict=True)]
    bounds = [sum(setting.chunks[:at]) for at in range(len(setting.chunks) + 1)]
    return tuple("".join(letters[start:end]) for start, end in pairwise(bounds))


def _windowed(args: Arguments, count: int) -> list[bool]:
    """megatron/core/transformer/utils.py 531-547: layers count from 1."""
    if args["window-size"] is None:
        return [False] * count
    frequency = args["window-attn-skip-freq"]
    if frequency is None:
        return [True] * count
    found = evaluated(str(frequency))
    if isinstance(found, int):
        return [number % found != 0 for number in range(1, count + 1)]
    require(len(found) == count, "utils.py 542: a number for each layer")
    return [bool(one) for one in found]


def _window(args: Arguments) -> int:
    """377-387, te 1782: tokens before and after one's own."""
    numbers = str(args["window-size"]).strip("()").split(",")
    require(len(numbers) == 2 and numbers[1] == "0", "no strategy: a window that looks ahead")
    return int(numbers[0]) + 1


def _moe_layers(args: Arguments, count: int) -> list[bool]:
    """gl 625-645."""
    if args["num-experts"] is None:
        return [False] * count
    found = evaluated(str(args["moe-layer-freq"]))
    if isinstance(found, int):
        return [at % found == 0 for at in range(count)]
    require(len(found) == count and set(found) <= {0, 1}, "gl 631, 647-653")
    return [bool(one) for one in found]


def evaluated(pattern: str) -> int | list[int]:
    """245-253, 343-350: a number, or a list as Python computes it."""
    require(not set(pattern) - set(",0123456789[]()+*"), "249-251")
    found = _value(ast.parse(pattern, mode="eval").body)
    require(("[" in pattern) == isinstance(found, list), "345-350")
    return found


def _value(node: ast.expr) -> int | list[int]:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.List(elts=items):
            return [one for item in items if isinstance(one := _value(item), int)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)  # type: ignore[operator]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)  # type: ignore[operator]
        case _:
            raise AssertionError(ast.dump(node))


def _latent(args: Arguments) -> tuple[int, ...]:
    if not args["multi-latent-attention"]:
        return ()
    names = ("kv-lora-rank", "qk-head-dim", "qk-pos-emb-head-dim", "v-head-dim")
    query = 0 if args["q-lora-rank"] is None else args.number("q-lora-rank")
    return (query, *map(args.number, names))


def _mamba(args: Arguments, setting: Setting, layers: str) -> tuple[int, ...]:
    if "M" not in layers:
        return ()
    _, _, cp, tp = setting.degrees
    names = ("num-heads", "head-dim", "num-groups", "state-dim")
    heads, size, groups, state = (args.number(f"mamba-{name}") for name in names)
    require(heads % tp == 0, "mm 262")
    require(groups % tp == 0, "mm 270")
    require(heads % groups == 0, "mm 274")
    require(cp == 1, "no strategy: ssm/mamba_context_parallel.py exchanges heads")
    return (heads, size, groups, state)


def _experts(args: Arguments, setting: Setting, layers: str) -> tuple[int, ...]:
    if args["num-experts"] is None:
        require(args["expert-model-parallel-size"] == 1, "1655-1656")
        require(args["moe-latent-size"] is None, "1980-1982")
        require(args["moe-ffn-hidden-size"] is None, "tc 1708-1725")
        require("E" not in layers, "hy: a layer of experts without experts")
        return ()
    tp = setting.degrees[3]
    active = args.number("moe-router-topk")
    require(active > 1 or bool(args["moe-router-pre-softmax"]), "tc 2662-2669")
    given = args["moe-shared-expert-intermediate-size"]
    shared = 0 if given is None else args.number("moe-shared-expert-intermediate-size")
    require(given is None or shared > 0, "tc 1812-1819")
    require(shared % tp == 0, "megatron/core/tensor_parallel/layers.py 1038, 1408")
    require(tp == 1 or setting.sequence_parallel, "ml 636")
    require(args["moe-router-dtype"] == "fp32", "no strategy: a router in 16 bits")
    require(bool(args["moe-grouped-gemm"]), "no strategy: experts one after the other")
    count, (groups, chosen) = args.number("num-experts"), _groups(args)
    width = args["moe-ffn-hidden-size"]
    numbers = (count, active, args.number("moe-ffn-hidden-size") if width else 0, shared)
    latent = 0 if args["moe-latent-size"] is None else args.number("moe-latent-size")
    require(args["moe-latent-size"] is None or latent > 0, "1981")
    return (*numbers, latent, groups, chosen, int(bool(args["quick-geglu"])))


def _groups(args: Arguments) -> tuple[int, int]:
    """tc 2671-2691."""
    if args["moe-router-group-topk"] is None:
        return (0, 0)
    require(args["moe-router-num-groups"] is not None, "tc 2677-2680")
    groups, chosen = (args.number(f"moe-router-{one}") for one in ("num-groups", "group-topk"))
    require(args.number("num-experts") % groups == 0 and chosen <= groups, "tc 2682-2689")
    return (groups, chosen)


def _degrees(args: Arguments, setting: Setting) -> tuple[int, int, int]:
    """ed, ep, etp: ps 879-886, arguments 587."""
    pp, dp, _, tp = setting.degrees
    ep, given = args.number("expert-model-parallel-size"), args["expert-tensor-parallel-size"]
    etp = tp if given is None else args.number("expert-tensor-parallel-size")
    require(setting.ranks % (ep * etp * pp) == 0, "ps 883-886")
    ed = setting.ranks // (ep * etp * pp)
    if args["use-tp-pp-dp-mapping"]:
        require(pp == 1 or ed == dp, "ps 901-905")
    require(args.number("num-experts") % ep == 0, "1657, ml 186")
    width = args["moe-ffn-hidden-size"] or args["ffn-hidden-size"] or 0  # else computed
    require(int(str(width)) % etp == 0, "megatron/core/extensions/transformer_engine.py 1265-1267")
    require(etp == 1 or bool(args["disable-bias-linear"]), "tc 2612-2615")
    _check_dispatcher(args, ep * etp)
    return (ed, ep, etp)


def _check_dispatcher(args: Arguments, ranks: int) -> None:
    kind, backend = args["moe-token-dispatcher-type"], args["moe-flex-dispatcher-backend"]
    require(kind != "allgather", "no strategy: every token goes to every rank")
    if kind == "flex":
        require(backend in ("deepep", "hybridep"), "no strategy: another backend")
        require(ranks > 1, "td 1836, and HybridEP has nobody to send to")
    if args["moe-expert-rank-capacity-factor"] is not None:
        require(kind == "flex" and backend == "hybridep", "tc 1868-1873")
        require(bool(args["use-transformer-engine-op-fuser"]), "tc 1875-1882")
    stash = args["moe-paged-stash"]
    require(not stash or args["moe-expert-rank-capacity-factor"] is not None, "tc 2212-2217")


def _overlap(args: Arguments, setting: Setting) -> bool:
    """tc 3002-3082, 1903-1927."""
    on, delayed = (
        bool(args["overlap-moe-expert-parallel-comm"]),
        bool(args["delay-wgrad-compute"]),
    )
    require(on or not delayed, "tc 3074-3077")
    if not on:
        return False
    pp = setting.degrees[0]
    require(pp == 1 or len(setting.chunks) > pp, "tc 3007-3011")
    require(args["expert-model-parallel-size"] != 1, "tc 3013-3015")
    require(args["recompute-granularity"] != "full", "tc 3021-3029")
    again = setting.recompute if isinstance(setting.recompute, tuple) else ()
    require("moe" not in again, "tc 3030-3032")
    require(ahead(args) <= 1, "tc 3042-3046")
    require(delayed, "no strategy: gradients of weights beside no dispatch")
    if {"attn", "moe_router"} & set(_words(args)) and args["overlap-grad-reduce"]:
        require(not args["no-gradient-accumulation-fusion"], "1919-1923")
        require("attn" not in _words(args) or bool(args["disable-bias-linear"]), "1924-1927")
    return True


def _words(args: Arguments) -> tuple[str, ...]:
    words = args["cuda-graph-modules"]
    return words if isinstance(words, tuple) else ()


def _graphs(args: Arguments, setting: Setting, layers: str) -> tuple[str, ...]:
    """What is captured: modules, or everything; tc 2794-2901."""
    kind, words = args["cuda-graph-impl"], _words(args)
    require(set(words) <= set(GRAPHED), "256-260")
    if kind == "none":
        require(not words, "no strategy: modules of no graph")
        return ()
    again = setting.recompute if isinstance(setting.recompute, tuple) else ()
    whole = kind == "full_iteration" or not words
    dropout = [float(str(args[f"{one}-dropout"])) for one in ("attention", "hidden")]
    if dropout[0]:
        require(not (whole or "attn" in words) or "core_attn" not in again, "tc 2876-2885")
    if dropout[1]:
        require(not (whole or "mlp" in words) or "mlp" not in again, "tc 2886-2900")
        require(not (whole or "moe" in words) or "moe" not in again, "tc 2886-2900")
    require(dropout == [0, 0], "no strategy: dropout, which a graph must draw anew")
    if kind == "full_iteration":
        require(not words, "tc 2793-2796, 1969-1971")
        require(bool(args["no-check-for-nan-in-loss-and-grad"]), "1235-1237")
        if args["num-experts"] is not None:
            stash = args["moe-paged-stash"]
            require(bool(stash), "td: counts of tokens are read on the host without a capacity")
        return ("full",)
    require(kind == "transformer_engine", "no strategy: graphs by other means")
    require(setting.recompute != "full", "tc 2855-2858")
    require("moe" not in again or "moe_router" not in words, "tc 2862-2869")
    require("moe_preprocess" not in words or "moe_router" in words, "tc 2821-2824")
    require("moe" not in words, "tc 2840-2843: no padding to a capacity")
    experts = args["num-experts"] is not None
    require(experts or not {"moe", "moe_router"} & set(words), "tc 2825-2829")
    require(not experts or "mlp" not in words or "-" in layers, "tc 2830-2837")
    return tuple(sorted(words))
