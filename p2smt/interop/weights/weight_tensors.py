"""Every weight of a decoder by its canonical name, with the role that rules of frameworks go by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from p2smt.errors import InputError
from p2smt.interop.weights.models import WeightModel
from p2smt.training.transformer import Attention, LatentAttention, LayerKind, Mlp
from p2smt.transfer.layouts import Tensor

BEFORE = -1
"""Where the embedding stands: before layer 0."""


class Role(Enum):
    """What a weight is to its layer; matrices have outputs as rows and inputs as columns.

    ``LATENT_HEADS`` are the matrices of MLA whose rows are of heads, ``OUTPUT`` has columns of
    heads.  ``WIDE`` are gate and up of an MLP, ``NARROW`` is down.
    """

    WHOLE = "whole"
    VOCABULARY = "vocabulary"
    QUERY = "query"
    KEY = "key"
    VALUE = "value"
    LATENT_HEADS = "latent heads"
    OUTPUT = "output"
    WIDE = "wide"
    NARROW = "narrow"
    SHARED_WIDE = "shared wide"
    SHARED_NARROW = "shared narrow"
    EXPERT_WIDE = "expert wide"
    EXPERT_NARROW = "expert narrow"


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight, its role, and where it stands.

    ``at``: the layers whose stages hold it, ``BEFORE`` for the first stage and the number of
    layers for the last; a tied embedding has both.  ``expert``: which expert it is of, or -1.
    """

    tensor: Tensor
    role: Role
    at: tuple[int, ...]
    expert: int = -1


@lru_cache(maxsize=4)
def weights_of(model: WeightModel) -> tuple[Weight, ...]:
    """All weights of a model: embedding, layers, norm and head.

    Raises:
        InputError: a layer is of a kind whose weights have no names here.
    """
    return tuple(_weights(model))


def _weights(model: WeightModel) -> Iterator[Weight]:
    sizes = model.sizes
    vocabulary, after = (sizes.vocab, sizes.hidden), sizes.layers
    ends = (BEFORE, after) if sizes.tied else (BEFORE,)
    yield Weight(Tensor("model.embed_tokens.weight", vocabulary), Role.VOCABULARY, ends)
    every = {kind: _layer(model, kind) for kind in dict.fromkeys(sizes.each_kind)}
    for layer, kind in enumerate(sizes.each_kind):
        before = f"model.layers.{layer}."
        for name, shape, role, expert in every[kind]:
            yield Weight(Tensor(before + name, shape), role, (layer,), expert)
    yield Weight(Tensor("model.norm.weight", (sizes.hidden,)), Role.WHOLE, (after,))
    if not sizes.tied:
        yield Weight(Tensor("lm_head.weight", vocabulary), Role.VOCABULARY, (after,))


_Named = tuple[str, tuple[int, ...], Role, int]
"""Name inside a layer, shape, role and expert."""


def _layer(model: WeightModel, kind: LayerKind) -> tuple[_Named, ...]:
    """The weights of a layer of a kind."""
    hidden = (model.sizes.hidden,)
    norms = ("input_layernorm.weight", "post_attention_layernorm.weight")
    return (
        *((name, hidden, Role.WHOLE, -1) for name in norms),
        *((f"self_attn.{name}", shape, role, -1) for name, shape, role in _attention(model, kind)),
        *_mlp(model, kind),
    )


def _attention(model: WeightModel, kind: LayerKind) -> Iterator[tuple[str, tuple[int, ...], Role]]:
    if kind.attention not in (Attention.FULL, Attention.WINDOW):
        rule = f"has layers of {kind.attention.value} where attention stands, packed or absent"
        raise InputError(f"model {model.sizes.name[:40]!r}", rule, "describe it by layout.json")
    sizes = model.sizes
    if sizes.mla:
        yield from _latent(model, sizes.mla)
        return
    rows = (("q", sizes.query_width, Role.QUERY), ("k", sizes.key_width, Role.KEY))
    for letter, width, role in (*rows, ("v", sizes.key_width, Role.VALUE)):
        yield f"{letter}_proj.weight", (width, sizes.hidden), role
        if model.query_bias:
            yield f"{letter}_proj.bias", (width,), role
    yield "o_proj.weight", (sizes.hidden, sizes.query_width), Role.OUTPUT
    if model.output_bias:
        yield "o_proj.bias", (sizes.hidden,), Role.WHOLE
    if model.family.head_norms:
        yield "q_norm.weight", (sizes.head_size,), Role.WHOLE
        yield "k_norm.weight", (sizes.head_size,), Role.WHOLE


def _latent(
    model: WeightModel, mla: LatentAttention
) -> Iterator[tuple[str, tuple[int, ...], Role]]:
    """Latent attention: what is common to all heads is whole, the rest has rows of heads."""
    hidden, heads = model.sizes.hidden, model.sizes.heads
    query = heads * (mla.nope + mla.rope)
    if mla.query_rank:
        yield "q_a_proj.weight", (mla.query_rank, hidden), Role.WHOLE
        yield "q_a_layernorm.weight", (mla.query_rank,), Role.WHOLE
        yield "q_b_proj.weight", (query, mla.query_rank), Role.LATENT_HEADS
    else:
        yield "q_proj.weight", (query, hidden), Role.LATENT_HEADS
    yield "kv_a_proj_with_mqa.weight", (mla.kv_rank + mla.rope, hidden), Role.WHOLE
    yield "kv_a_layernorm.weight", (mla.kv_rank,), Role.WHOLE
    both = heads * (mla.nope + mla.value)
    yield "kv_b_proj.weight", (both, mla.kv_rank), Role.LATENT_HEADS
    yield "o_proj.weight", (hidden, heads * mla.value), Role.OUTPUT


def _mlp(model: WeightModel, kind: LayerKind) -> Iterator[_Named]:
    sizes, family = model.sizes, model.family
    usual = ("gate_proj", "up_proj", "down_proj")
    if kind.mlp is not Mlp.EXPERTS or sizes.experts is None:
        yield from _matrices(model, "mlp", usual, sizes.ffn, (Role.WIDE, Role.NARROW))
        return
    experts = sizes.experts
    if experts.latent or experts.clamped or bool(family.shared) != bool(experts.shared_width):
        rule = "has experts (projected, with biases, or shared) that its family has no names for"
        raise InputError(f"model {sizes.name[:40]!r}", rule, "describe it by layout.json")
    yield f"{family.router}.weight", (experts.count, sizes.hidden), Role.WHOLE, -1
    if family.router_bias:
        yield family.router_bias, (experts.count,), Role.WHOLE, -1
    if family.shared:
        roles = (Role.SHARED_WIDE, Role.SHARED_NARROW)
        yield from _matrices(model, family.shared, usual, experts.shared_width, roles)
    if family.shared_gate:
        yield f"{family.shared_gate}.weight", (1, sizes.hidden), Role.WHOLE, -1
    roles = (Role.EXPERT_WIDE, Role.EXPERT_NARROW)
    for expert in range(experts.count):
        where = f"{family.experts}.{expert}"
        yield from _matrices(model, where, family.matrices, experts.width, roles, expert)


def _matrices(
    model: WeightModel,
    where: str,
    names: tuple[str, str, str],
    width: int,
    roles: tuple[Role, Role],
    expert: int = -1,
) -> Iterator[_Named]:
    """Gate, up and down of an MLP of a width."""
    hidden, (wide, narrow), (gate, up, down) = model.sizes.hidden, roles, names
    yield f"{where}.{gate}.weight", (width, hidden), wide, expert
    yield f"{where}.{up}.weight", (width, hidden), wide, expert
    yield f"{where}.{down}.weight", (hidden, width), narrow, expert
