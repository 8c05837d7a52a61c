"""Models of a few thousand elements, of each kind that there are rules for."""

from __future__ import annotations

from dataclasses import replace

from p2smt.interop.weights.models import WEIGHT_FAMILIES, WeightModel
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mlp,
    Transformer,
)

DENSE = Transformer(
    name="tiny",
    layers=4,
    hidden=6,
    heads=8,
    kv_heads=2,
    ffn=16,
    gated=True,
    vocab=70,
    head_size=2,
)
LAYERS_AFTER = (
    LayerRun(1, (LayerKind(Attention.FULL, Mlp.DENSE),)),
    LayerRun(3, (LayerKind(Attention.FULL, Mlp.EXPERTS),)),
)


def weight_model(kind: str, sizes: Transformer, output_bias: bool = False) -> WeightModel:
    family = WEIGHT_FAMILIES[kind]
    return WeightModel(sizes, family, family.query_bias or output_bias, output_bias)


def mixture(count: int = 8, shared: int = 0) -> Transformer:
    return replace(DENSE, ffn=0, experts=Experts(count, 2, 8, shared_width=shared))


def latent(rank: int) -> Transformer:
    return replace(
        DENSE,
        kv_heads=8,
        mla=LatentAttention(kv_rank=3, nope=2, rope=1, value=2, query_rank=rank),
        experts=Experts(8, 2, 8, shared_width=8),
        order=LAYERS_AFTER,
    )


LLAMA = weight_model("llama", DENSE)
TIED = weight_model("llama", replace(DENSE, tied=True), output_bias=True)
QWEN_2 = weight_model("qwen2", replace(DENSE, kv_heads=4))
QWEN_3_MOE = weight_model("qwen3_moe", mixture())
QWEN_2_MOE = weight_model("qwen2_moe", mixture(shared=8))
MIXTRAL = weight_model("mixtral", mixture(count=6))
DEEPSEEK_2 = weight_model("deepseek_v2", latent(0))
DEEPSEEK_3 = weight_model("deepseek_v3", latent(5))
TINY = {
    "llama": LLAMA,
    "tied": TIED,
    "qwen2": QWEN_2,
    "qwen3_moe": QWEN_3_MOE,
    "qwen2_moe": QWEN_2_MOE,
    "mixtral": MIXTRAL,
    "deepseek_v2": DEEPSEEK_2,
    "deepseek_v3": DEEPSEEK_3,
}
