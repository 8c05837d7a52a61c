"""What trainers are told of experts, kinds of layers and graphs, against their rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.option_table import TRAINERS, find_trainer
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.interop.trainers.cases import LLAMA_70B, Run
from tests.interop.trainers.mixtures import (
    ALIKE,
    CHUNKED,
    DENSE_WINDOWS,
    HYBRID,
    HYBRID_WINDOWS,
    LATENT_HYBRID,
    WINDOWED,
    mixture_runs,
)
from tests.interop.trainers.test_trainers import NEEDS as DENSE_NEEDS
from tests.interop.trainers.test_trainers import Need, check_missing_alone, forced, starts
from tests.tiers import examples_of

FEW_VALID = settings(
    max_examples=examples_of(300),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@FEW_VALID
@given(run=mixture_runs())
def test_what_is_written_starts_that_run_and_what_is_refused_would_not(run: Run) -> None:
    for trainer in TRAINERS:
        if trainer.lacks(*run):
            assert not forced(trainer, run), trainer.lacks(*run)
        else:
            assert starts(trainer, run, trainer.export(*run)), trainer.export(*run)


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
NARROW = replace(ALIKE, experts=replace(ALIKE.experts, shared_width=9))
CLAMPED = replace(ALIKE, experts=replace(WINDOWED.experts, clamped=True))
NEEDS: list[Need] = [
    ("megatron", "within chunks", CHUNKED, Strategy()),
    ("megatron", "of sliding windows", WINDOWED, Strategy(cp=2)),
    ("megatron", "of sliding windows", DENSE_WINDOWS, Strategy(cp=2)),
    ("megatron", "windows in a hybrid", HYBRID_WINDOWS, Strategy()),
    ("megatron", "of Mamba layers (", HYBRID, Strategy(cp=2)),
    ("megatron", "groups of Mamba", HYBRID, Strategy(tp=8, sequence_parallel=True)),
    ("megatron", "whose width tp", NARROW, Strategy(tp=2, sequence_parallel=True)),
    ("megatron", "biases of experts", WINDOWED, Strategy(dp=2, etp=2)),
    ("megatron", "flex dispatcher for one rank", ALIKE, Strategy(dp=2, dispatcher="flex")),
    ("megatron", "core of attention in 8 bits", ALIKE, Strategy(fp8_attention=True)),
    ("megatron", "moe_act without experts", LLAMA_70B, Strategy(modules=("moe_act",))),
    ("megatron", "mla_up_proj without", ALIKE, Strategy(modules=("mla_up_proj",))),
    ("megatron", "whole layers, or of moe", ALIKE, Strategy(modules=("moe",), graphs="partial")),
    (
        "megatron",
        "whole layers, or of moe",
        LLAMA_70B,
        Strategy(recompute=Recompute.FULL, graphs="partial"),
    ),
    ("megatron", "graphs beside overlap", CLAMPED, OVERLAP),
    ("megatron", "graphs beside overlap", ALIKE, replace(OVERLAP, zero=2)),
    ("megatron", "graphs of whole iterations", ALIKE, Strategy(dp=4, ep=4, graphs="full")),
    ("deepspeed", "single modules", LLAMA_70B, Strategy(modules=("layernorm",))),
    ("deepspeed", "expert parallelism", ALIKE, Strategy(dp=2, ep=2)),
    ("deepspeed", "expert parallelism", ALIKE, Strategy(dp=2, dispatcher="flex")),
    ("deepspeed", "graphs of training", ALIKE, Strategy(graphs="full")),
    ("deepspeed", "prediction (MTP)", LATENT_HYBRID, Strategy(pp=2)),
    ("deepspeed", "in 8 bits", LLAMA_70B, Strategy(fp8_attention=True)),
]


@pytest.mark.parametrize(("name", "word", "model", "strategy"), NEEDS)
def test_each_thing_that_is_missing_is_missing_alone_and_is_a_rule(
    name: str, word: str, model: Transformer, strategy: Strategy
) -> None:
    check_missing_alone(find_trainer(name), word, (model, BATCH, strategy))


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer.name)
def test_every_missing_thing_has_a_case(trainer: Trainer) -> None:
    shown = [word for name, word, *_ in (*NEEDS, *DENSE_NEEDS) if name == trainer.name]
    for feature in trainer.missing:
        words = feature.words
        assert "so many tokens" in words or any(word in words for word in shown), words
