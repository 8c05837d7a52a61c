"""The models that TorchTitan has configurations for, told by their sizes.

Source: as of :mod:`p2smt.interop.trainers.torchtitan`, ``torchtitan/models/{llama3,qwen3,
deepseek_v3,gpt_oss}/config_registry.py`` and ``__init__.py``; those that compute in bf16.
``llama3_405b`` computes in float8, so it is none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.training.strategy import Strategy
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mlp,
    Transformer,
)

_LLAMA, _QWEN, _DEEPSEEK = 131072, 40960, 16384
_GPT_OSS = 131072


@dataclass(frozen=True, slots=True)
class TitanModel:
    """A configuration: what ``--module`` and ``--config`` name, and its longest sequence.

    ``flex``: its attention is FlexAttention, which cp can cut.
    """

    module: str
    config: str
    most_tokens: int
    flex: bool = True


_ModelShape = tuple[object, ...]


def _shape(model: Transformer) -> _ModelShape:
    """All that tells models apart; those of latent attention have no size of a head."""
    sizes = (model.layers, model.hidden, model.heads, model.kv_heads, model.ffn, model.vocab)
    parts = (model.experts, model.mla, model.window, model.mtp)
    return (*sizes, 0 if model.mla else model.head_size, model.tied, *parts, model.each_kind)


def _dense(*sizes: int, tied: bool = False) -> Transformer:
    layers, hidden, heads, ffn, vocab = sizes
    return Transformer("", layers, hidden, heads, 8, ffn, True, vocab, 128, tied)


def _latent(*sizes: int, experts: Experts, query_rank: int, dense: int) -> Transformer:
    """Layers whose first are dense."""
    layers, hidden, heads, ffn, vocab = sizes
    order = (LayerRun(dense, (LayerKind(),)), LayerRun(layers - dense, (_EXPERTS,)))
    mla = LatentAttention(512, 128, 64, 128, query_rank)
    dims = ("", layers, hidden, heads, heads, ffn, True, vocab, 1)
    return Transformer(*dims, experts=experts, mla=mla, order=order)


def _gpt_oss(layers: int, experts: int) -> Transformer:
    """Every second layer sees a window, the first among them."""
    order = (LayerRun(layers // 2, (LayerKind(Attention.WINDOW, Mlp.EXPERTS), _EXPERTS)),)
    sizes = ("", layers, 2880, 64, 8, 0, True, 201088, 64)
    one = Experts(experts, 4, 2880, clamped=True)
    return Transformer(*sizes, experts=one, window=128, order=order)


_EXPERTS = LayerKind(mlp=Mlp.EXPERTS)
_KNOWN: dict[_ModelShape, TitanModel] = {
    _shape(_dense(32, 4096, 32, 14336, 128256)): TitanModel("llama3", "llama3_8b", _LLAMA),
    _shape(_dense(80, 8192, 64, 28672, 128256)): TitanModel("llama3", "llama3_70b", _LLAMA),
    _shape(_dense(28, 1024, 16, 3072, 151936, tied=True)): TitanModel("qwen3", "qwen3_0_6b", _QWEN),
    _shape(_dense(28, 2048, 16, 6144, 151936, tied=True)): TitanModel("qwen3", "qwen3_1_7b", _QWEN),
    _shape(_dense(40, 5120, 40, 17408, 151936)): TitanModel("qwen3", "qwen3_14b", _QWEN),
    _shape(_dense(64, 5120, 64, 25600, 151936)): TitanModel("qwen3", "qwen3_32b", _QWEN),
    _shape(
        Transformer("", 48, 2048, 32, 4, 0, True, 151936, 128, experts=Experts(128, 8, 768))
    ): TitanModel("qwen3", "qwen3_30b_a3b", _QWEN),
    _shape(
        _latent(
            *(27, 2048, 16, 10944, 102400),
            experts=Experts(64, 6, 1408, 2 * 1408),
            query_rank=0,
            dense=1,
        )
    ): TitanModel("deepseek_v3", "deepseek_v3_16b", _DEEPSEEK),
    _shape(
        _latent(
            *(61, 7168, 128, 18432, 129280),
            experts=Experts(256, 8, 2048, 2048, groups=8, top_groups=4),
            query_rank=1536,
            dense=3,
        )
    ): TitanModel("deepseek_v3", "deepseek_v3_671b", _DEEPSEEK),
    _shape(_gpt_oss(24, 32)): TitanModel("gpt_oss", "gpt_oss_20b", _GPT_OSS, flex=False),
    _shape(_gpt_oss(36, 128)): TitanModel("gpt_oss", "gpt_oss_120b", _GPT_OSS, flex=False),
}


def titan_model(model: Transformer, strategy: Strategy) -> TitanModel | None:
    """The configuration that has these sizes and runs the strategy, if there is one.

    A configuration names its dispatcher and its kind of attention, which no option changes.
    """
    if strategy.dispatcher == "flex":
        return None
    found = _KNOWN.get(_shape(model))
    return None if found is not None and strategy.cp > 1 and not found.flex else found


def model_text(model: Transformer) -> str:
    """The sizes of a model in words, those of its kinds among them."""
    text = f"{model.layers} layers, hidden {model.hidden}, {model.heads} heads"
    text += f", {model.kv_heads} kv_heads, ffn {model.ffn}, vocabulary {model.vocab}"
    if model.experts:
        text += f", {model.experts.active} of {model.experts.count} experts"
        text += f" of width {model.experts.width}"
    if model.mla:
        text += ", latent attention"
    if model.window:
        text += f", windows of {model.window}"
    return text + (f", {model.mtp} layers of MTP" if model.mtp else "")
