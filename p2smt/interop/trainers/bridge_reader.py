"""Megatron-Bridge: the run that fields of a recipe tell.

A recipe is a Python file whose fields are assigned, or a command line that sets them:
``cfg.model.tensor_model_parallel_size = 4``, ``model.tensor_model_parallel_size=4``.  Its fields
are options of Megatron-LM with underscores, so these are read.

Source: NVIDIA-NeMo/Megatron-Bridge, ``src/megatron/bridge/training/config.py``.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping

from p2smt.errors import InputError
from p2smt.interop.trainers.launch import Launch
from p2smt.interop.trainers.megatron_reader import read_megatron
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

    Raises:
        InputError: a field that counts has no plain value, or the fields do not say enough.
    """
    words = [
        "pretrain.py",
        *(word for name, value in _fields(text) for word in _option(name, value)),
    ]
    return read_megatron(shlex.join(words), settings, source, model=model, devices=devices)


def _fields(text: str) -> Iterator[tuple[str, object]]:
    """Fields of the sections that count, with their values; in Python, as it is parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for name, value in re.findall(r"(?<!\S)([\w.]+)=(\S+)", text):
            yield name, _plain(value)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield ast.unparse(node.targets[0]), _plain(ast.unparse(node.value))
        elif isinstance(node, ast.keyword) and node.arg:
            yield f"model.{node.arg}", _plain(ast.unparse(node.value))


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
        raise InputError(f"field {name[:60]}", "has no plain value")
    return [option, *map(str, values)]
