"""Megatron-LM: the options of its command line that say what a model is.

A model whose layers are all attention and MLP is its GPT; one with Mamba layers, or layers of one
of the two alone, its hybrid, whose layers are letters of a pattern.

Source: as of :mod:`p2smt.interop.trainers.megatron`, and ``megatron/core/models/hybrid/
hybrid_layer_allocation.py``, ``megatron/core/transformer/utils.py`` (windows).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import Strategy
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    Mamba,
    Mlp,
    Transformer,
)

_LETTERS = {Attention.FULL: "*", Attention.MAMBA: "M", Mlp.DENSE: "-", Mlp.EXPERTS: "E"}
_LATENT = "+"


def is_hybrid(model: Transformer) -> bool:
    """Whether Megatron builds the model from a pattern of layers of one part each."""
    return any(
        kind.attention in (Attention.MAMBA, Attention.NONE) or kind.mlp is Mlp.NONE
        for kind in model.kinds()
    )


def dense_layers(model: Transformer) -> bool:
    """Whether a layer has a dense MLP."""
    return any(kind.mlp is Mlp.DENSE for kind in model.kinds())


def model_options(model: Transformer, strategy: Strategy) -> Iterator[str]:
    """The model; its vocabulary padded to what tp divides, else Megatron pads it to more."""
    if is_hybrid(model):
        yield f"--hybrid-layer-pattern {shlex.quote(hybrid_pattern(model, strategy))}"
    else:
        yield f"--num-layers {model.layers}"
    yield f"--hidden-size {model.hidden}"
    if dense_layers(model):
        yield f"--ffn-hidden-size {model.ffn}"
    yield f"--num-attention-heads {model.heads}"
    yield f"--kv-channels {model.head_size}"
    if model.mla:
        yield from _latent(model.mla)
    elif model.kv_heads != model.heads:
        yield "--group-query-attention"
        yield f"--num-query-groups {model.kv_heads}"
    if model.gated:
        yield "--quick-geglu" if model.experts and model.experts.clamped else "--swiglu"
    if not model.tied:
        yield "--untie-embeddings-and-output-weights"
    yield f"--padded-vocab-size {-(-model.vocab // strategy.tp) * strategy.tp}"
    yield from _windows(model)
    if model.mamba:
        yield from _mamba(model.mamba)
    if model.experts:
        yield from _experts(model, model.experts)
    if model.mla or model.mtp:
        yield "--position-embedding-type rope"
    if model.mtp and not is_hybrid(model):
        yield f"--mtp-num-layers {model.mtp}"


def _latent(mla: LatentAttention) -> Iterator[str]:
    yield "--multi-latent-attention"
    if mla.query_rank:
        yield f"--q-lora-rank {mla.query_rank}"
    yield f"--kv-lora-rank {mla.kv_rank}"
    yield f"--qk-head-dim {mla.nope}"
    yield f"--qk-pos-emb-head-dim {mla.rope}"
    yield f"--v-head-dim {mla.value}"


def _windows(model: Transformer) -> Iterator[str]:
    """A window has the tokens before one's own: one less than those that it sees."""
    if not model.window:
        return
    yield f"--window-size {model.window - 1},0"
    if any(kind.attention is not Attention.WINDOW for kind in model.kinds()):
        pattern = _numbers(model, lambda kind: kind.attention is Attention.WINDOW)
        yield f"--window-attn-skip-freq {shlex.quote(pattern)}"


def _mamba(mamba: Mamba) -> Iterator[str]:
    yield f"--mamba-num-heads {mamba.heads}"
    yield f"--mamba-head-dim {mamba.head_size}"
    yield f"--mamba-num-groups {mamba.groups}"
    yield f"--mamba-state-dim {mamba.state}"


def _experts(model: Transformer, experts: Experts) -> Iterator[str]:
    yield f"--num-experts {experts.count}"
    yield f"--moe-router-topk {experts.active}"
    if experts.active == 1:  # its gradient vanishes behind the choice
        yield "--moe-router-pre-softmax"
    yield f"--moe-ffn-hidden-size {experts.width}"
    if experts.shared_width:
        yield f"--moe-shared-expert-intermediate-size {experts.shared_width}"
    if dense_layers(model) and not is_hybrid(model):
        pattern = _numbers(model, lambda kind: kind.mlp is Mlp.EXPERTS)
        yield f"--moe-layer-freq {shlex.quote(pattern)}"
    if experts.top_groups:
        yield f"--moe-router-num-groups {experts.groups}"
        yield f"--moe-router-group-topk {experts.top_groups}"
    if experts.latent:
        yield f"--moe-latent-size {experts.latent}"
    yield "--moe-router-dtype fp32"
    yield "--moe-grouped-gemm"
    if not experts.clamped:
        yield "--disable-bias-linear"


def _numbers(model: Transformer, holds: Callable[[LayerKind], bool]) -> str:
    """A list in Python with 1 for each layer for which it holds, else 0: ``([0]*3+[1]*58)``."""
    parts: list[tuple[list[int], int]] = []
    for run in model.runs:
        each, times = [int(holds(kind)) for kind in run.kinds], run.repeat
        if len(set(each)) == 1:
            each, times = each[:1], run.layers
        if parts and parts[-1][0] == each:
            times += parts.pop()[1]
        parts.append((each, times))
    texts = (f"[{','.join(map(str, each))}]" + f"*{times}" * (times > 1) for each, times in parts)
    return f"({'+'.join(texts)})"


def hybrid_pattern(model: Transformer, strategy: Strategy) -> str:
    """The layers as letters, chunks apart by ``|``, those of later tokens behind ``/``."""
    every = [_letter(model, kind) for kind in model.each_kind]
    chunks, at = [], 0
    for count in chunk_layers(model.layers, strategy, model.mtp):
        chunks.append("".join(every[at : at + count]))
        at += count
    return "/".join(["|".join(chunks), *[every[-1]] * model.mtp])


def _letter(model: Transformer, kind: LayerKind) -> str:
    """The letters of a layer: of its attention and of its MLP, those that it has."""
    attention = _LETTERS.get(kind.attention, "")
    if kind.attention is Attention.FULL and model.mla:
        attention = _LATENT
    return attention + _LETTERS.get(kind.mlp, "")
