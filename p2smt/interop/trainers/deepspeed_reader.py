"""DeepSpeed: the run that a configuration in JSON tells, and what it leaves to its program.

Degrees of the pipeline, recomputation and the model stand in a program's code, so they are given:
as ``pp=4`` and ``recompute=full`` of a strategy.  Source: as of
:mod:`p2smt.interop.trainers.deepspeed`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from p2smt.errors import InputError
from p2smt.interop.trainers.launch import Launch, missing
from p2smt.training.strategy import AXES, MAX_BATCH, Batch, Strategy, parse_value
from p2smt.training.transformer import Transformer
from p2smt.units import parse_count

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
