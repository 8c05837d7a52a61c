"""DeepSpeed: the configuration that says what a strategy says, as JSON, written and read.

A pipeline is no part of it but a ``PipelineModule``, whose arguments are given as a note; tensor
parallelism is AutoTP, which cuts models that have no pipeline.  Of a configuration that is read,
degrees of the pipeline, recomputation and the model stand in a program's code, so they are given:
as ``pp=4`` and ``recompute=full`` of a strategy.

Source: deepspeedai/DeepSpeed at the commit below: ``deepspeed/runtime/config.py``,
``deepspeed/runtime/zero/config.py``, ``deepspeed/runtime/tensor_parallel/config.py``,
``deepspeed/runtime/engine.py``, ``deepspeed/runtime/pipe/`` (``engine.py``, ``module.py``) and
``deepspeed/__init__.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.trainers.launch import Launch, missing
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.torchtitan import counts_ends, micro_batches
from p2smt.interop.trainers.trainer import MissingFeature, Trainer, needs_selective
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import (
    AXES,
    MAX_BATCH,
    SIXTEEN,
    Batch,
    Recompute,
    Strategy,
    parse_value,
)
from p2smt.training.transformer import Transformer
from p2smt.units import parse_count

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


_COUNTED = frozenset(
    (
        *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
        *("zero_optimization", "bf16", "fp16", "tensor_parallel"),
    )
)
_REFUSED = {
    "offload_optimizer": "offload of the optimizer",
    "offload_param": "offload of parameters",
    "zero_hpz_partition_size": "a second partition of parameters (hpZ)",
}
_OF_PROGRAM = ("pp", "recompute", "cp")
_AUTO = "auto"
"""What stands in place of a value that the program's own options tell."""
_BATCHES = ("train_batch_size", "gradient_accumulation_steps")
_WIDE = ("bf16", "fp16")


def read_deepspeed(
    text: str,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None,
    devices: int | None = None,
) -> Launch:
    """The run of a configuration.

    Args:
        text: the JSON.
        settings: ``pp`` and ``recompute`` of its program, ``seq``, tokens of a sequence, and what
            the configuration leaves to it as ``auto``: sizes of the batch by their keys, ``dtype``.
        source: names the file in errors.
        model: what is trained; None: asked for.
        devices: how many ranks start.

    Raises:
        InputError: it is no such configuration, or does not say enough (all of it is named).
    """
    data = _told(_object(text, source), settings)
    wanted = [] if "seq" in settings else ["seq"]
    wanted += ["devices"] * (not devices) + ["--model"] * (model is None)
    wanted += [] if _micro(data) else ["train_micro_batch_size_per_gpu"]
    if _AUTO in map(data.get, _BATCHES) and not any(_whole(data, key) for key in _BATCHES):
        wanted.append(_BATCHES[0])
    if "dtype" not in settings and not _wide(data) and _AUTO in map(_enabled(data), _WIDE):
        wanted.append("dtype")
    if wanted or model is None or not devices:
        raise missing(source, wanted)
    zero = _section(data, "zero_optimization")
    for key, what in _REFUSED.items():
        if zero.get(key) not in (None, {}, 1) and _section(zero, key).get("device") != "none":
            raise InputError(f"{source}: {key}", f"{what} is not priced")
    strategy = _strategy(data, zero, settings, devices, source)
    assumed = [f"{key} stands in the program: none" for key in _OF_PROGRAM if key not in settings]
    ignored = tuple(name for name in data if name not in _COUNTED)
    tokens = parse_count(settings["seq"], f"--set seq={settings['seq'][:40]}", MAX_BATCH)
    batch = Batch(_sequences(data, strategy), tokens)
    mapped = tuple(name for name in data if name in _COUNTED)
    run = (model, batch, strategy, devices, AXES, tuple(assumed), ignored)
    return Launch("deepspeed", *run, mapped=mapped)


def _object(text: str, source: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(source, f"is no JSON: {str(error)[:80]}") from None
    if not isinstance(found, dict) or not _COUNTED & found.keys():
        rule = f"is no configuration of DeepSpeed: it has none of {', '.join(sorted(_COUNTED)[:4])}"
        raise InputError(source, rule)
    return found


def _section(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = data.get(key, {})
    return found if isinstance(found, dict) else {}


def _whole(data: Mapping[str, object], key: str) -> int:
    """A number of the configuration; 0: it is not there, or left to others (``auto``)."""
    found = data.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def _told(data: Mapping[str, object], settings: Mapping[str, str]) -> Mapping[str, object]:
    """With sizes that are told in place of those that it has, or leaves to its program."""
    keys = (*_BATCHES, "train_micro_batch_size_per_gpu")
    return {
        **data,
        **{
            key: parse_count(settings[key], f"--set {key}={settings[key][:40]}", MAX_BATCH)
            for key in keys
            if key in settings
        },
    }


def _enabled(data: Mapping[str, object]) -> Callable[[str], object]:
    return lambda key: _section(data, key).get("enabled")


def _wide(data: Mapping[str, object]) -> list[str]:
    """The types of 16 bits that it enables."""
    return [key for key in _WIDE if _enabled(data)(key) is True]


def _micro(data: Mapping[str, object]) -> int:
    return _whole(data, "train_micro_batch_size_per_gpu")


def _sequences(data: Mapping[str, object], strategy: Strategy) -> int:
    each = _micro(data) * strategy.dp
    return _whole(data, "train_batch_size") or each * (
        _whole(data, "gradient_accumulation_steps") or 1
    )


def _strategy(
    data: Mapping[str, object],
    zero: Mapping[str, object],
    settings: Mapping[str, str],
    devices: int,
    source: str,
) -> Strategy:
    wide = [settings["dtype"]] if "dtype" in settings else _wide(data)
    if len(wide) != 1:
        rule = "must have one of bf16 and fp16 enabled; fp32 is not priced"
        raise InputError(source, rule)
    tp = _whole(_section(data, "tensor_parallel"), "autotp_size") or 1
    given = {
        key: parse_value(key, settings[key], f"--set {key}={settings[key][:40]}")
        for key in _OF_PROGRAM
        if key in settings
    }
    each = tp * int(given.get("pp", 1)) * int(given.get("cp", 1))
    if devices % each:
        raise InputError(f"{source}: {devices} ranks", f"tp x pp x cp = {each} must divide them")
    stage = _whole(zero, "stage")
    dtype = parse_value("dtype", wide[0], f"--set dtype={wide[0][:40]}")
    return Strategy(
        tp=tp, dp=devices // each, micro_batch=_micro(data), zero=stage, dtype=dtype, **given
    )
