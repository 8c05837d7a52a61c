"""Megatron-Bridge: the run that fields of a recipe tell.

A recipe is a Python file whose fields are assigned, or a command line that sets them:
``cfg.model.tensor_model_parallel_size = 4``, ``model.tensor_model_parallel_size=4``.  Its fields
are options of Megatron-LM with underscores, so these are read.

Source: NVIDIA-NeMo/Megatron-Bridge, ``src/megatron/bridge/training/config.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from p2smt.interop.shell.variables import unknown
from p2smt.interop.trainers.launch import Launch, Started
from p2smt.interop.trainers.megatron_reader import read_options
from p2smt.training.transformer import Transformer

MARK = "tensor_model_parallel_size"
"""A field by which a recipe is told."""
_SECTIONS = ("model", "train", "dataset", "ddp", "optimizer", "mixed_precision", "comm_overlap")
_RENAMED = {
    "dataset.sequence_length": "--seq-length",
    "dataset.seq_length": "--seq-length",
    "model.virtual_pipeline_model_parallel_size": "--num-virtual-stages-per-pipeline-rank",
    "comm_overlap.tp_comm_overlap": "--tp-comm-overlap",
    "ddp.overlap_grad_reduce": "--overlap-grad-reduce",
    "ddp.overlap_param_gather": "--overlap-param-gather",
    "optimizer.use_distributed_optimizer": "--use-distributed-optimizer",
    "model.num_moe_experts": "--num-experts",
}
_PRECISIONS = {
    "bf16_mixed": "--bf16",
    "fp16_mixed": "--fp16",
    "bf16_with_fp8_mixed": "--bf16 --fp8-format hybrid",
    "bf16_with_fp8_delayed_scaling_mixed": "--bf16 --fp8-format hybrid --fp8-recipe delayed",
    "bf16_with_fp8_current_scaling_mixed": "--bf16 --fp8-format hybrid --fp8-recipe tensorwise",
    "bf16_with_mxfp8_mixed": "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8",
    "bf16_with_nvfp4_mixed": "--bf16 --fp4-format e2m1",
}


def read_bridge(
    text: str,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None,
    devices: int | None = None,
) -> Launch:
    """The run of a recipe's fields; see :func:`~.megatron_reader.read_megatron`.

    Parameters of the recipe's function have their defaults, unless ``settings`` tell them; these
    also tell other values that are not plain, by how they are written.

    Raises:
        InputError: the fields do not say enough.
    """
    fields = [(name, _told(value, settings)) for name, value in _fields(text)]
    words = ["pretrain.py", *(word for field in fields for word in _option(*field))]
    if _CHECKPOINT in text:
        words.append("--use-checkpoint-args")
    if not {"--bf16", "--fp16"} & set(words):  # a recipe that this one calls says it
        told = settings.get("mixed_precision", unknown(["mixed_precision"]))
        words += _PRECISIONS.get(told, f"--mixed-precision {told}").split()
    program = Started("pretrain.py", tuple(words[1:]), 0, 0)
    found = read_options(program, settings, source, model=model, devices=devices)
    packed = any("packed_sequence" in name for name, _ in fields)
    return replace(found, assumed=(*found.assumed, *(_PACKED,) * packed))


_CHECKPOINT = "from_hf_pretrained("
_PACKED = "packed sequences: attention is priced as if each were one sequence"


def _fields(text: str) -> Iterator[tuple[str, object]]:
    """Fields of the sections that count, with their values; in Python, as it is parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for name, value in re.findall(r"(?<!\S)([\w.]+)=(\S+)", text):
            yield name, _plain(value)
        return
    defaults = dict(_defaults(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield ast.unparse(node.targets[0]), _value(node.value, defaults)
        elif isinstance(node, ast.keyword) and node.arg:
            yield f"model.{node.arg}", _value(node.value, defaults)


def _defaults(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Parameters of functions with their defaults."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for one, value in zip(named, node.args.defaults, strict=True):
                yield one.arg, value
            for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if default is not None:
                    yield one.arg, default


@dataclass(frozen=True, slots=True)
class _Written:
    """A value that is not plain: how it is written, and what it is if nobody tells it."""

    text: str
    default: object = None


def _value(node: ast.expr, defaults: Mapping[str, ast.expr]) -> object:
    found = _plain(text := ast.unparse(node))
    if found != text:
        return found
    if isinstance(node, ast.Name) and node.id in defaults:
        return _Written(text, _plain(ast.unparse(defaults[node.id])))
    if isinstance(node, ast.Attribute) and (
        text.startswith("torch.") or (text.count(".") == 1 and text[:1].isupper())
    ):
        return node.attr  # a type, or a member of an enumeration
    return _Written(text, unknown([text]))


def _told(value: object, settings: Mapping[str, str]) -> object:
    """What a value is, with what is told of it."""
    if not isinstance(value, _Written):
        return value
    return _plain(settings[value.text]) if value.text in settings else value.default


def _plain(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _option(name: str, value: object) -> list[str]:
    """The option of Megatron-LM that a field is; none: it has no section that counts."""
    section, key = ["", "", *name.split(".")][-2:]
    if key == "mixed_precision" and str(value) in _PRECISIONS:
        return _PRECISIONS[str(value)].split()
    if section not in _SECTIONS or value is None or value is False:
        return []
    option = _RENAMED.get(f"{section}.{key}", f"--{key.replace('_', '-')}")
    if value is True:
        return [option]
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(one, dict | set) for one in values):
        return [option, unknown([name])]
    return [option, *map(str, values)]
