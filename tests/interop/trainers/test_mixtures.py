"""What trainers are told of experts, kinds of layers and graphs, against their rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.option_table import TRAINERS, find_trainer
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.efficiencies.frameworks import framework
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Experts, Transformer
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


@pytest.mark.parametrize("trainer", [MEGATRON, TORCHTITAN], ids=lambda trainer: trainer.name)
def test_likely_strategies_are_mostly_written(trainer: Trainer) -> None:
    tried: list[bool] = []

    @settings(FEW_VALID, max_examples=examples_of(150))
    @given(run=mixture_runs(likely=trainer.name))
    def each(run: Run) -> None:
        tried.append(not trainer.lacks(*run))

    each()
    assert sum(tried) * 3 >= len(tried)


BATCH = Batch(64, 64)
OVERLAP = Strategy(dp=4, ep=4, overlap=True, graphs="partial")
NARROW_EXPERTS = replace(ALIKE, experts=Experts(8, 2, 32, latent=32))
CLAMPED = replace(ALIKE, experts=Experts(8, 4, 32, clamped=True))
NARROW = Strategy(dp=2, zero=1, dtype="fp8")
NEEDS: list[Need] = [
    ("megatron", "within chunks", CHUNKED, Strategy()),
    ("megatron", "of sliding windows", WINDOWED, Strategy(cp=2)),
    ("megatron", "of sliding windows", DENSE_WINDOWS, Strategy(cp=2)),
    ("megatron", "windows in a hybrid", HYBRID_WINDOWS, Strategy()),
    ("megatron", "of Mamba layers (", HYBRID, Strategy(cp=2)),
    ("megatron", "biases of experts", WINDOWED, Strategy(dp=2, etp=2)),
    ("megatron", "flex dispatcher for one rank", ALIKE, Strategy(dp=2, dispatcher="flex")),
    ("megatron", "core of attention in 8 bits", ALIKE, replace(NARROW, fp8_attention=True)),
    ("megatron", "low precision alone", LLAMA_70B, Strategy(dtype="mxfp8")),
    ("megatron", "all experts on one rank", ALIKE, Strategy(dp=2, graphs="full")),
    ("megatron", "dropout in graphs", LLAMA_70B, Strategy(graphs="full", dropout=True)),
    ("megatron", "graphs beside overlap", CLAMPED, OVERLAP),
    ("megatron", "graphs beside overlap", ALIKE, replace(OVERLAP, zero=2)),
    ("megatron-bridge", "pipelines of hybrids", HYBRID, Strategy(pp=2, vpp=2)),
    ("megatron-bridge", "low precision alone", LLAMA_70B, Strategy(dtype="mxfp8")),
    ("megatron-bridge", "16 bits beside", LLAMA_70B, replace(NARROW, fp8_params=False)),
    ("torchtitan", "dropout", LLAMA_70B, Strategy(dropout=True)),
    ("torchtitan", "single modules", LLAMA_70B, Strategy(modules=("layernorm",))),
    ("torchtitan", "Mamba layers", CHUNKED, Strategy()),
    ("torchtitan", "Mamba layers", LATENT_HYBRID, Strategy()),
    ("torchtitan", "(latent)", NARROW_EXPERTS, Strategy()),
    ("torchtitan", "(etp) but as tp", ALIKE, Strategy(tp=2, sequence_parallel=True)),
    ("torchtitan", "(etp) but as tp", ALIKE, Strategy(dp=2, etp=2, zero=3)),
    ("torchtitan", "ep other than tp", ALIKE, Strategy(dp=2, ep=2)),
    ("torchtitan", "ep other than tp", ALIKE, Strategy(tp=4, ep=2, sequence_parallel=True)),
    ("torchtitan", "beside computing", ALIKE, Strategy(dp=2, zero=3, ep=2, overlap=True)),
    ("torchtitan", "dispatcher without ep", ALIKE, Strategy(dispatcher="flex")),
    ("torchtitan", "(MTP) with pp or cp", replace(ALIKE, mtp=1), Strategy(pp=2)),
    ("torchtitan", "graphs of single", LLAMA_70B, Strategy(graphs="partial")),
    ("torchtitan", "graphs with", LLAMA_70B, Strategy(pp=2, graphs="full")),
    ("deepspeed", "single modules", LLAMA_70B, Strategy(modules=("layernorm",))),
    ("deepspeed", "expert parallelism", ALIKE, Strategy(dp=2, ep=2)),
    ("deepspeed", "expert parallelism", ALIKE, Strategy(dp=2, dispatcher="flex")),
    ("deepspeed", "graphs of training", ALIKE, Strategy(graphs="full")),
    ("deepspeed", "prediction (MTP)", LATENT_HYBRID, Strategy(pp=2)),
]


def test_a_router_that_is_computed_again_is_in_no_graph() -> None:
    run: Run = (ALIKE, BATCH, Strategy(modules=("moe",), graphs="partial"))
    for trainer, line in (
        (MEGATRON, "--cuda-graph-modules attn"),
        (MEGATRON_BRIDGE, 'set_cuda_graph_modules(cfg.model, ["attn"])'),
    ):
        written = trainer.export(*run)
        assert line in written.text.splitlines()
        assert starts(trainer, run, written)


_SHARED = [("megatron-bridge", *rest) for name, *rest in NEEDS if name == "megatron"]


@pytest.mark.parametrize(("name", "word", "model", "strategy"), [*NEEDS, *_SHARED])
def test_each_thing_that_is_missing_is_missing_alone_and_is_a_rule(
    name: str, word: str, model: Transformer, strategy: Strategy
) -> None:
    check_missing_alone(find_trainer(name), word, (model, BATCH, strategy))


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer.name)
def test_every_missing_thing_has_a_case(trainer: Trainer) -> None:
    names = {trainer.name, "megatron" if trainer is MEGATRON_BRIDGE else ""}
    shown = [word for name, word, *_ in (*NEEDS, *DENSE_NEEDS) if name in names]
    for feature in trainer.missing:
        words = feature.words
        assert "so many tokens" in words or any(word in words for word in shown), words


@pytest.mark.parametrize(("tp", "told"), [(1, False), (2, True)])
def test_what_options_leave_to_the_user_is_noted(tp: int, told: bool) -> None:
    """Without its option Megatron learns positions; it names both settings of its connections."""
    strategy = Strategy(
        tp=tp, dp=8, sequence_parallel=tp > 1, zero=1, ep=8, dispatcher="flex", overlap=True
    )
    mixture = replace(LLAMA_70B, layers=4, experts=Experts(8, 2, 512))
    first, second = MEGATRON.export(mixture, Batch(64, 1024), strategy).notes
    assert "position embedding" in first
    assert "router" in first
    assert second.endswith("what hides of tp and cp with 1") == told
    dense = MEGATRON.export(LLAMA_70B, Batch(64, 1024), Strategy(dp=8)).notes
    assert "position embedding" in dense[0]
    assert "--normalization RMSNorm" in dense[0]
    assert "router" not in dense[0]


@pytest.mark.parametrize("name", ["megatron", "megatron-bridge"])
def test_by_what_experts_are_reached_in_the_time_is_noted(name: str) -> None:
    """Where the time is told, the dispatcher is a choice, and the options are none of another."""
    mixture = replace(LLAMA_70B, layers=4, experts=Experts(8, 2, 512))
    run = find_trainer(name), mixture, Batch(64, 1024)
    timed = [
        "\n".join(run[0].export(*run[1:], strategy, framework("megatron-core")).notes)
        for strategy in (
            Strategy(dp=8, zero=1, ep=8),
            Strategy(dp=8, zero=1, ep=8, dispatcher="flex"),
            Strategy(dp=8, zero=1),
        )
    ]
    said = "the library's all-to-all of experts: plan --dispatcher flex"
    assert [said in text for text in timed] == [True, False, False]
    untimed = run[0].export(*run[1:], Strategy(dp=8, zero=1, ep=8)).notes
    assert said not in "\n".join(untimed)
