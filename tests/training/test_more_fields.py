"""Fields of a strategy that few trainings have: what each changes, and how it is read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import load_topology
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.training.efficiencies.file import read_efficiency
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict
from p2smt.training.pipeline import StrategyWork, work
from p2smt.training.plan_block import run_of, training_data
from p2smt.training.prediction import Prediction
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.transformer import Experts, LayerKind, LayerRun, Mlp, Transformer
from p2smt.training.validity import violations

BRIDGE, MEGATRON = map(read_efficiency, ("megatron-bridge-h100", "megatron-h100"))
DENSE = Transformer("dense", 8, 256, 8, 4, 512, True, 1000, 32)
MIXED = Transformer(
    *("mixed", 8, 256, 8, 4, 512, True, 1000, 32),
    experts=Experts(8, 2, 128, shared_width=128),
    order=(LayerRun(2, (LayerKind(),)), LayerRun(6, (LayerKind(mlp=Mlp.EXPERTS),))),
)
BATCH = Batch(64, 512)
H100 = load_topology("dgx-h100:1")
BOTH = pytest.mark.parametrize(
    ("model", "efficiency"), [(DENSE, MEGATRON), (DENSE, BRIDGE), (MIXED, BRIDGE)]
)


def done(model: Transformer, text: str, efficiency: Efficiency) -> StrategyWork:
    """The work of a strategy on an H100."""
    columns = StrategyColumns.of((parse_strategy(text),))
    return work(model, BATCH, columns, H100.known_device, efficiency)


def predicted(model: Transformer, text: str, efficiency: Efficiency) -> Prediction:
    """What an iteration takes on 8 GPUs."""
    return predict(TrainingRun(model, BATCH, parse_strategy(text)), H100, efficiency)


FIELDS = [(DENSE, "dp=8,recompute=full:2")]


@pytest.mark.parametrize(("model", "text"), FIELDS)
def test_plan_files_keep_the_fields(model: Transformer, text: str) -> None:
    name = "megatron-bridge-h100" if model.experts else "megatron-h100"
    found = estimate(replace(model, experts=None, order=()), H100, text, BATCH, name)
    kept = TrainingBlock.model_validate(training_data(found))
    assert run_of(kept, "plan").strategy == parse_strategy(text)


@pytest.mark.parametrize(("model", "text"), FIELDS)
def test_columns_keep_the_fields(model: Transformer, text: str) -> None:
    columns = StrategyColumns.of((parse_strategy("dp=8"), parse_strategy(text)))
    assert columns.take(np.array([1])).strategy(0) == parse_strategy(text)


@pytest.mark.parametrize(
    ("model", "text", "rule"),
    [(DENSE, "pp=4,dp=2,recompute=full:3", "recompute-layers")],
)
def test_what_cannot_run_is_named_by_its_rule(model: Transformer, text: str, rule: str) -> None:
    assert [one.name for one in violations(model, BATCH, parse_strategy(text), 8)] == [rule]


# Whole layers of each chunk from its first, computed again.


@BOTH
def test_time_and_memory_of_layers_computed_again_lie_between(
    model: Transformer, efficiency: Efficiency
) -> None:
    """All layers by their number are as full; of alike layers each adds as much."""
    texts = ["none", *(f"full:{count}" for count in range(1, 9)), "full"]
    found = [done(model, f"dp=8,zero=1,recompute={text}", efficiency) for text in texts]
    seconds = [float(one.backward_s[0, 0]) for one in found]
    kept = [float(one.memory_parts[3][0, 0]) for one in found]
    assert seconds[-1] == pytest.approx(seconds[-2], rel=1e-12)
    assert kept[-1] == pytest.approx(kept[-2], rel=1e-12)
    steps = np.diff(seconds[:-1])
    assert (steps > 0).all()
    assert (np.diff(kept[1:-1]) < 0).all()
    alike = slice(None) if model is DENSE else slice(2, None)
    if efficiency.layers is None:
        assert steps[alike] == pytest.approx(steps[alike][0])


def test_the_first_layers_are_computed_again_by_their_kind() -> None:
    """Two dense layers, then six with experts: two again are the dense ones alone."""
    plain, two, full = (
        predicted(MIXED, f"dp=8,zero=1,ep=4,recompute={text}", BRIDGE)
        for text in ("none", "full:2", "full")
    )
    calls = [
        {one.request.name: one.request.calls for one in found.requests}["ep dispatch"]
        for found in (plain, two, full)
    ]
    assert calls[0] == calls[1] == calls[2] * 4 // 6
