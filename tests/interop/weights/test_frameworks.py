"""Megatron-LM, vLLM and SGLang: every rank holds what its framework would store, by element."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.weights.layout_text import WeightsText
from p2smt.interop.weights.models import WeightModel
from p2smt.interop.weights.table import FRAMEWORKS
from p2smt.transfer.layouts import WeightLayout
from tests.interop.weights import by_rank
from tests.interop.weights.tiny import DEEPSEEK_3, LLAMA, MIXTRAL, QWEN_3_MOE, TINY
from tests.strategies.draws import Draws, draws

MODELS = st.sampled_from(sorted(TINY))
TWOS = st.sampled_from((1, 2, 4))


def layout(text: str, model: WeightModel) -> WeightLayout:
    framework = FRAMEWORKS[text.partition(":")[0]]
    return framework.layout(WeightsText.parse(text, framework.options), model)


def check(text: str, model: WeightModel, stored: by_rank.Stored) -> None:
    found = layout(text, model)
    assert by_rank.held(found, by_rank.numbered(model)) == stored, text


@given(draws())
def test_megatron(drawn: Draws) -> None:
    model = TINY[drawn.draw(MODELS)]
    tp, pp, dp, cp = (drawn.draw(one) for one in (st.sampled_from((1, 2, 4, 8)), TWOS, TWOS, TWOS))
    pad = drawn.draw(st.sampled_from((1, 3, 128)))
    text = f"megatron:tp={tp},pp={pp},dp={dp},cp={cp},pad={pad}"
    ep = etp = 1
    if model.sizes.experts:
        of_stage, count = tp * dp * cp, model.sizes.experts.count
        etp = drawn.draw(st.sampled_from([n for n in (1, 2, 4, 8) if of_stage % n == 0]))
        left = of_stage // etp
        ep = drawn.draw(st.sampled_from([n for n in (1, 2, 4) if left % n == 0 and not count % n]))
        text += f",ep={ep},etp={etp}"
    vpp = drawn.draw(st.sampled_from([n for n in (1, 2, 4) if not 4 // pp % n]))
    chunks = by_rank.megatron_chunks(4, pp, vpp)
    stored = by_rank.megatron(model, tp, cp, dp, pp, ep, etp, chunks, pad)
    check(f"{text},vpp={vpp}", model, stored)


@pytest.mark.parametrize(
    ("first", "last", "vpp", "pp"), [(1, None, 1, 4), (None, 1, 1, 4), (2, 4, 2, 4), (3, 5, 1, 2)]
)
def test_uneven_stages(first: int | None, last: int | None, vpp: int, pp: int) -> None:
    layers = {(1, None): 7, (None, 1): 10, (2, 4): 14, (3, 5): 8}[first, last]
    model = replace(LLAMA, sizes=replace(LLAMA.sizes, layers=layers))
    ends = "".join(f",{k}={v}" for k, v in (("first", first), ("last", last)) if v is not None)
    chunks = by_rank.megatron_chunks(layers, pp, vpp, first, last)
    assert sorted(at for chunk in chunks for at in chunk) == list(range(layers))
    check(f"megatron:pp={pp},vpp={vpp}{ends}", model, by_rank.megatron(model, pp=pp, chunks=chunks))


def test_layout_strings() -> None:
    """Rows of a string are chunks of stages in turn, as Megatron reads them."""
    chunks = [[0, 3], [1, 2]]
    stored = by_rank.megatron(LLAMA, tp=2, pp=2, chunks=chunks)
    check("megatron:tp=2,pp=2,layout=Et|tt|t|L", LLAMA, stored)
    check("megatron:tp=2,pp=2,layout=E(t|t)*1t|t|L", LLAMA, stored)
    alone = by_rank.megatron(LLAMA, pp=2, chunks=[[], [0, 1, 2, 3]])
    check("megatron:pp=2,layout=E|t*4L", LLAMA, alone)


def test_stages_before_replicas() -> None:
    """``--use-tp-pp-dp-mapping``: stages are faster than data parallelism."""
    chunks = by_rank.megatron_chunks(4, 2)
    stored = by_rank.megatron(LLAMA, tp=2, dp=3, pp=2, chunks=chunks, pp_before_dp=True)
    check("megatron:tp=2,pp=2,dp=3,order=tp-pp-dp", LLAMA, stored)
    check("megatron:tp=2,pp=2,dp=3,order=tp-cp-ep-pp-dp", LLAMA, stored)
    stored = by_rank.megatron(QWEN_3_MOE, tp=2, dp=2, pp=2, etp=2, chunks=chunks, pp_before_dp=True)
    check("megatron:tp=2,pp=2,dp=2,order=tp-pp-dp", QWEN_3_MOE, stored)


def test_experts_follow_tp_unless_told() -> None:
    chunks = [[0, 1, 2, 3]]
    stored = by_rank.megatron(QWEN_3_MOE, tp=2, dp=4, ep=4, etp=2, chunks=chunks)
    check("megatron:tp=2,dp=4,ep=4", QWEN_3_MOE, stored)


@given(draws())
def test_vllm(drawn: Draws) -> None:
    model = TINY[drawn.draw(MODELS)]
    tp, pp, dp = (drawn.draw(st.sampled_from(some)) for some in ((1, 2, 4), (1, 2, 3), (1, 2)))
    engines, pad = drawn.draw(st.sampled_from((1, 2, 3))), drawn.draw(st.sampled_from((16, 64)))
    text = f"vllm:tp={tp},pp={pp},dp={dp},engines={engines},pad={pad}"
    count = model.sizes.experts.count if model.sizes.experts else 0
    spread = 1 < tp * dp <= count and drawn.draw(st.booleans())
    text += f",ep={tp * dp}" if spread else ""
    check(text, model, by_rank.vllm(model, tp, pp, dp, engines, spread, pad))


def test_experts_that_do_not_divide() -> None:
    """vLLM gives the first ranks one more; 6 experts over 4 ranks are 2 2 1 1."""
    found = layout("vllm:tp=4,ep=4", MIXTRAL)
    where = "model.layers.0.block_sparse_moe.experts.{}.w1.weight"
    assert [found.shards[where.format(e)].boxes[0][1] for e in range(6)] == [
        *((0,), (0,), (1,), (1,), (2,), (3,))
    ]
    check("vllm:tp=4,ep=4", MIXTRAL, by_rank.vllm(MIXTRAL, tp=4, expert_parallel=True))


def test_heads_on_several_ranks() -> None:
    """Of two kv heads on eight ranks of vLLM each is on four; Megatron cuts the stored matrix."""
    served = layout("vllm:tp=8", LLAMA).shards["model.layers.0.self_attn.k_proj.weight"]
    assert [devices for _, devices in served.boxes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    trained = layout("megatron:tp=8", LLAMA).shards["model.layers.0.self_attn.k_proj.weight"]
    assert all(len(devices) == 1 for _, devices in trained.boxes)


@given(draws())
def test_sglang(drawn: Draws) -> None:
    model = TINY[drawn.draw(MODELS)]
    count = model.sizes.experts.count if model.sizes.experts else 8
    tp = drawn.draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= count]))
    pp = drawn.draw(st.sampled_from((1, 2, 3)))
    engines, ep = drawn.draw(st.sampled_from((1, 2))), 1
    if model.sizes.experts:
        ep = drawn.draw(st.sampled_from([n for n in (1, 2, 4, 8) if not tp % n | count % n]))
    text = f"sglang:tp={tp},pp={pp},engines={engines}" + (f",ep={ep}" if ep > 1 else "")
    check(text, model, by_rank.sglang(model, tp, pp, ep, engines))


def test_stages_by_list() -> None:
    given = layout("vllm:pp=2,layers=3/1", LLAMA)
    assert given.shards["model.layers.2.mlp.up_proj.weight"].boxes[0][1] == (0,)
    assert given.shards["model.layers.3.mlp.up_proj.weight"].boxes[0][1] == (1,)


def test_shared_experts_of_shared_sequences_are_whole() -> None:
    name = "model.layers.1.mlp.shared_experts.up_proj.weight"
    spread = layout("vllm:tp=2,dp=2,ep=4", DEEPSEEK_3).shards[name]
    assert spread.boxes == ((((0, 8), (0, 6)), (0, 1, 2, 3)),)
    for text, parts in (("vllm:tp=2,dp=2", 2), ("vllm:tp=4,ep=4", 4), ("vllm:dp=4,ep=4", 1)):
        assert len(layout(text, DEEPSEEK_3).shards[name].boxes) == parts


def test_a_tied_embedding_is_one_tensor_of_two_stages() -> None:
    for text in ("megatron:pp=4", "vllm:pp=4", "sglang:pp=4"):
        found = layout(text, TINY["tied"])
        assert "lm_head.weight" not in found.tensors
        assert found.shards["model.embed_tokens.weight"].boxes[0][1] == (0, 3)
