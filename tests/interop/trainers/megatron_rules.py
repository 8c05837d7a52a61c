"""Megatron-LM's argument rules as they stand in its sources, written anew.

NVIDIA/Megatron-LM, commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.  A number alone is a line of
``megatron/training/arguments.py``; ``tc`` is ``megatron/core/transformer/transformer_config.py``,
``tb`` ``transformer_block.py`` beside it, ``pl`` ``pipeline_parallel_layer_layout.py``, ``mp``
``megatron/core/model_parallel_config.py``, ``co`` a file of ``megatron/training/config/``, ``sc``
``megatron/core/pipeline_parallel/schedules.py``.  ``te`` is NVIDIA/TransformerEngine, commit
d0067d0da6cb01811b8072a7d304f0e00344ce2b,
``transformer_engine/pytorch/attention/dot_product_attention/utils.py``.
GPUs before Blackwell are taken, which have a rule more.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from p2smt.training.strategy import Recompute
from tests.interop.trainers.megatron_mixtures import (
    MODULES,
    WORDS,
    Setting,
    ahead,
    evaluated,
    mixture,
    segments,
)
from tests.interop.trainers.megatron_mixtures import OPTIONS as MORE
from tests.interop.trainers.started import Refused, Started, require

# name: (what it takes, its default); "flag" takes nothing, a tuple its choices
OPTIONS: Mapping[str, tuple[object, object]] = {
    "num-layers": (int, None),  # tc 65
    "hidden-size": (int, None),  # tc 145
    "ffn-hidden-size": (int, None),  # tc 180
    "num-attention-heads": (int, None),  # tc 148
    "kv-channels": (int, None),  # tc 184
    "group-query-attention": ("flag", False),  # 2382
    "num-query-groups": (int, 1),  # tc 175
    "swiglu": ("flag", False),  # 2450
    "untie-embeddings-and-output-weights": ("flag", False),  # 2460
    "padded-vocab-size": (int, None),  # co training_config.py 682
    "seq-length": (int, None),  # 3305
    "max-position-embeddings": (int, None),  # 2394
    "micro-batch-size": (int, None),  # co training_config.py 11
    "global-batch-size": (int, None),  # co training_config.py 15
    "tensor-model-parallel-size": (int, 1),  # mp 55
    "pipeline-model-parallel-size": (int, 1),  # mp 83
    "context-parallel-size": (int, 1),  # mp 100
    "sequence-parallel": ("flag", False),  # mp 94
    "num-virtual-stages-per-pipeline-rank": (int, None),  # 3116
    "pipeline-model-parallel-layout": (str, None),  # 3103
    "account-for-embedding-in-pipeline-split": ("flag", False),  # tc 137
    "account-for-loss-in-pipeline-split": ("flag", False),  # tc 141
    "bf16": ("flag", False),  # mp 180
    "fp16": ("flag", False),  # mp 177
    "fp8-format": (("e4m3", "hybrid"), None),  # tc 592
    "fp8-recipe": (("delayed", "tensorwise", "mxfp8", "blockwise"), "delayed"),  # tc 595
    "fp4-format": (("e2m1",), None),  # tc: fp4
    "fp8-param-gather": ("flag", False),  # tc 602
    "fp4-param-gather": ("flag", False),  # tc 683
    "reuse-grad-buf-for-mxfp8-param-ag": ("flag", False),  # 3080
    "grad-reduce-in-bf16": ("flag", False),  # 3053
    "attention-backend": (("flash", "fused", "unfused", "local", "auto"), "auto"),  # tc 151
    "recompute-granularity": (("full", "selective"), None),  # tc 532
    "recompute-method": (("uniform", "block"), None),  # tc 543
    "recompute-num-layers": (int, None),  # tc 551
    "recompute-modules": (WORDS, ("core_attn",)),  # tc 560, 1941
    "use-distributed-optimizer": ("flag", False),  # 3156
    "use-megatron-fsdp": ("flag", False),  # co common_config.py 92
    "data-parallel-sharding-strategy": (
        ("no_shard", "optim", "optim_grads", "optim_grads_params"),
        "optim_grads_params",
    ),  # 3190
    "no-gradient-accumulation-fusion": ("flag", False),  # 2944
    "ckpt-format": (("torch", "torch_dist", "torch_dcp", "fsdp_dtensor"), "torch_dist"),  # co 486
    "overlap-grad-reduce": ("flag", False),  # 3121
    "overlap-param-gather": ("flag", False),
    "num-distributed-optimizer-instances": (int, 1),  # 3216
    "moe-shared-expert-overlap": ("flag", False),  # tc 717
    "use-precision-aware-optimizer": ("flag", False),  # 3666
    "exp-avg-dtype": (("fp32", "fp16", "bf16", "fp8"), "fp32"),  # 3679
    "exp-avg-sq-dtype": (("fp32", "fp16", "bf16", "fp8"), "fp32"),  # 3683
    "tp-comm-overlap": ("flag", False),  # mp 265
    **MORE,
}
Given = dict[str, object]


def parse(text: str) -> Given:
    """The options of a text as the shell and argparse read them."""
    found: Given = {}
    words = shlex.split(text, comments=True)
    while words:
        word = words.pop(0)
        name = word.removeprefix("--")
        require(word.startswith("--") and name in OPTIONS, f"argparse: unrecognized {word}")
        require(name not in found, f"{word} stands twice")
        kind = OPTIONS[name][0]
        if kind == "flag":
            found[name] = True
            continue
        require(bool(words), f"argparse: {word} expects a value")
        if kind == WORDS:
            until = next((at for at, one in enumerate(words) if one.startswith("--")), len(words))
            require(until > 0, f"argparse: {word} expects a value")
            found[name], words = tuple(words[:until]), words[until:]
            continue
        found[name] = _value(kind, words.pop(0), word)
    return {name: found.get(name, default) for name, (_, default) in OPTIONS.items()}


def _value(kind: object, text: str, word: str) -> object:
    if kind is int:
        require(text.lstrip("-").isdigit(), f"argparse: {word}: invalid int {text}")
        return int(text)
    if kind is float:
        require(text.replace(".", "", 1).isdigit(), f"argparse: {word}: invalid float {text}")
        return float(text)
    if isinstance(kind, tuple):
        require(text in kind, f"argparse: {word}: invalid choice {text}")
    return text


class _Args:
    """The options by name, numbers as numbers."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def number(self, name: str) -> int:
        value = self.given[name]
        if not isinstance(value, int):
            raise Refused(f"{name} is needed (1314-1317)")
        return value

    def __getitem__(self, name: str) -> object:
        return self.given[name]


def start(text: str, ranks: int, connections: str | None) -> Started:
    """What Megatron-LM would run on so many ranks.

    connections: CUDA_DEVICE_MAX_CONNECTIONS in the environment.

    Raises:
        Refused: it would not.
    """
    args = _Args(parse(text))
    tp, pp, cp = (args.number(f"{name}-parallel-size") for name in _AXES)
    require(min(tp, pp, cp) >= 1 and ranks % (tp * pp * cp) == 0, "432: ranks by tp * pp * cp")
    dp = ranks // (tp * pp * cp)
    micro_batch, sequences = args.number("micro-batch-size"), args.number("global-batch-size")
    require(micro_batch > 0 and sequences > 0, "694, 706")
    require(sequences % (micro_batch * dp) == 0, "num_microbatches_calculator.py 381")
    chunks = _chunks(args, pp)
    vpp = len(chunks) // pp
    micro_batches = sequences // (micro_batch * dp)
    if vpp > 1:
        require(pp > 1, "1002: interleaving needs several stages")
        require(micro_batches >= pp, "sc 1160-1168")
        require(micro_batches % pp == 0, "sc 1172-1180, a group being of pp micro-batches")
    _check_widths(args, tp)
    tokens = args.number("seq-length")
    require(cp == 1 or tokens % (2 * cp) == 0, "1336")
    require(args.number("max-position-embeddings") >= tokens, "1353")
    sequence_parallel = bool(args["sequence-parallel"]) and tp > 1  # 1432-1439: else switched off
    if sequence_parallel:
        require(tokens // cp % tp == 0, "megatron/core/tensor_parallel/mappings.py 72-74")
    if args["tp-comm-overlap"]:
        require(sequence_parallel, "1441-1442")
        require(bool(args["bf16"]), "initialize.py 240-246: buffers of te's default type, bf16")
    zero = _zero(args, connections, tp * cp)
    again = _recompute(args)
    recompute = again if isinstance(again, tuple) else again.value
    degrees = (pp, dp, cp, tp)
    setting = Setting(ranks, degrees, chunks, sequence_parallel, zero, recompute)
    require(not (args["bf16"] and args["fp16"]), "1196, 1205")
    backend = args["attention-backend"]
    require(backend != "local", "436: needs --spec local")
    require(cp == 1 or backend in ("flash", "fused", "auto"), "te 1157-1173")
    return Started(
        degrees=degrees,
        chunks=chunks,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        batch=(sequences, tokens),
        sequence_parallel=sequence_parallel,
        zero=zero if dp * cp > 1 else 0,
        recompute=again,
        flash=backend != "unfused",
        dtype=_dtype(args),
        sizes=_sizes(args, sum(chunks)),
        again=args.number("recompute-num-layers") if args["recompute-method"] == "block" else 0,
        copies=_copies(args, ranks, dp * cp),
        shared=bool(args["moe-shared-expert-overlap"]),
        moments=_moments(args),
        dropout=_dropout(args),
        low_parameters=_low_parameters(args),
        mixture=replace(mixture(args, setting), ahead_in=_ahead_in(args)),
    )


_AXES = ("tensor-model", "pipeline-model", "context")


def _dtype(args: _Args) -> str:
    """Of products: low precision goes with parameters in bf16."""
    wide = "bf16" if args["bf16"] else "fp16" if args["fp16"] else "fp32"
    low, narrow = args["fp8-format"], args["fp4-format"]
    require(not (low and narrow), "fp4 and fp8 exclude each other")
    if low or narrow:
        require(wide == "bf16", "low precision beside bf16")
    if narrow:
        return "nvfp4"
    if not low:
        return wide
    recipe = str(args["fp8-recipe"])
    require(recipe != "mxfp8" or low == "e4m3", "te recipe: MXFP8 is e4m3 here")
    return {"tensorwise": "fp8", "mxfp8": "mxfp8"}.get(recipe, recipe)


def _dropout(args: _Args) -> bool:
    dropped = [float(str(args[f"{one}-dropout"])) > 0 for one in ("attention", "hidden")]
    require(len(set(dropped)) == 1, "no strategy: dropout of one of the two")
    return dropped[0]


def _low_parameters(args: _Args) -> bool:
    """Whether parameters are kept and gathered in the precision of products alone."""
    eight, four = (bool(args[f"{one}-param-gather"]) for one in ("fp8", "fp4"))
    reused, mxfp8 = bool(args["reuse-grad-buf-for-mxfp8-param-ag"]), args["fp8-recipe"] == "mxfp8"
    require(not eight or bool(args["fp8-format"]), "tc 1566-1567")
    require(not four or bool(args["fp4-format"]), "1104-1105; tc 1578-1579")
    require(not eight or bool(args["use-distributed-optimizer"]), "1095-1097")
    require(not four or bool(args["use-distributed-optimizer"]), "no strategy: nothing to gather")
    require(not reused or (eight and mxfp8), "distributed_data_parallel_config.py 86-88, 259-260")
    require(reused or not (eight and mxfp8), "optimizer_config.py 416-425: a buffer beside")
    return eight or four


def _chunks(args: _Args, pp: int) -> tuple[int, ...]:
    """Layers of the chunks in the order of the model."""
    layout, virtual = args["pipeline-model-parallel-layout"], "num-virtual-stages-per-pipeline-rank"
    ends = [args[f"account-for-{end}-in-pipeline-split"] is True for end in ("embedding", "loss")]
    require(layout is None or args[virtual] is None, "926-937: one of these at most")
    if args["hybrid-layer-pattern"] is not None:
        require(layout is None and args[virtual] is None and not any(ends), "814-838")
        parts = segments(str(args["hybrid-layer-pattern"]))
        require(len(parts) % pp == 0, "849-854, hy 459-464")
        return tuple(len(part) for part in parts)
    layers = args.number("num-layers")
    if layout is not None:
        require(not any(ends), "tc 2241-2259: no other option on stages beside a layout")
        return _layout(str(layout), layers, pp, ahead(args))
    vpp = 1 if args[virtual] is None else args.number(virtual)
    counted = layers + sum(ends)
    require(vpp >= 1 and counted % pp == 0, "tb 156-158, and 997")
    require(counted // pp % vpp == 0, "tb 175-177")
    each = [counted // (pp * vpp)] * (pp * vpp)
    each[0] -= ends[0]
    each[-1] -= ends[1]
    require(min(each) >= 0, "tb 193-201")
    return tuple(each)


def _ahead_in(args: _Args) -> int:
    """The chunk, from 1, that has MTP; 0: the last."""
    stages = unrolled(str(args["pipeline-model-parallel-layout"] or "")).split("|")
    at = [number for number, one in enumerate(stages, 1) if "m" in one]
    return at[0] % len(stages) if at else 0


def _layout(text: str, layers: int, pp: int, ahead: int) -> tuple[int, ...]:
    """The grammar of a layout (pl 266-306) by a stack, stages as their letters."""
    letters = unrolled(text.replace(",", ""))
    require(set(letters) <= set("ELtm|"), "pl 299: an unknown letter")
    stages = letters.split("|")
    require(len(stages) % pp == 0, "945, pl 42: stages by pp")
    whole = "".join(stages)
    require(whole[:1] == "E" and whole.count("E") == 1, "pl 92-99: embedding first, once")
    require(whole[-1:] == "L" and whole.count("L") == 1, "pl 95-102: loss last, once")
    require(whole.count("t") == layers, "pl 103-106: as many layers as the model")
    require(whole.count("m") == ahead, "pl 112-114")
    require("m" not in whole or "t" not in whole[whole.index("m") :], "pl 115-120")
    require(len([one for one in stages if "m" in one]) <= 1, "no strategy: MTP in two places")
    return tuple(stage.count("t") for stage in stages)


def unrolled(text: str) -> str:
    """``(ab)*3`` and ``a*3`` written out; groups do not nest."""
    parts: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == "(":
            end = text.index(")", position)
            require(end > position + 1 and text[end + 1 : end + 2] == "*", "pl 284: (..)*number")
            parts.append(unrolled(text[position + 1 : end]))
            position = end + 1
        elif text[position] == "*":
            digits = text[position + 1 :]
            digits = digits[: len(digits) - len(digits.lstrip("0123456789"))]
            require(bool(digits) and bool(parts), "pl 284-285: a count after a letter or a group")
            parts.append(parts.pop() * int(digits))
            position += 1 + len(digits)
        else:
            parts.append(text[position])
            position += 1
    return "".join(parts)


def _check_widths(args: _Args, tp: int) -> None:
    """What tensor parallelism divides."""
    heads = args.number("num-attention-heads")
    groups = args.number("num-query-groups") if args["group-query-attention"] else heads
    require(heads % tp == 0, "tc 1446")
    require(groups > 0 and (groups % tp == 0 or tp % groups == 0), "tc 1461-1468")
    require(heads % groups == 0, "megatron/core/transformer/attention.py: heads by groups")
    require(
        not _dense(args) or _ffn(args) % tp == 0,
        "megatron/core/tensor_parallel/layers.py 1038, 1408",
    )
    vocab = args.number("padded-vocab-size")
    require(vocab % tp == 0, "megatron/core/tensor_parallel/utils.py 118, layers.py 268")


def _ffn(args: _Args) -> int:
    """1320-1329."""
    if args["ffn-hidden-size"] is not None:
        return args.number("ffn-hidden-size")
    hidden = args.number("hidden-size")
    return int(4 * hidden * 2 / 3 / 64) * 64 if args["swiglu"] else 4 * hidden


def _sizes(args: _Args, layers: int) -> tuple[int, ...]:
    heads, hidden = args.number("num-attention-heads"), args.number("hidden-size")
    groups = args.number("num-query-groups") if args["group-query-attention"] else heads
    if args["kv-channels"] is None:
        require(hidden % heads == 0, "1332")
    channels = hidden // heads if args["kv-channels"] is None else args.number("kv-channels")
    vocab = args.number("padded-vocab-size")
    tied = not args["untie-embeddings-and-output-weights"]
    gated = bool(args["swiglu"] or args["quick-geglu"])
    require(not (args["swiglu"] and args["quick-geglu"]), "au 323-324")
    ffn = _ffn(args) if _dense(args) else 0
    numbers = (layers, hidden, ffn, heads, groups, channels)
    return (*numbers, vocab, int(gated), int(tied))


def _dense(args: _Args) -> bool:
    """Whether a layer has a dense MLP."""
    if args["hybrid-layer-pattern"] is not None:
        return "-" in str(args["hybrid-layer-pattern"])
    if args["num-experts"] is None:
        return True
    found = evaluated(str(args["moe-layer-freq"]))
    return 0 in found if isinstance(found, list) else found > 1


def _recompute(args: _Args) -> Recompute | tuple[str, ...]:
    granularity, method = args["recompute-granularity"], args["recompute-method"]
    if granularity is None:
        return Recompute.NONE
    count = args["recompute-num-layers"]
    if granularity == "selective":
        require(method is None and count is None, "1425-1428, tc 1926-1932")
        modules = args["recompute-modules"]
        assert isinstance(modules, tuple)
        require(set(modules) <= set(MODULES), "tc 1945-1962")
        if "moe_act" in modules:
            require(bool(args["moe-grouped-gemm"]), "tc 1964-1967")
        if "mla_up_proj" in modules:
            require(bool(args["multi-latent-attention"]), "tc 1969-1973")
        return tuple(sorted(modules))
    require(method is not None, "tc 1913-1917")
    require(count is not None, "tc 1919-1925")
    require(method == "block" or count == 1, "no strategy: several layers are kept as one")
    return Recompute.FULL


def _copies(args: _Args, ranks: int, dp_cp: int) -> int:
    """Of the shards of ZeRO; experts have as many."""
    found = args.number("num-distributed-optimizer-instances")
    require(dp_cp % found == 0, "parallel_state.py 921-927")
    apart = args.number("expert-model-parallel-size") * args.number("pipeline-model-parallel-size")
    etp = args["expert-tensor-parallel-size"]
    if args["num-experts"] is not None and isinstance(etp, int):
        require(ranks // (apart * etp) % found == 0, "parallel_state.py 1448-1450")
    return found


def _moments(args: _Args) -> int:
    """Bytes of a parameter in the optimizer."""
    kinds = (str(args["exp-avg-dtype"]), str(args["exp-avg-sq-dtype"]))
    if not args["use-precision-aware-optimizer"]:
        require(kinds == ("fp32", "fp32"), "megatron/core/optimizer/optimizer_config.py")
        return 12
    require(bool(args["use-distributed-optimizer"]), "megatron/core/optimizer/optimizer_config.py")
    return 4 + sum({"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}[kind] for kind in kinds)


def _zero(args: _Args, connections: str | None, tp_cp: int) -> int:
    """How data parallelism shards: DDP, its distributed optimizer, Megatron-FSDP."""
    fsdp, optimizer = args["use-megatron-fsdp"], args["use-distributed-optimizer"]
    if args["overlap-param-gather"]:
        require(bool(optimizer or fsdp), "1024-1027")
        require(bool(args["overlap-grad-reduce"]), "1028")
    require((args["ckpt-format"] == "fsdp_dtensor") == bool(fsdp), "1169, 1675")
    if fsdp:
        require(connections != "1", "1166")
        strategies = ("no_shard", "optim", "optim_grads", "optim_grads_params")
        return strategies.index(str(args["data-parallel-sharding-strategy"]))
    if not args["overlap-moe-expert-parallel-comm"]:  # 1466-1475: a warning
        require(tp_cp == 1 or connections == "1", "1453-1479, before Blackwell")
    return 1 if optimizer else 0
