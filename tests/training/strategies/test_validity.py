"""Which strategies can run: the table of rules against brute force, and each rule by its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import (
    Attention,
    Experts,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)
from p2smt.training.validity import (
    FIELDS,
    RULES,
    check,
    obey,
    sentence_of,
    switch_rules,
    violations,
)
from tests.oracles.strategies import RULES_IN_WORDS, runs
from tests.tiers import examples_of

MODEL = Transformer("m", 12, 64, 8, 4, 96, True, 100, 8)
BATCH = Batch(24, 48)
GOOD = Strategy(tp=2, pp=3, dp=2, vpp=2, micro_batch=2, sequence_parallel=True)
DEGREE = st.sampled_from([1, 1, 2, 3, 4, 6, 8])


@st.composite
def models(draw: st.DrawFn) -> Transformer:
    """Sizes that few and many degrees divide."""
    kv_heads = draw(st.sampled_from([1, 2, 3, 4]))
    heads, layers = kv_heads * draw(st.integers(1, 4)), draw(st.integers(1, 14))
    ffn = draw(st.sampled_from([8, 12, 24, 96]))
    model = Transformer("m", layers, 64, heads, kv_heads, ffn, True, 100, 8)
    groups = draw(st.sampled_from([0, 0, 1, 2, 4]))
    return with_states(model, groups) if groups else model


def with_states(model: Transformer, groups: int) -> Transformer:
    """The same model with states instead of attention in its first layer."""
    first, rest = LayerRun(1, (LayerKind(Attention.MAMBA),)), model.layers - 1
    order = (first, LayerRun(rest, (LayerKind(),))) if rest else (first,)
    return replace(model, mamba=Mamba(4, 8, groups, 16), order=order)


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    """Any degrees."""
    degrees: dict[str, Any] = {
        name: draw(DEGREE) for name in ("tp", "pp", "dp", "cp", "vpp", "micro_batch")
    }
    switches: dict[str, Any] = {
        "sequence_parallel": draw(st.booleans()),
        "zero": draw(st.integers(0, 3)),
    }
    return Strategy(**degrees, **switches)


def columns(found: list[Strategy]) -> dict[str, np.ndarray]:
    return {name: np.array([int(getattr(s, name)) for s in found]) for name in FIELDS}


@settings(max_examples=examples_of(200))
@given(
    models(),
    st.lists(strategies(), min_size=1, max_size=20),
    st.sampled_from([1, 2, 6, 24]),
    st.sampled_from([8, 24, 30]),
)
def test_rules_are_those_of_the_oracle(
    model: Transformer, found: list[Strategy], sequences: int, tokens: int
) -> None:
    batch, devices = Batch(sequences, tokens), found[0].devices
    obeying = obey(model, batch, columns(found), devices)
    for strategy, obeys in zip(found, obeying, strict=True):
        broken = [one.name for one in violations(model, batch, strategy, devices)]
        told = [name for name, holds in RULES_IN_WORDS.items() if not holds(model, batch, strategy)]
        assert [name for name in broken if name != "devices"] == told
        assert obeys == runs(model, batch, strategy, devices) == (not broken)


@settings(max_examples=examples_of(200))
@given(
    models(),
    strategies(),
    st.sampled_from([1, 2, 6, 24, 48]),
    st.sampled_from([8, 24, 30]),
    st.sets(st.sampled_from(["vpp", "micro_batch", "sequence_parallel", "zero"])),
)
def test_what_obeys_a_rule_obeys_it_without_chunks_and_switches(
    model: Transformer, strategy: Strategy, sequences: int, tokens: int, changed: set[str]
) -> None:
    batch, devices = Batch(sequences, tokens), strategy.devices
    least = replace(strategy, **{name: getattr(Strategy(), name) for name in changed})
    broken = {one.name for one in violations(model, batch, strategy, devices)}
    assert {one.name for one in violations(model, batch, least, devices)} <= broken


@pytest.mark.parametrize(
    ("name", "change", "model", "batch"),
    [
        ("devices", {"dp": 4}, MODEL, BATCH),
        ("heads", {"tp": 3}, MODEL, BATCH),
        ("kv_heads", {"tp": 2}, replace(MODEL, heads=6, kv_heads=3), BATCH),
        ("ffn", {"tp": 2}, replace(MODEL, ffn=97), BATCH),
        ("mamba", {"tp": 2}, with_states(MODEL, 1), BATCH),
        ("sequence", {"cp": 2, "tp": 1}, MODEL, Batch(24, 50)),
        ("sequence_parallel", {}, MODEL, Batch(24, 49)),
        ("sequence_parallel_tp", {"tp": 1}, MODEL, BATCH),
        ("zero", {"dp": 1, "zero": 1}, MODEL, BATCH),
        ("batch", {"micro_batch": 5}, MODEL, BATCH),
        ("interleaving", {"pp": 1}, MODEL, BATCH),
        ("schedule", {"micro_batch": 3}, MODEL, BATCH),
        ("layers", {"vpp": 3}, MODEL, BATCH),
        ("split", {"split": (12,)}, MODEL, BATCH),
        ("split", {"split": (1, 1, 2, 2, 3, 4)}, MODEL, BATCH),
        ("split", {"split": (5, 5, 2, 2, -1, -1)}, MODEL, BATCH),
    ],
)
def test_each_rule_is_named_where_it_is_the_first_broken(
    name: str, change: dict[str, Any], model: Transformer, batch: Batch
) -> None:
    assert violations(MODEL, BATCH, GOOD, GOOD.devices) == ()
    bad = replace(GOOD, **change)
    devices = GOOD.devices if name == "devices" else bad.devices
    assert violations(model, batch, bad, devices)[0].name == name
    with pytest.raises(InputError, match=f"rule {name}"):
        check(model, batch, bad, devices)


def test_every_rule_is_tested() -> None:
    marks = test_each_rule_is_named_where_it_is_the_first_broken.pytestmark
    tested = {case[0] for mark in marks for case in mark.args[1]}
    assert {rule.name for rule in RULES} <= tested


def test_a_given_split_need_not_be_even() -> None:
    uneven = replace(GOOD, vpp=1, split=(5, 4, 3))
    assert violations(MODEL, BATCH, uneven, GOOD.devices) == ()
    check(MODEL, BATCH, replace(GOOD, pp=5, vpp=1, split=(2, 3, 3, 3, 1)), 5 * 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"micro_batch": 5}, "strategy dp=2,mbs=5: dp .* mbs must divide the global batch"),
        ({"micro_batch": 3}, "dp=2,mbs=3: with vpp > 1.* take a smaller mbs"),
        ({"cp": 3, "tp": 4}, "strategy cp=3,tp=4,sp=1: cp, and cp .* tp with sp=1, must divide"),
    ],
)
def test_errors_have_the_keys_that_users_write(change: dict[str, Any], words: str) -> None:
    bad, batch = replace(GOOD, **change), Batch(24, 54 if "cp" in change else 48)
    with pytest.raises(InputError, match=words) as found:
        check(MODEL, batch, bad, bad.devices)
    assert not set(re.findall(r"micro_batch|sequence_parallel[^)]", str(found.value)))


def test_every_rule_has_a_remedy_and_its_numbers() -> None:
    mixture = Transformer(
        *("m", 4, 128, 8, 4, 256, True, 1000, 16),
        experts=Experts(8, 2, 96, 192),
        mamba=Mamba(6, 16, 2, 16),
        order=(LayerRun(4, (LayerKind(Attention.MAMBA, Mlp.EXPERTS),)),),
    )
    for rule in (*RULES, *switch_rules(mixture)):
        assert rule.remedy
        assert "0" not in re.findall(r"\d+", sentence_of(rule, mixture, Batch(8, 64), 8))
