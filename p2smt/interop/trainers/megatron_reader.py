"""Megatron-LM: the run that options of its command line tell.

Source: as of :mod:`p2smt.interop.trainers.megatron`; defaults are those of
``megatron/training/arguments.py`` and ``megatron/core/transformer/transformer_config.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace

from p2smt.errors import InputError
from p2smt.interop.trainers.launch import (
    Launch,
    Options,
    Started,
    check_ranks,
    missing,
    started,
    without_even_split,
)
from p2smt.interop.trainers.megatron_names import IGNORED
from p2smt.training.strategy import (
    AXES,
    OPTIMIZER_BYTES,
    SIXTEEN,
    Batch,
    Recompute,
    Strategy,
)
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)

MARKS = (
    *("--num-layers", "--hybrid-layer-pattern", "--tensor-model-parallel-size"),
    "--use-checkpoint-args",
)
"""Options by which its command line is found in a script."""
_SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}


def read_megatron(
    text: str,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None = None,
    devices: int | None = None,
) -> Launch:
    """The run that a launch script, or its command alone, starts.

    Args:
        text: the script.
        settings: variables and tests that it leaves open, see
            :func:`~p2smt.interop.shell.script.read_script`; ``--seq-length`` and such tell options.
        source: names the file in errors.
        model: what is trained, where the file leaves it to a checkpoint or tokenizer.
        devices: how many ranks start where the file does not say.

    Raises:
        InputError: it does not say enough (all of it is named), or has options that are not known.
    """
    program = started(text, settings, MARKS, source)
    return read_options(program, settings, source, model=model, devices=devices)


def read_options(
    program: Started,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None = None,
    devices: int | None = None,
) -> Launch:
    """The run of a program's options; the rest as :func:`read_megatron`."""
    options = Options.of(program.words, source)
    options.assumed += program.left
    options.doubted = program.doubted
    told = {name: tuple(value.split()) for name, value in settings.items() if name[:2] == "--"}
    options.values.update(told)
    if "seq" in settings and not options.has(*_SEQUENCE):
        options.values[_SEQUENCE[0]] = (settings["seq"],)
    ranks = check_ranks(source, program.ranks, devices)
    options.check_known(_required(options, model, ranks), IGNORED)
    _check_alone(options)
    trained = _model(options, model)
    strategy = _strategy(options, trained, ranks)
    batch = _batch(options, strategy)
    unknown = [name for name in options.left() if name not in IGNORED]
    if unknown:
        rule = f"has {', '.join(unknown[:8])}, whose effect on time and memory is not known"
        raise InputError(source, rule, "take them out where they have none")
    order = ("dp", "pp", "cp", "tp") if options.has("--use-tp-pp-dp-mapping") else AXES
    ignored = tuple(name for name in options.values if name in IGNORED)
    mapped = tuple(name for name in options.values if name not in IGNORED)
    strategy = without_even_split(strategy, trained)
    assumed = tuple(options.assumed)
    run = (trained, batch, strategy, ranks, order, assumed, ignored)
    return Launch("megatron", *run, mapped=mapped)


_ALONE = (
    ("--bf16", "--fp16"),
    ("--swiglu", "--quick-geglu"),
    ("--swiglu", "--squared-relu"),
    (
        *("--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank"),
        "--pipeline-model-parallel-layout",
    ),
)
"""Options of which Megatron-LM starts with one at most (arguments.py 926-937, 1196-1205,
argument_utils.py 320-324)."""


def _check_alone(options: Options) -> None:
    for names in _ALONE:
        given = [name for name in names if name in options.values]
        if len(given) > 1:
            rule = f"has both {given[0]} and {given[1]}"
            raise InputError(options.source, rule, "leave out one of them")


def _required(options: Options, model: Transformer | None, ranks: int) -> list[str]:
    """Options without which the run is not told."""
    found = [_SEQUENCE[1] if _SEQUENCE[1] in options.values else _SEQUENCE[0], "--micro-batch-size"]
    if ranks == 0:
        found.append("devices")
    of_checkpoint = options.has("--use-checkpoint-args")
    if model is not None:
        return found
    if of_checkpoint:
        return [*found, "--model"]
    layers = [] if options.has(*_PATTERN) else ["--num-layers"]
    words = [] if options.has("--padded-vocab-size") else ["--vocab-size"]
    return [*layers, "--hidden-size", "--num-attention-heads", *words, *found]


def _batch(options: Options, strategy: Strategy) -> Batch:
    each = strategy.micro_batch * strategy.dp
    if not options.has("--global-batch-size"):
        options.assume(f"no --global-batch-size: one micro-batch of each of dp, {each}")
    if options.has("--rampup-batch-size"):
        options.assume("--rampup-batch-size: an iteration of the full batch is priced")
    sequences = options.count("--global-batch-size", default=each)
    return Batch(sequences, options.count(*_SEQUENCE))


# The model.


def _model(options: Options, named: Transformer | None) -> Transformer:
    """The model of the options; where one is named, the options must not say otherwise."""
    if named is None:
        return _decoder(options)
    for key, name in _NAMES.items():
        told = options.count(name)
        if told and told != getattr(named, key):
            rule = f"has {name} {told}, and {named.name} {getattr(named, key)}"
            raise InputError(options.source, rule, "name the model that it trains")
    for name in _OF_MODEL:
        options.has(name)
    return named


_NAMES = {
    "layers": "--num-layers",
    "hidden": "--hidden-size",
    "heads": "--num-attention-heads",
    "ffn": "--ffn-hidden-size",
    "kv_heads": "--num-query-groups",
}
_OF_MODEL = frozenset(
    (
        *("--kv-channels", "--group-query-attention", "--swiglu", "--quick-geglu", "--vocab-size"),
        *("--untie-embeddings-and-output-weights", "--make-vocab-size-divisible-by"),
        *("--padded-vocab-size", "--window-size", "--window-attn-skip-freq", "--moe-latent-size"),
        *("--multi-latent-attention", "--kv-lora-rank", "--q-lora-rank", "--qk-head-dim"),
        *("--qk-pos-emb-head-dim", "--v-head-dim", "--mtp-num-layers", "--hybrid-layer-pattern"),
        *("--mamba-num-heads", "--mamba-head-dim", "--mamba-num-groups", "--mamba-state-dim"),
        *("--num-experts", "--moe-router-topk", "--moe-ffn-hidden-size", "--moe-layer-freq"),
        *("--moe-shared-expert-intermediate-size", "--moe-router-num-groups"),
        *("--moe-router-group-topk", "--hybrid-override-pattern"),
    )
)
"""Options of the model that a model by name tells."""
_PATTERN = ("--hybrid-layer-pattern", "--hybrid-override-pattern")
_SEQUENCE = ("--seq-length", "--encoder-seq-length")


def _decoder(options: Options) -> Transformer:
    hidden, heads = options.count("--hidden-size"), options.count("--num-attention-heads")
    gated = any([options.has("--swiglu"), options.has("--quick-geglu")])
    usual = _usual_ffn(options, hidden, gated=gated)
    experts = _experts(options, usual)
    window = options.text("--window-size").strip("()").split(",")[0]
    kinds, ahead = _pattern(options)
    options.has("--num-layers")
    ahead = ahead or options.count("--mtp-num-layers", least=0)
    kinds = kinds or _kinds(options, options.count("--num-layers"), experts, window != "")
    dense = any(kind.mlp is Mlp.DENSE for kind in kinds)
    mamba = any(kind.attention is Attention.MAMBA for kind in kinds)
    options.has("--group-query-attention")
    return Transformer(
        name=re.sub(r".*/", "", options.source)[:60],
        layers=len(kinds),
        hidden=hidden,
        heads=heads,
        kv_heads=options.count("--num-query-groups", default=heads),
        ffn=options.count("--ffn-hidden-size", default=usual) if dense else 0,
        gated=gated,
        vocab=_vocabulary(options),
        head_size=options.count("--kv-channels", default=max(hidden // heads, 1)),
        tied=not options.has("--untie-embeddings-and-output-weights"),
        experts=experts,
        mla=_latent(options),
        mamba=_mamba(options) if mamba else None,
        window=int(window) + 1 if window.isdecimal() else 0,
        order=LayerRun.of(kinds),
        mtp=ahead,
    )


def _usual_ffn(options: Options, hidden: int, *, gated: bool) -> int:
    """Width of the MLP where no option says it: of 4 hidden, gated two thirds.

    ``--multiple-of`` and ``--hidden-dim-multiplier`` are of FlagScale (``arguments.py``): rounded
    up as in Llama.
    """
    width = int(4 * hidden * 2 / 3) if gated else 4 * hidden
    multiple, times = options.count("--multiple-of"), options.text("--hidden-dim-multiplier")
    if not multiple:
        return max(width // 64 * 64 if gated else width, 1)
    if times:
        try:
            width = int(width * float(times))
        except ValueError:
            given = f"{options.source}: --hidden-dim-multiplier {times[:40]}"
            raise InputError(given, "must be a number") from None
    return -(-width // multiple) * multiple


def _vocabulary(options: Options) -> int:
    """As it is given, or padded to what Megatron pads it to."""
    multiple = options.count("--make-vocab-size-divisible-by", default=128)
    multiple *= options.count("--tensor-model-parallel-size", default=1)
    padded = -(-options.count("--vocab-size") // multiple) * multiple
    return options.count("--padded-vocab-size", default=padded)


def _latent(options: Options) -> LatentAttention | None:
    if not options.has("--multi-latent-attention"):
        return None
    return LatentAttention(
        kv_rank=options.count("--kv-lora-rank", default=32),
        nope=options.count("--qk-head-dim", default=128),
        rope=options.count("--qk-pos-emb-head-dim", default=64),
        value=options.count("--v-head-dim", default=128),
        query_rank=options.count("--q-lora-rank"),
    )


def _mamba(options: Options) -> Mamba:
    hidden, size = options.count("--hidden-size"), options.count("--mamba-head-dim", default=64)
    return Mamba(
        heads=options.count("--mamba-num-heads", default=max(2 * hidden // size, 1)),
        head_size=size,
        groups=options.count("--mamba-num-groups", default=8),
        state=options.count("--mamba-state-dim", default=128),
    )


def _experts(options: Options, usual: int) -> Experts | None:
    if not options.has("--num-experts"):
        return None
    dense = options.count("--ffn-hidden-size", default=max(usual, 1))
    if not options.has("--moe-router-topk"):
        options.assume("no --moe-router-topk: 2 experts for a token")
    return Experts(
        count=options.count("--num-experts"),
        active=options.count("--moe-router-topk", default=2),
        width=options.count("--moe-ffn-hidden-size", default=dense),
        shared_width=options.count("--moe-shared-expert-intermediate-size"),
        latent=options.count("--moe-latent-size"),
        groups=options.count("--moe-router-num-groups"),
        top_groups=options.count("--moe-router-group-topk"),
        clamped=options.has("--quick-geglu"),
    )


def _kinds(
    options: Options, layers: int, experts: Experts | None, windows: bool
) -> list[LayerKind]:
    """The kinds of all layers of a GPT."""
    of_experts = (
        _marked(options, "--moe-layer-freq", layers, every=1) if experts else [False] * layers
    )
    if windows and not options.has("--window-attn-skip-freq"):
        windowed = [True] * layers
    elif windows:
        windowed = _marked(options, "--window-attn-skip-freq", layers, every=0)
    else:
        windowed = [False] * layers
    pairs = zip(windowed, of_experts, strict=True)
    return [
        LayerKind(Attention.WINDOW if near else Attention.FULL, Mlp.EXPERTS if many else Mlp.DENSE)
        for near, many in pairs
    ]


def _marked(options: Options, name: str, layers: int, *, every: int) -> list[bool]:
    """Layers that an option marks: ``([0]*3+[1]*58)``, or one number.

    A number N marks layers 0, N, 2N .. of experts (``every`` 1), and all but each Nth of windows.
    """
    text = options.text(name, default="1")
    if text.isdecimal() and int(text):
        each = int(text)
        return [(at % each == 0) if every else ((at + 1) % each > 0) for at in range(layers)]
    found = _listed(text)
    if found is None or len(found) != layers:
        rule = f"must be a number, or a list of {layers} of 0 and 1, as ([0]*3+[1]*{layers - 3})"
        raise InputError(f"{options.source}: {name} {text[:60]}", rule)
    return [item > 0 for item in found]


def _listed(text: str) -> list[int] | None:
    """A list in Python of sums and repetitions; None: it is none, or too long."""
    try:
        return _evaluated(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _evaluated(node: ast.expr) -> list[int]:
    match node:
        case ast.List(elts=items):
            values = [item.value for item in items if isinstance(item, ast.Constant)]
            numbers = [value for value in values if isinstance(value, int)]
            if len(numbers) == len(items):
                return numbers
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _evaluated(left) + _evaluated(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))) if (
            times < 10**4
        ):
            return _evaluated(left) * times
    raise ValueError


_LETTERS = {
    "M": LayerKind(Attention.MAMBA, Mlp.NONE),
    "*": LayerKind(Attention.FULL, Mlp.NONE),
    "+": LayerKind(Attention.FULL, Mlp.NONE),
    "-": LayerKind(Attention.NONE, Mlp.DENSE),
    "E": LayerKind(Attention.NONE, Mlp.EXPERTS),
}


def _pattern(options: Options) -> tuple[list[LayerKind], int]:
    """The layers of a hybrid by their letters, and how many layers predict later tokens."""
    main, *ahead = options.text(*_PATTERN).split("/")
    letters = main.replace("|", "")
    if unknown := set(letters) - set(_LETTERS):
        given = f"{options.source}: --hybrid-layer-pattern {main[:40]}"
        raise InputError(given, f"has layers {', '.join(sorted(unknown))} that are not priced")
    return [_LETTERS[letter] for letter in letters], len(ahead)


# The strategy.


def _strategy(options: Options, model: Transformer, devices: int) -> Strategy:
    tp = options.count("--tensor-model-parallel-size", default=1)
    pp = options.count("--pipeline-model-parallel-size", default=1)
    cp = options.count("--context-parallel-size", default=1)
    if cp > 1 and (kind := options.text("--cp-comm-type", default="p2p")) != "p2p":
        rule = "is not priced: context parallelism is by rings (p2p)"
        raise InputError(f"{options.source}: --cp-comm-type {kind[:20]}", rule)
    if devices % (tp * pp * cp):
        rule = f"starts {devices} ranks, and tp {tp} x pp {pp} x cp {cp} must divide them"
        raise InputError(options.source, rule)
    recompute, modules, most = _recompute(options)
    dtype = _dtype(options)
    found = Strategy(
        tp=tp,
        pp=pp,
        cp=cp,
        dp=devices // (tp * pp * cp),
        micro_batch=options.count("--micro-batch-size"),
        sequence_parallel=options.has("--sequence-parallel") and tp > 1,
        zero=_zero(options),
        recompute=recompute,
        modules=modules,
        flash=_fused(options),
        dtype=dtype,
        graphs=_graphs(options),
        dropout=_dropout(options),
        fp8_params=options.has("--fp8-param-gather", "--fp4-param-gather") or dtype in SIXTEEN,
        recompute_layers=most,
        dp_replicate=options.count("--num-distributed-optimizer-instances", default=1),
        optimizer_bytes=_optimizer_bytes(options),
    )
    if model.experts is not None:
        found = _with_experts(options, found)
    elif (ep := options.count("--expert-model-parallel-size", default=1)) > 1:
        given = f"{options.source}: --expert-model-parallel-size {ep}"
        raise InputError(given, "needs --num-experts", "add that, or leave it out")
    for name in _OF_EXPERTS:
        options.has(name)
    return _with_chunks(options, model, found)


def _with_experts(options: Options, found: Strategy) -> Strategy:
    etp = options.count("--expert-tensor-parallel-size", default=found.tp)
    if not options.has("--expert-tensor-parallel-size") and found.tp > 1:
        options.assume(f"no --expert-tensor-parallel-size: that of tp, {found.tp}")
    dispatcher = options.text("--moe-token-dispatcher-type", default="allgather")
    if dispatcher == "allgather":
        options.assume("the allgather dispatcher is priced as alltoall")
        dispatcher = "alltoall"
    if options.has("--moe-enable-deepep"):
        dispatcher = "flex"
    return replace(
        found,
        ep=options.count("--expert-model-parallel-size", default=1),
        etp=etp,
        dispatcher=dispatcher,
        overlap=options.has("--overlap-moe-expert-parallel-comm"),
        shared_overlap=options.has("--moe-shared-expert-overlap"),
    )


_OF_EXPERTS = (
    *("--expert-model-parallel-size", "--expert-tensor-parallel-size"),
    *("--moe-token-dispatcher-type", "--moe-flex-dispatcher-backend", "--moe-enable-deepep"),
)
"""Options that a model without experts may have."""


def _with_chunks(options: Options, model: Transformer, found: Strategy) -> Strategy:
    """How layers go to the chunks of the pipeline."""
    if layout := options.text("--pipeline-model-parallel-layout"):
        return _of_chunks(found, *_layout(layout, options.source))
    pattern = options.text(*_PATTERN).split("/")[0]
    if "|" in pattern:
        return _of_chunks(found, tuple(map(len, pattern.split("|"))))
    ends = [options.has(name) for name in _ENDS]
    layers = model.layers + sum(ends)
    if each := options.count("--num-layers-per-virtual-pipeline-stage"):
        if layers % (found.pp * each):
            given = f"{options.source}: --num-layers-per-virtual-pipeline-stage {each}"
            raise InputError(given, f"times pp {found.pp} must divide the {layers} layers")
        found = replace(found, vpp=layers // found.pp // each)
    if vpp := options.count("--num-virtual-stages-per-pipeline-rank"):
        found = replace(found, vpp=vpp)
    first, last = (options.count(name) for name in _FIRST_AND_LAST)
    if any(ends):
        split = [layers // found.chunks] * found.chunks
        split[0], split[-1] = split[0] - ends[0], split[-1] - ends[1]
        return replace(found, split=tuple(split))
    return (
        replace(found, split=_stages(model.layers, found, first, last)) if first or last else found
    )


def _of_chunks(found: Strategy, split: tuple[int, ...], ahead: int = 0) -> Strategy:
    """``ahead``: the chunk with layers of multi-token prediction, from 1; 0: none, or the last."""
    ahead = 0 if ahead == len(split) else ahead
    return replace(found, split=split, vpp=max(len(split) // found.pp, 1), mtp_chunk=ahead)


_ENDS = ("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split")
_FIRST_AND_LAST = ("--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers")


def _stages(layers: int, found: Strategy, first: int, last: int) -> tuple[int, ...]:
    """Layers of each chunk where those of the first and the last stage are given."""
    others = found.pp - (first > 0) - (last > 0)
    middle = (layers - first - last) // max(others, 1)
    stages = [middle] * found.pp
    stages[0], stages[-1] = first or stages[0], last or stages[-1]
    return tuple(stage // found.vpp for stage in stages) * found.vpp


def _layout(text: str, source: str) -> tuple[tuple[int, ...], int]:
    """Layers of each chunk of ``Et*3|(tt|)*14|tmL``, and which chunk, from 1, has m."""
    plain = text.replace(",", "")
    for _ in range(8):
        plain = re.sub(r"\(([^()]*)\)\*(\d{1,4})", _repeated, plain)
    plain = re.sub(r"([A-Za-z|])\*(\d{1,4})", _repeated, plain)
    if not re.fullmatch(r"[EtmL|]+", plain):
        given = f"{source}: --pipeline-model-parallel-layout {text[:60]}"
        raise InputError(given, "must have E, t, m, L, |, and repetitions (tt|)*4")
    chunks = plain.split("|")
    ahead = next((at for at, chunk in enumerate(chunks, start=1) if "m" in chunk), 0)
    return tuple(chunk.count("t") for chunk in chunks), ahead


def _repeated(found: re.Match[str]) -> str:
    return found.group(1) * int(found.group(2))


def _zero(options: Options) -> int:
    """What of its parameters, gradients and optimizer a rank shards."""
    strategy = options.text("--data-parallel-sharding-strategy", default="no_shard")
    if options.has("--zero-stage", "--deepspeed"):  # of Megatron-DeepSpeed
        if not options.has("--zero-stage"):
            raise missing(options.source, ["--zero-stage"])
        options.assume("what --deepspeed_config offloads is not read: nothing is")
        return min(options.count("--zero-stage", least=0), 3)
    if options.has("--use-torch-fsdp2"):
        return 3
    if options.has("--use-megatron-fsdp", "--use-custom-fsdp"):
        if strategy not in _SHARDING:
            given = f"{options.source}: --data-parallel-sharding-strategy {strategy[:40]}"
            raise InputError(given, f"must be one of {', '.join(_SHARDING)}")
        options.has("--use-distributed-optimizer")
        return _SHARDING[strategy]
    if options.has("--use-distributed-optimizer"):
        return 1
    options.assume("no --use-distributed-optimizer: zero=0")
    return 0


def _dtype(options: Options) -> str:
    if options.text("--fp4-format"):
        options.has("--fp8-format", "--fp8-recipe", "--fp4-recipe", "--bf16")
        return "nvfp4"
    narrow = options.has("--fp8-format", "--fp8-hybrid", "--fp8-e4m3")
    recipe = options.text("--fp8-recipe", default="delayed")
    wide = [name for name in ("bf16", "fp16") if options.has(f"--{name}")]
    if narrow and recipe == "mxfp8":
        return "mxfp8"
    if narrow:
        if recipe == "blockwise":
            options.assume("--fp8-recipe blockwise is priced as fp8 of one scale a tensor")
        return "fp8"
    if not wide:
        rule = "trains in fp32, which is not priced: it has neither --bf16 nor --fp16"
        raise InputError(options.source, rule)
    return wide[0]


def _fused(options: Options) -> bool:
    backend = options.text("--attention-backend", default="auto")
    old = options.text("--transformer-impl", default="transformer_engine") == "local"
    fused = options.has("--use-flash-attn")
    return fused or not (backend in ("unfused", "local") or (old and backend == "auto"))


def _dropout(options: Options) -> bool:
    """Whether anything is dropped out, as Megatron does unless it is told not to."""
    names = ("--attention-dropout", "--hidden-dropout")
    if options.has("--use-checkpoint-args") and not options.has(*names):
        options.assume("dropout is that of the checkpoint: none")
        return False
    if not any(name in options.values for name in names):
        options.assume("no --hidden-dropout and --attention-dropout: 0.1 each")
    rates = [
        options.text(name, default="0.1") for name in names
    ]  # both are read, whatever the first
    return any(rate.strip("0.") for rate in rates)


_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


def _optimizer_bytes(options: Options) -> int:
    """Of a parameter: itself in fp32, or what bf16 lacks of it, and its two moments."""
    moments = ("--exp-avg-dtype", "--exp-avg-sq-dtype")
    options.has("--main-grads-dtype", "--main-params-dtype", *moments)
    if not options.has("--use-precision-aware-optimizer"):
        return OPTIMIZER_BYTES
    own = options.text("--main-params-dtype", default="fp32")
    kept = (options.text(name, default="fp32") for name in moments)
    return sum(_BYTES.get(one, 4) for one in (own, *kept))


_AGAIN = {
    word: (f"--recompute-{word}", f"--activations-checkpoint-{word}", f"--checkpoint-{word}")
    for word in ("granularity", "method", "num-layers")
}
"""Options by what they say, the names of older versions behind those of now."""


def _recompute(options: Options) -> tuple[Recompute, tuple[str, ...], int]:
    """What is computed again: a kind, modules, and how many layers of a chunk (0: all)."""
    modules = tuple(word.strip("[],") for word in options.words("--recompute-modules"))
    old = options.has("--checkpoint-activations")
    whole = options.text(*_AGAIN["granularity"], default="full" if old else "")
    method = options.text(*_AGAIN["method"], default="uniform" if old else "")
    many = options.count(*_AGAIN["num-layers"], default=1)
    if whole == "full" and method != "block" and (method, many) != ("uniform", 1):
        given = f"{options.source}: --recompute-method {method} --recompute-num-layers {many}"
        raise InputError(given, "is not priced: layers are computed again one by one (uniform, 1)")
    if whole == "full":
        return Recompute.FULL, (), many if method == "block" else 0
    if not options.has("--recompute-activations") and whole != "selective":
        return Recompute.NONE, (), 0
    if set(modules) <= {"core_attn"}:
        return Recompute.SELECTIVE, (), 0
    return Recompute.NONE, modules, 0


def _graphs(options: Options) -> str:
    kind = options.text("--cuda-graph-impl", default="none")
    options.has("--cuda-graph-modules", "--cuda-graph-scope", "--cuda-graph-warmup-steps")
    if options.has("--enable-cuda-graph", "--external-cuda-graph"):
        kind = "local"
    if kind == "full_iteration":  # what a graph cannot hold is dropped
        options.has("--moe-expert-rank-capacity-factor", "--moe-paged-stash")
    return {"none": "none", "full_iteration": "full"}.get(kind, "partial")
