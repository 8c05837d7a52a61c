"""Layers on pipeline stages: even, uneven at the ends, interleaved, by list or layout string.

Read in NVIDIA/Megatron-LM d98e8a64, ``megatron/core/transformer/``: ``transformer_block.py`` 76-203
(``get_num_layers_to_build``), ``transformer_layer.py`` 65-219 (``get_transformer_layer_offset``),
``pipeline_parallel_layer_layout.py`` 48-55 and 283-321 (row v * pp + s of a layout string is
chunk v of stage s); ``get_pp_indices`` of vLLM 0.11.0, ``vllm/distributed/utils.py`` 89-134, and of
SGLang 0.5.5, ``sglang/srt/distributed/utils.py`` 63-93.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.weight_tensors import BEFORE

StageOf = Mapping[int, int]
"""The stage of each layer; ``BEFORE`` and the number of layers are the two ends."""

_MOST_UNROLLED = 10**5
"""Letters of a layout string, unrolled: more than any model has layers."""
_PRODUCTS = (re.compile(r"\(([^()]+)\)\*(\d{1,5})"), re.compile(r"([A-Za-z|])\*(\d{1,5})"))


def in_order(sizes: Sequence[int], chunks: int = 1) -> StageOf:
    """StageOf of these sizes, each in so many chunks: layers go to chunk 0 of all, then to 1."""
    per_chunk = [size // chunks for _ in range(chunks) for size in sizes]
    stages = [stage % len(sizes) for stage, many in enumerate(per_chunk) for _ in range(many)]
    return {BEFORE: 0, **dict(enumerate(stages)), len(stages): len(sizes) - 1}


def megatron_stages(given: WeightsText, layers: int) -> StageOf:
    """As Megatron-LM places them: ``pp``, ``vpp``, ``first``, ``last`` or ``layout``.

    Raises:
        InputError: layers do not divide, or the layout string is not Megatron's or of this model.
    """
    pp, vpp = given.degree("pp"), given.degree("vpp")
    if "layout" in given.values:
        other = next((key for key in ("vpp", "first", "last") if key in given.values), "")
        if other:
            raise given.error(other, "is said by layout already", "leave it out")
        return _by_string(given, pp, layers)
    sizes = _uneven(given, pp, layers)
    for size in sizes:
        given.divides(vpp, size, "the layers of a stage", "vpp")
    return in_order(sizes, vpp)


def _uneven(given: WeightsText, pp: int, layers: int) -> list[int]:
    """Layers of each stage where the first or the last may have a number of its own."""
    ends = {
        stage: given.degree(key)
        for key, stage in (("first", 0), ("last", pp - 1))
        if key in given.values
    }
    if ends and pp == 1:
        raise given.error("first, last", "are of a pipeline", "give pp=2 or more")
    middle, left = layers - sum(ends.values()), pp - len(ends)
    if middle < 0 or (middle and not left) or (left and middle % left):
        rule = f"{middle} layers do not divide by the {left} stages that they are left for"
        remedy = "give first=, last=, or layout= as --pipeline-model-parallel-layout"
        raise given.error(f"pp={pp}, a model of {layers} layers", rule, remedy)
    each = middle // left if left else 0
    return [ends.get(stage, each) for stage in range(pp)]


def _by_string(given: WeightsText, pp: int, layers: int) -> StageOf:
    """As Megatron's layout string says, whose commas (cosmetic there) are left out here."""
    text = given.values["layout"]
    rows = _unrolled(given, text).split("|")
    shown = f"layout={text[:60]}"
    letters = "".join(rows)
    if "m" in letters:
        raise given.error(shown, "m: layers of multi-token prediction have no rules here")
    if not rows[0].startswith("E") or not rows[-1].endswith("L") or set(letters[1:-1]) - {"t"}:
        rule = "must begin with E, end with L and have t between, with | between stages"
        raise given.error(shown, rule, "write it as Megatron does, without commas: Ettt|(tt|)*29tL")
    if len(rows) % pp:
        raise given.error(shown, f"has {len(rows)} stages, no multiple of pp={pp}")
    found = [at % pp for at, row in enumerate(rows) for letter in row if letter == "t"]
    if len(found) != layers:
        raise given.error(shown, f"has {len(found)} layers, and the model {layers}")
    return {BEFORE: 0, **dict(enumerate(found)), layers: pp - 1}


def _unrolled(given: WeightsText, text: str) -> str:
    """``(tt|)*3`` and ``t*3`` written out."""
    for pattern in _PRODUCTS:
        long = sum(len(one[1]) * int(one[2]) for one in pattern.finditer(text))
        if long > _MOST_UNROLLED:
            raise given.error(f"layout={text[:60]}", f"has more than {_MOST_UNROLLED} layers")
        text = pattern.sub(lambda one: one[1] * int(one[2]), text)
    return text


def listed_stages(given: WeightsText, layers: int, otherwise: Sequence[int]) -> StageOf:
    """By ``layers=24/24/23/23`` (what ``VLLM_PP_LAYER_PARTITION`` says), else as given.

    Raises:
        InputError: the list is of another number of stages or layers.
    """
    if "layers" not in given.values:
        return in_order(otherwise)
    text, pp = given.values["layers"], len(otherwise)
    parts = text.split("/")
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise given.error(f"layers={text[:40]}", "must be numbers", "write layers=24/24/23/23")
    sizes = [int(part) for part in parts]
    if len(sizes) != pp or sum(sizes) != layers:
        rule = f"must be {pp} numbers (pp) whose sum is the model's {layers} layers"
        raise given.error(f"layers={text[:40]}", rule)
    return in_order(sizes)


def vllm_sizes(layers: int, pp: int) -> list[int]:
    """vLLM: what does not divide goes one each to the stages before the last, from behind."""
    each, more = divmod(layers, pp)
    return [each + (pp - 1 - more <= stage < pp - 1) for stage in range(pp)]


def sglang_sizes(layers: int, pp: int) -> list[int]:
    """SGLang: what does not divide goes to the last stage."""
    each, more = divmod(layers, pp)
    return [*([each] * (pp - 1)), each + more]
