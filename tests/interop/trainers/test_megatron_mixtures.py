"""Options of Megatron-LM for experts, kinds of layers and graphs, against its rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from p2smt.training.validity import violations
from tests.interop.trainers.cases import LLAMA_70B, Run
from tests.interop.trainers.mixtures import (
    ALIKE,
    CHUNKED,
    DENSE_WINDOWS,
    HYBRID,
    WINDOWED,
    mixture_runs,
)
from tests.interop.trainers.test_trainers import forced, starts
from tests.tiers import examples_of

FEW_VALID = settings(
    max_examples=examples_of(300),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@FEW_VALID
@given(run=mixture_runs())
def test_what_is_written_starts_that_run_and_what_is_refused_would_not(run: Run) -> None:
    if MEGATRON.lacks(*run):
        assert not forced(MEGATRON, run), MEGATRON.lacks(*run)
    else:
        assert starts(MEGATRON, run, MEGATRON.export(*run)), MEGATRON.export(*run)


def test_likely_strategies_are_mostly_written() -> None:
    tried: list[bool] = []

    @settings(FEW_VALID, max_examples=examples_of(150))
    @given(run=mixture_runs(likely=True))
    def each(run: Run) -> None:
        tried.append(not MEGATRON.lacks(*run))

    each()
    assert sum(tried) * 3 >= len(tried)


BATCH = Batch(64, 64)
OVERLAP = Strategy(dp=4, ep=4, overlap=True, graphs="partial")
CLAMPED = replace(ALIKE, experts=replace(WINDOWED.experts, clamped=True))
NEEDS = [
    ("within chunks", CHUNKED, Strategy()),
    ("of sliding windows", WINDOWED, Strategy(cp=2)),
    ("of sliding windows", DENSE_WINDOWS, Strategy(cp=2)),
    ("of Mamba layers (", HYBRID, Strategy(cp=2)),
    ("groups of Mamba", HYBRID, Strategy(tp=8, sequence_parallel=True)),
    ("whose width tp", replace(ALIKE, experts=replace(ALIKE.experts, shared_width=9)), None),
    ("biases of experts", WINDOWED, Strategy(dp=2, etp=2)),
    ("flex dispatcher for one rank", ALIKE, Strategy(dp=2, dispatcher="flex")),
    ("core of attention in 8 bits", ALIKE, Strategy(fp8_attention=True)),
    ("moe_act without experts", LLAMA_70B, Strategy(modules=("moe_act",))),
    ("mla_up_proj without", ALIKE, Strategy(modules=("mla_up_proj",))),
    ("whole layers, or of moe", ALIKE, Strategy(modules=("moe",), graphs="partial")),
    ("whole layers, or of moe", LLAMA_70B, Strategy(recompute=Recompute.FULL, graphs="partial")),
    ("graphs beside overlap", CLAMPED, OVERLAP),
    ("graphs beside overlap", ALIKE, replace(OVERLAP, zero=2)),
    ("graphs of whole iterations", ALIKE, Strategy(dp=4, ep=4, graphs="full")),
]


@pytest.mark.parametrize(("word", "model", "strategy"), NEEDS)
def test_each_thing_that_is_missing_is_missing_alone_and_is_a_rule(
    word: str, model: Transformer, strategy: Strategy | None
) -> None:
    strategy = strategy or Strategy(tp=2, sequence_parallel=True)
    run: Run = (model, BATCH, strategy)
    (missing,) = MEGATRON.lacks(*run)
    assert word in missing
    assert violations(*run, strategy.devices) == ()
    assert not forced(MEGATRON, run)
