"""Fields that few trainings have, as trainers are told of them, against their rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.interop.trainers.option_table import find_trainer
from p2smt.training.strategy import Batch, Recompute, Strategy, strategy_text
from p2smt.training.transformer import Experts, Transformer
from p2smt.training.validity import violations
from tests.interop.trainers.cases import LLAMA_70B, Run
from tests.interop.trainers.mixtures import ALIKE
from tests.interop.trainers.test_trainers import starts

SHARED = replace(ALIKE, experts=Experts(8, 2, 32, shared_width=32), layers=8)
AHEAD = replace(ALIKE, mtp=1, layers=8)
CASES: list[tuple[Transformer, Strategy]] = [
    (LLAMA_70B, Strategy(dp=8, pp=2, recompute=Recompute.FULL, recompute_layers=3)),
    (LLAMA_70B, Strategy(tp=2, dp=8, sequence_parallel=True, zero=1, dp_replicate=4)),
    (LLAMA_70B, Strategy(dp=8, zero=3, dp_replicate=2)),
    (LLAMA_70B, Strategy(dp=8, zero=1, optimizer_bytes=8)),
    (LLAMA_70B, Strategy(dp=8, zero=1, optimizer_bytes=6)),
    (SHARED, Strategy(dp=8, ep=4, zero=1, shared_overlap=True)),
    (SHARED, Strategy(dp=8, ep=2, zero=3, dp_replicate=2)),
    (AHEAD, Strategy(dp=2, pp=2, vpp=2, ep=2, split=(3, 3, 2, 0), mtp_chunk=3)),
]


@pytest.mark.parametrize("name", ["megatron", "megatron-bridge", "torchtitan"])
@pytest.mark.parametrize(
    ("model", "strategy"), CASES, ids=lambda one: getattr(one, "name", None) or strategy_text(one)
)
def test_what_is_given_is_told_or_refused_by_name(
    name: str, model: Transformer, strategy: Strategy
) -> None:
    run: Run = (model, Batch(64, 4096), strategy)
    assert violations(*run, strategy.devices) == ()
    trainer = find_trainer(name)
    if lacks := trainer.lacks(*run):
        assert name == "torchtitan", lacks
        return
    assert starts(trainer, run, trainer.export(*run))
    field = next(
        one for one in trainer.given(strategy) if getattr(strategy, one) != getattr(Strategy(), one)
    )
    other = replace(strategy, **{field: getattr(Strategy(), field)})
    assert not starts(trainer, run, trainer.export(model, run[1], other))
