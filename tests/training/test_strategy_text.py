"""Strategies as text: both ways, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.training.strategy import KEYS, Recompute, Strategy, parse_strategy, strategy_text
from tests.strategies.draws import shuffles

DEGREES = st.integers(1, 10**6)
STRATEGIES = st.builds(
    Strategy,
    tp=DEGREES,
    pp=DEGREES,
    dp=DEGREES,
    cp=DEGREES,
    vpp=DEGREES,
    micro_batch=DEGREES,
    sequence_parallel=st.booleans(),
    zero=st.integers(0, 3),
    recompute=st.sampled_from(Recompute),
    flash=st.booleans(),
    dtype=st.sampled_from(["bf16", "fp16"]),
    split=st.lists(st.integers(0, 99), max_size=12).map(tuple),
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
    )


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
        ("ep=2", "is no key"),
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
        ("dtype=fp8", "bf16, fp16"),
        ("split=1/x", "number of layers"),
        ("split=", "number of layers"),
        ("split=1*0", "whole number"),
        ("split=1*20000", "more than"),
    ],
)
def test_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_strategy(text)
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_all_keys_are_written() -> None:
    other = Strategy(flash=False, dtype="fp16", split=(1,))
    assert [part.partition("=")[0] for part in strategy_text(other).split(",")] == list(KEYS)
