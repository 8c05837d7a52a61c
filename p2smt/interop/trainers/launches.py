"""Runs as files of any trainer start them, told by what they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from p2smt.errors import InputError
from p2smt.files.yaml_text import MAX_BYTES, read_text
from p2smt.interop.trainers import answer_reader, bridge_reader, megatron_reader, torchtitan_reader
from p2smt.interop.trainers.deepspeed import read_deepspeed
from p2smt.interop.trainers.launch import Launch
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.training.transformer import Transformer

Reader = Callable[..., Launch]
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""What scripts call their variables; other settings are options, fields and words of readers."""


def read_launch(
    text_or_path: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    model: Transformer | None = None,
    devices: int | None = None,
) -> Launch:
    """The run that a file, or a shell line, starts.

    Megatron-LM by its options, as a line or in a launch script; TorchTitan by its options or TOML;
    a configuration of DeepSpeed in JSON; fields of a recipe of Megatron-Bridge; a plan file of
    p2smt, or what its ``plan`` and ``estimate`` print as JSON.

    Args:
        text_or_path: the line, or the file's path.
        settings: what the file leaves open, by the names that errors ask for.
        model: what is trained, where the file does not say.
        devices: how many ranks start, where the file does not say.

    Raises:
        InputError: there is no such file, it is of no trainer, or it does not say enough.
    """
    is_line = "--" in text_or_path and " " in text_or_path
    if not is_line and not os.path.isfile(text_or_path):
        raise InputError(text_or_path[:60], "is no file", "give a launch script or configuration")
    most = MAX_PLAN_BYTES if text_or_path.endswith(".json") else MAX_BYTES
    text = text_or_path if is_line else read_text(text_or_path, "launch", most)
    source = "the command line" if is_line else text_or_path
    read = _reader(text)
    if read is None:
        rule = "is no launch of Megatron-LM, Megatron-Bridge, TorchTitan or DeepSpeed"
        remedy = "give the script with the options, TOML, JSON, a recipe, or an answer of p2smt"
        raise InputError(source, rule, remedy)
    found = read(text, settings, source, model=model, devices=devices)
    unknown = [name for name in settings if _VARIABLE.fullmatch(name) and name not in text]
    notes = (f"--set {name}: {source} has nothing of that name" for name in unknown)
    return replace(found, assumed=(*notes, *found.assumed))


def _reader(text: str) -> Reader | None:
    if text.lstrip().startswith("{"):
        return answer_reader.read_answer if answer_reader.MARK in text else read_deepspeed
    if any(mark in text for mark in (*torchtitan_reader.MARKS, *torchtitan_reader.FILES)):
        return torchtitan_reader.read_torchtitan
    if re.search(r"(?m)^\s*\[(parallelism|training)\]", text):
        return torchtitan_reader.read_torchtitan
    if any(mark in text for mark in megatron_reader.MARKS):
        return megatron_reader.read_megatron
    return bridge_reader.read_bridge if bridge_reader.MARK in text else None
