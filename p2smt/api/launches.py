"""The public function on runs as their own files start them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from p2smt.interop.trainers.launch import Launch
from p2smt.interop.trainers.launches import read_launch
from p2smt.training.transformer import Transformer

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


def launch(
    line_or_path: StrPath,
    settings: Mapping[str, str] | None = None,
    model: Transformer | None = None,
    devices: int | None = None,
) -> Launch:
    """The run that a launch script or configuration starts; nothing in it is executed.

    Args:
        line_or_path: options of Megatron-LM or TorchTitan as a shell line or in a script, TOML of
            TorchTitan, a configuration of DeepSpeed, or fields of a recipe of Megatron-Bridge.
        settings: what the file leaves open, by the names that errors ask for.
        model: what is trained, where the file does not say.
        devices: how many ranks start, where the file does not say.

    Raises:
        InputError: there is no such file, it is of no trainer known here, or it does not say
            enough: all that is missing is named.
    """
    return read_launch(os.fspath(line_or_path), settings or {}, model=model, devices=devices)
