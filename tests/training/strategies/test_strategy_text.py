"""Strategies as text: both ways, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.training.strategy import (
    DISPATCHERS,
    DTYPES,
    GRAPHS,
    KEYS,
    MODULES,
    Recompute,
    Strategy,
    parse_strategy,
    spread_strategy,
    strategy_text,
)
from tests.refusals import refusal
from tests.strategies.draws import shuffles

DEGREES = st.integers(1, 10**6)
AGAIN: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(dict, recompute=st.sampled_from(Recompute)),
    st.builds(dict, recompute=st.just(Recompute.FULL), recompute_layers=DEGREES),
    st.builds(dict, modules=st.lists(st.sampled_from(MODULES), unique=True).map(tuple)),
)
"""What is computed again: by a word, or some modules."""
SPLITS = st.builds(
    lambda split, chunk: {"split": tuple(split), "mtp_chunk": min(chunk, len(split))},
    st.lists(st.integers(0, 99), max_size=12),
    st.integers(0, 12),
)
"""Layers of chunks, and which of these has multi-token prediction."""
STRATEGIES = st.builds(
    lambda again, split, **others: Strategy(**again, **split, **others),
    AGAIN,
    SPLITS,
    tp=DEGREES,
    pp=DEGREES,
    dp=DEGREES,
    cp=DEGREES,
    vpp=DEGREES,
    micro_batch=DEGREES,
    sequence_parallel=st.booleans(),
    zero=st.integers(0, 3),
    flash=st.booleans(),
    dtype=st.sampled_from(DTYPES),
    ep=DEGREES,
    etp=DEGREES,
    dispatcher=st.sampled_from(DISPATCHERS),
    overlap=st.booleans(),
    graphs=st.sampled_from(GRAPHS),
    fp8_attention=st.booleans(),
    dp_replicate=DEGREES,
    shared_overlap=st.booleans(),
    imbalance=st.floats(1, 100),
    optimizer_bytes=st.integers(4, 12),
    offload=st.floats(0, 1),
)


@given(STRATEGIES)
def test_text_is_read_back(strategy: Strategy) -> None:
    assert parse_strategy(strategy_text(strategy)) == strategy


@given(STRATEGIES, shuffles())
def test_order_of_keys_says_nothing(strategy: Strategy, random: object) -> None:
    parts = strategy_text(strategy).split(",")
    random.shuffle(parts)  # type: ignore[attr-defined]
    assert parse_strategy(" , ".join(parts)) == strategy


def test_every_key() -> None:
    text = "dtype=fp16,flash=0,split=19/20*2/21,tp=8,pp=4,dp=2,cp=3,vpp=1,mbs=2,sp=1,zero=1"
    text += ",ep=16,etp=2,dispatcher=flex,overlap=1,graphs=partial,fp8_attention=1"
    assert parse_strategy(text + ",recompute=selective") == Strategy(
        tp=8,
        pp=4,
        dp=2,
        cp=3,
        micro_batch=2,
        sequence_parallel=True,
        zero=1,
        recompute=Recompute.SELECTIVE,
        flash=False,
        dtype="fp16",
        split=(19, 20, 20, 21),
        ep=16,
        etp=2,
        dispatcher="flex",
        overlap=True,
        graphs="partial",
        fp8_attention=True,
    )


def test_modules_are_in_the_order_of_megatron() -> None:
    found = parse_strategy("recompute=moe_act+layernorm")
    assert found == Strategy(modules=("layernorm", "moe_act"))
    assert "recompute=layernorm+moe_act" in strategy_text(found)
    assert parse_strategy("recompute=moe_act").modules == ("moe_act",)


def test_layers_that_are_computed_again_are_counted() -> None:
    found = parse_strategy("recompute=full:7")
    assert found == Strategy(recompute=Recompute.FULL, recompute_layers=7)
    assert "recompute=full:7" in strategy_text(found).split(",")


def test_chunks_of_multi_token_prediction() -> None:
    found = parse_strategy("pp=4,split=4*2/3m/0")
    assert found == Strategy(pp=4, split=(4, 4, 3, 0), mtp_chunk=3)
    assert "split=4*2/3m/0" in strategy_text(found).split(",")


def test_defaults() -> None:
    assert parse_strategy("tp=2") == Strategy(tp=2)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is not KEY=VALUE"),
        ("tp", "is not KEY=VALUE"),
        ("tp=2,,pp=2", "is not KEY=VALUE"),
        ("=2", "is not KEY=VALUE"),
        ("tp=2,tp=4", "twice"),
        ("mbs=1,mbs=1", "twice"),
        ("tpp=2", "did you mean"),
        ("expert=2", "is no key"),
        ("ep=0", "whole number"),
        ("dispatcher=deepep", "alltoall, flex"),
        ("overlap=yes", "0 or 1"),
        ("graphs=some", "none, partial, full"),
        ("recompute=moe_act+full", "layernorm"),
        ("recompute=moe_act+moe_act", "each once"),
        ("recompute=moe,recompute=moe", "twice"),
        ("recompute=full:0", "whole number from 1"),
        ("recompute=full:", "whole number from 1"),
        ("recompute=selective:2", "none, selective, full"),
        ("recompute=moe,recompute=full", "twice"),
        ("qqqq=2", "keys are tp"),
        ("tp=0", "whole number"),
        ("tp=-1", "whole number"),
        ("tp=1.5", "whole number"),
        ("tp=10000000", "whole number"),
        ("tp=", "whole number"),
        ("sp=2", "0 or 1"),
        ("flash=yes", "0 or 1"),
        ("zero=4", "0 to 3"),
        ("recompute=some", "none, selective, full"),
        ("dtype=fp4", "bf16, fp16, fp8, mxfp8, nvfp4"),
        ("split=1/x", "number of layers"),
        ("split=", "number of layers"),
        ("split=1*0", "whole number"),
        ("split=1*20000", "more than"),
        ("split=3m/2m", "twice"),
        ("split=3m*2", "twice"),
        ("split=m/2", "number of layers"),
        ("dp_replicate=0", "whole number"),
        ("shared_overlap=2", "0 or 1"),
        ("imbalance=0.9", "1 (balanced) or more"),
        ("imbalance=inf", "1 (balanced) or more"),
        ("imbalance=nan", "1 (balanced) or more"),
        ("imbalance=much", "no number"),
        ("optimizer_bytes=13", "from 4 to 12"),
        ("optimizer_bytes=3", "from 4 to 12"),
        ("offload=1.1", "from 0 to 1"),
        ("offload=-0.1", "from 0 to 1"),
        ("cp=2,cp_comm_type=a2a", "no other kind"),
        ("pp=2,schedule=zero-bubble", "1F1B"),
        ("capacity_factor=1.2", "drops tokens"),
        ("moe_expert_capacity_factor=1.2", "drops tokens"),
    ],
)
def test_refused_in_one_line(text: str, part: str) -> None:
    assert part in refusal(parse_strategy, text)


def test_scores_are_kept_where_no_kernel_avoids_it() -> None:
    """On V100, which FlashAttention has no kernels for, unless a text says what it has."""
    v100, a100 = (load_topology(name).device for name in ("dgx1-v100:1", "dgx-a100:1"))
    assert v100 is not None
    assert not v100.fused_attention
    assert not spread_strategy("tp=2,dtype=fp16", 8, v100).flash
    assert not spread_strategy("dp=8", 8, v100).flash
    assert spread_strategy("dp=8,flash=1", 8, v100).flash
    assert spread_strategy("dp=8", 8, a100).flash
    assert spread_strategy("dp=8", 8).flash


def test_all_keys_are_written() -> None:
    other = Strategy(
        flash=False,
        dtype="fp8",
        split=(1,),
        dropout=True,
        ep=2,
        etp=2,
        dispatcher="flex",
        overlap=True,
        graphs="full",
        fp8_attention=True,
        fp8_params=False,
        dp_replicate=2,
        shared_overlap=True,
        imbalance=1.25,
        optimizer_bytes=8,
        offload=0.5,
    )
    assert [part.partition("=")[0] for part in strategy_text(other).split(",")] == list(KEYS)
