"""A layout by its text: the table of frameworks, or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from p2smt.errors import InputError, did_you_mean
from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.megatron import MEGATRON_OPTIONS, STILL, megatron_layout
from p2smt.interop.weights.meshes import (
    FSDP_OPTIONS,
    HSDP_OPTIONS,
    dtensor_layout,
    fsdp_layout,
    jax_layout,
)
from p2smt.interop.weights.models import WeightModel, read_weight_model
from p2smt.interop.weights.serving import (
    SGLANG_OPTIONS,
    VLLM_OPTIONS,
    sglang_layout,
    vllm_layout,
)
from p2smt.transfer.layout_file import read_layout_file
from p2smt.transfer.layouts import WeightLayout

FILE = ".json"


@dataclass(frozen=True, slots=True)
class LayoutFramework:
    """A framework whose layouts are known by its options; ``passed``: those that move no weight."""

    options: Sequence[str]
    passed: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    layout: Callable[[WeightsText, WeightModel], WeightLayout]


FRAMEWORKS: Mapping[str, LayoutFramework] = {
    "megatron": LayoutFramework(MEGATRON_OPTIONS, megatron_layout, passed=STILL),
    "fsdp": LayoutFramework(FSDP_OPTIONS, fsdp_layout),
    "hsdp": LayoutFramework(HSDP_OPTIONS, fsdp_layout),
    "vllm": LayoutFramework(VLLM_OPTIONS, vllm_layout),
    "sglang": LayoutFramework(SGLANG_OPTIONS, sglang_layout),
}
MESHES: Mapping[str, Callable[[str, WeightModel], WeightLayout]] = {
    "dtensor": dtensor_layout,
    "jax": jax_layout,
}
"""Those whose text is a mesh and a layout on it."""


def layout_of(text: str, model: str = "") -> WeightLayout:
    """Who holds which box of which tensor, by ``megatron:tp=8,..``, ``vllm:..`` or a file.

    ``model``: the name of a model, or its ``config.json``; a file needs none.

    Raises:
        InputError: the framework or an option is unknown, a degree does not divide what it cuts,
            there are no rules for what is asked, or the model is none whose weights have names.
    """
    framework = text.partition(":")[0].strip()
    if framework not in (*FRAMEWORKS, *MESHES):
        return _of_file(text)
    if not model:
        rule = "needs a model, whose weights it lays out"
        raise InputError(f"layout {text[:80]!r}", rule, "give --model NAME or config.json")
    weights = read_weight_model(model)
    if framework in MESHES:
        return MESHES[framework](text, weights)
    found = FRAMEWORKS[framework]
    return found.layout(WeightsText.parse(text, found.options, found.passed), weights)


def _of_file(text: str) -> WeightLayout:
    if text.endswith(FILE):
        return read_layout_file(text)
    known = (*FRAMEWORKS, *MESHES)
    rule = f"is of no known framework ({', '.join(known)}) and no {FILE} file"
    remedy = did_you_mean(text.partition(":")[0], known, 0.7) or "write megatron:tp=8,pp=4,dp=2"
    raise InputError(f"layout {text[:80]!r}", rule, remedy)
