"""Layers of stages: vectorised, against chunks handed out one by one; given splits; refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.training.efficiency import TrainingRun
from p2smt.training.formulas.stages import Stages, StrategyColumns, chunk_layers
from p2smt.training.strategy import Strategy
from tests.oracles.transformers import Oracle
from tests.strategies.trainings import training_runs


def of(layers: int, *strategies: Strategy) -> Stages:
    columns = StrategyColumns.of(strategies)
    return Stages.of(layers, columns, 4 * columns.pp)


@given(training_runs())
def test_representatives_stand_for_all_stages(run: TrainingRun) -> None:
    strategy, layers = run.strategy, run.model.layers
    chunks = Oracle(run.model, run.batch, strategy, 4).chunks()
    assert chunk_layers(layers, strategy) == tuple(chunks)
    stages = of(layers, strategy)
    by_stage = [chunks[stage :: strategy.pp] for stage in range(strategy.pp)]
    assert int((stages.weight * stages.layers).sum()) == layers
    assert int(stages.weight.sum()) == strategy.pp
    for at, stage in enumerate(stages.index[0]):
        assert stages.layers[0, at] == sum(by_stage[stage])


@given(training_runs())
def test_even_splits_beside_given_ones(run: TrainingRun) -> None:
    layers, even = run.model.layers, replace(run.strategy, split=())
    split = replace(even, split=chunk_layers(layers, even))
    together, alone = of(layers, even, split), of(layers, even)
    for row in (0, 1):
        assert _stages(together.take(np.array([row]))) >= _stages(alone)


def _stages(stages: Stages) -> set[tuple[float, ...]]:
    rows = (stages.index[0], stages.layers[0], stages.uneven[0])
    return {tuple(round(float(x), 9) for x in one) for one in zip(*rows, strict=True)}


def test_ends_count_as_layers_where_layers_do_not_divide() -> None:
    stages = of(126, Strategy(pp=16, vpp=8))
    assert stages.layers.tolist() == [[7, 8, 7]]


@pytest.mark.parametrize(
    "strategy",
    [Strategy(pp=7), Strategy(vpp=4), Strategy(pp=2, split=(5, 4)), Strategy(pp=2, split=(10,))],
)
def test_no_split(strategy: Strategy) -> None:
    with pytest.raises(InputError, match="do not split 10 layers"):
        of(10, strategy)
