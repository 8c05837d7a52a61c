"""What each rank stores, element by element: frameworks' own steps, done on numbered elements.

Every element of every weight has a number of its own.  Here the matrices are put together and cut
as a framework's modules and loaders do it for one rank after the other, on whole arrays; layouts
speak of boxes by rules instead, and both must name the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from p2smt.interop.weights.models import WeightModel
from p2smt.interop.weights.weight_tensors import weights_of
from p2smt.training.transformer import Mlp
from p2smt.transfer.layouts import WeightLayout

Ids = NDArray[np.int64]
Full = Mapping[str, Ids]
Stored = list[set[int]]
"""Of each rank the numbers of the elements that it stores."""


def numbered(model: WeightModel) -> dict[str, Ids]:
    """Every weight with the numbers of its elements."""
    full, first = {}, 0
    for weight in weights_of(model):
        size = int(np.prod(weight.tensor.shape))
        full[weight.tensor.name] = np.arange(first, first + size).reshape(weight.tensor.shape)
        first += size
    return full


def held(layout: WeightLayout, full: Full) -> Stored:
    """What a layout says that each device holds; an element twice on a device fails."""
    found: Stored = [set() for _ in range(layout.devices)]
    for name, shards in layout.shards.items():
        for box, devices in shards.boxes:
            ids = full[name][tuple(slice(*span) for span in box)].ravel().tolist()
            for device in devices:
                assert not found[device] & set(ids)
                found[device].update(ids)
    return found


def _stored(parts: Iterator[tuple[int, Ids]], ranks: int) -> Stored:
    found: Stored = [set() for _ in range(ranks)]
    for rank, ids in parts:
        found[rank].update(int(one) for one in ids.ravel() if one >= 0)
    return found


def _under(full: Full, prefix: str) -> dict[str, Ids]:
    return {name.removeprefix(prefix): ids for name, ids in full.items() if name.startswith(prefix)}


def _padded(ids: Ids, multiple: int) -> Ids:
    rows = -len(ids) % multiple
    return np.concatenate([ids, np.full((rows, *ids.shape[1:]), -1)])


def _expert_parts(layer: Mapping[str, Ids], model: WeightModel, expert: int) -> list[Ids]:
    where = f"{model.family.experts}.{expert}."
    return [layer[f"{where}{name}.weight"] for name in model.family.matrices]


# Megatron-LM.


def megatron(
    model: WeightModel,
    tp: int = 1,
    cp: int = 1,
    dp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int = 1,
    chunks: Sequence[Sequence[int]] = (),
    pad: int = 128,
    pp_before_dp: bool = False,
) -> Stored:
    """``chunks``: the layers of each stage."""
    full = numbered(model)
    ranks = tp * cp * dp * pp
    edp = ranks // pp // (etp * ep)

    def parts() -> Iterator[tuple[int, Ids]]:
        for rank, t, p in _in_order(tp, cp, dp, pp, pp_before_dp):
            for ids in _megatron_dense(full, model, t, tp, p, pp, chunks[p], pad):
                yield rank, ids
        if model.sizes.experts:
            local = model.sizes.experts.count // ep
            for rank, place, p in _in_order(etp * ep, 1, edp, pp, pp_before_dp):
                e, t = place // etp, place % etp
                for layer in chunks[p]:
                    for expert in range(e * local, (e + 1) * local):
                        yield from _megatron_expert(full, model, layer, expert, rank, t, etp)

    return _stored(parts(), ranks)


def _in_order(
    tp: int, cp: int, dp: int, pp: int, pp_before_dp: bool
) -> Iterator[tuple[int, int, int]]:
    """Rank, tensor rank and stage, by loops of which the innermost is the fastest."""
    rank = 0
    for slow in range(pp if not pp_before_dp else dp):
        for middle in range(dp if not pp_before_dp else pp):
            for _ in range(cp):
                for t in range(tp):
                    yield rank, t, middle if pp_before_dp else slow
                    rank += 1


def _megatron_dense(
    full: Full,
    model: WeightModel,
    t: int,
    tp: int,
    p: int,
    pp: int,
    layers: Sequence[int],
    pad: int,
) -> Iterator[Ids]:
    embedding, head = full["model.embed_tokens.weight"], full.get("lm_head.weight")
    if p == 0:
        yield np.split(_padded(embedding, pad * tp), tp)[t]
    if p == pp - 1:
        yield np.split(_padded(embedding if head is None else head, pad * tp), tp)[t]
        yield full["model.norm.weight"]
    for at in layers:
        layer = _under(full, f"model.layers.{at}.")
        kind = model.sizes.each_kind[at]
        yield from _norms(layer)
        yield from _megatron_attention(layer, model, t, tp)
        for where in ["mlp"] if kind.mlp is Mlp.DENSE else [model.family.shared]:
            if where:
                yield from _gated(layer, where, t, tp)


def _norms(layer: Mapping[str, Ids]) -> Iterator[Ids]:
    """What every rank of a stage has whole."""
    for name, ids in layer.items():
        last = name.rpartition(".")[0].rpartition(".")[2]
        common = last in ("gate", "shared_expert_gate", "q_a_proj", "kv_a_proj_with_mqa")
        if "norm" in last or common or name.endswith(("e_score_correction_bias", "o_proj.bias")):
            yield ids


def _gated(layer: Mapping[str, Ids], where: str, t: int, tp: int) -> Iterator[Ids]:
    for name in ("gate_proj", "up_proj"):
        yield np.split(layer[f"{where}.{name}.weight"], tp)[t]
    yield np.split(layer[f"{where}.down_proj.weight"], tp, axis=1)[t]


def _megatron_attention(
    layer: Mapping[str, Ids], model: WeightModel, t: int, tp: int
) -> Iterator[Ids]:
    yield np.split(layer["self_attn.o_proj.weight"], tp, axis=1)[t]
    if model.sizes.mla:
        yield from _latent_heads(layer, t, tp)
        return
    for kind in ("weight", "bias"):
        if f"self_attn.q_proj.{kind}" not in layer:
            continue
        q, k, v = (
            np.split(layer[f"self_attn.{letter}_proj.{kind}"], model.sizes.kv_heads)
            for letter in "qkv"
        )
        stored = np.concatenate([one for group in zip(q, k, v, strict=True) for one in group])
        yield np.split(stored, tp)[t]


def _latent_heads(layer: Mapping[str, Ids], t: int, tp: int) -> Iterator[Ids]:
    for name in ("q_proj", "q_b_proj", "kv_b_proj"):
        if f"self_attn.{name}.weight" in layer:
            yield np.split(layer[f"self_attn.{name}.weight"], tp)[t]


def _megatron_expert(
    full: Full, model: WeightModel, layer: int, expert: int, rank: int, t: int, etp: int
) -> Iterator[tuple[int, Ids]]:
    if model.sizes.each_kind[layer].mlp is not Mlp.EXPERTS:
        return
    gate, up, down = _expert_parts(_under(full, f"model.layers.{layer}."), model, expert)
    yield rank, np.split(gate, etp)[t]
    yield rank, np.split(up, etp)[t]
    yield rank, np.split(down, etp, axis=1)[t]


def megatron_chunks(
    layers: int, pp: int, vpp: int = 1, first: int | None = None, last: int | None = None
) -> list[list[int]]:
    """The layers of each stage, by the offset of each of its virtual chunks."""
    middle = layers - (first or 0) - (last or 0)
    stages = pp - (first is not None) - (last is not None)
    each = middle // stages if stages else 0
    found = []
    for p in range(pp):
        mine = each
        mine = first if p == 0 and first is not None else mine
        mine = last if p == pp - 1 and last is not None else mine
        before = (first // vpp if first is not None else each // vpp) if p else 0
        before += each // vpp * max(p - 1, 0)
        total = ((first or 0) + (last or 0) + each * stages) // vpp
        starts = [v * total + before for v in range(vpp)]
        found.append([at for start in starts for at in range(start, start + mine // vpp)])
    return found


# vLLM.


def vllm(
    model: WeightModel,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    engines: int = 1,
    expert_parallel: bool = False,
    pad: int = 64,
) -> Stored:
    """Every rank loads the whole file, and takes its part."""
    full = numbered(model)
    ranks = np.arange(engines * dp * pp * tp).reshape(engines, dp, pp, tp)
    groups = ranks.transpose(0, 2, 1, 3).reshape(-1, dp * tp)
    partitions = [model.sizes.layers // pp] * pp
    for i in range(2, model.sizes.layers % pp + 2):
        partitions[-i] += 1

    def parts() -> Iterator[tuple[int, Ids]]:
        for (_, _, p, t), rank in np.ndenumerate(ranks):
            begin = sum(partitions[:p])
            span = range(begin, begin + partitions[p])
            both = expert_parallel and tp > 1 and dp > 1
            shared_tp = 1 if both and "shared_experts" in model.family.shared else tp
            for ids in _served(full, model, t, tp, p, pp, span, pad, shared_tp):
                yield int(rank), ids
        if not model.sizes.experts:
            return
        for group in groups:
            for place, rank in enumerate(group):
                p = int(np.argwhere(ranks == rank)[0][2])
                begin = sum(partitions[:p])
                for layer in range(begin, begin + partitions[p]):
                    for ids in _vllm_experts(
                        full, model, layer, place, len(group), expert_parallel
                    ):
                        yield int(rank), ids

    return _stored(parts(), ranks.size)


def _vllm_experts(
    full: Full, model: WeightModel, layer: int, place: int, size: int, expert_parallel: bool
) -> Iterator[Ids]:
    if model.sizes.each_kind[layer].mlp is not Mlp.EXPERTS:
        return
    assert model.sizes.experts
    count = model.sizes.experts.count
    mine = set(range(count))
    if expert_parallel and size > 1:
        base, remainder = divmod(count, size)
        start = place * base + min(place, remainder)
        mine = set(range(start, start + base + (place < remainder)))
        place, size = 0, 1
    for expert in mine:
        gate, up, down = _expert_parts(_under(full, f"model.layers.{layer}."), model, expert)
        width = len(gate) // size
        rows = slice(width * place, width * place + width)
        yield gate[rows]
        yield up[rows]
        yield down[:, rows]


def _served(
    full: Full,
    model: WeightModel,
    t: int,
    tp: int,
    p: int,
    pp: int,
    layers: Sequence[int],
    pad: int,
    shared_tp: int,
) -> Iterator[Ids]:
    """The dense part of a rank in vLLM and SGLang."""
    embedding, head = full["model.embed_tokens.weight"], full.get("lm_head.weight")
    if p == 0:
        yield np.split(_padded(embedding, pad), tp)[t]
    if p == pp - 1:
        yield np.split(_padded(embedding if head is None else head, pad), tp)[t]
        yield full["model.norm.weight"]
    for at in layers:
        layer = _under(full, f"model.layers.{at}.")
        yield from _norms(layer)
        yield from _served_attention(layer, model, t, tp)
        if model.sizes.each_kind[at].mlp is Mlp.DENSE:
            yield from _gated(layer, "mlp", t, tp)
        elif model.family.shared:
            yield from _gated(layer, model.family.shared, t % shared_tp, shared_tp)


def _served_attention(
    layer: Mapping[str, Ids], model: WeightModel, t: int, tp: int
) -> Iterator[Ids]:
    yield np.split(layer["self_attn.o_proj.weight"], tp, axis=1)[t]
    if model.sizes.mla:
        yield from _latent_heads(layer, t, tp)
        return
    heads, kv_heads, size = model.sizes.heads, model.sizes.kv_heads, model.sizes.head_size
    replicas = tp // kv_heads if tp >= kv_heads else 1
    mine = {"q": heads // tp, "k": max(kv_heads // tp, 1), "v": max(kv_heads // tp, 1)}
    for letter, many in mine.items():
        shard = t if letter == "q" else t // replicas
        for kind in ("weight", "bias"):
            if (ids := layer.get(f"self_attn.{letter}_proj.{kind}")) is not None:
                start = shard * many * size
                yield ids[start : start + many * size]


# SGLang.


def sglang(
    model: WeightModel, tp: int = 1, pp: int = 1, ep: int = 1, engines: int = 1, pad: int = 64
) -> Stored:
    """Its groups are lists of ranks inside an engine, of which each engine has its own."""
    full, world = numbered(model), tp * pp
    each, moe_tp = model.sizes.layers // pp, tp // ep
    ep_groups: dict[int, tuple[int, int]] = {}
    for i in range(pp):
        for j in range(moe_tp):
            for place, rank in enumerate(range(i * tp + j, (i + 1) * tp + j, moe_tp)):
                ep_groups[rank] = (place, j)

    def parts() -> Iterator[tuple[int, Ids]]:
        for rank in range(engines * world):
            own = rank % world
            p, t = own // tp, own % tp
            end = model.sizes.layers if p == pp - 1 else (p + 1) * each
            span = range(p * each, end)
            for ids in _served(full, model, t, tp, p, pp, span, pad, tp):
                yield rank, ids
            for layer in span:
                for ids in _sglang_experts(full, model, layer, *ep_groups[own], ep, moe_tp):
                    yield rank, ids

    return _stored(parts(), engines * world)


def _sglang_experts(
    full: Full, model: WeightModel, layer: int, e: int, t: int, ep: int, moe_tp: int
) -> Iterator[Ids]:
    if model.sizes.each_kind[layer].mlp is not Mlp.EXPERTS:
        return
    assert model.sizes.experts
    local = model.sizes.experts.count // ep
    for expert in range(e * local, (e + 1) * local):
        gate, up, down = _expert_parts(_under(full, f"model.layers.{layer}."), model, expert)
        yield np.split(gate, moe_tp)[t]
        yield np.split(up, moe_tp)[t]
        yield np.split(down, moe_tp, axis=1)[t]


def sharers(stored: Stored) -> dict[int, int]:
    """How many ranks store each element."""
    found: dict[int, int] = defaultdict(int)
    for ids in stored:
        for one in ids:
            found[one] += 1
    return found
