"""The time of a pipeline, against schedules run pass by pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import StrategyWork, stage_times, work
from tests.oracles.pipelines import makespan
from tests.strategies.draws import Draws, draws
from tests.strategies.trainings import efficiencies, training_runs
from tests.training.devices import SMALL_DEVICE


@given(training_runs(), efficiencies(), st.floats(0.1, 10))
def test_stages_alike_take_what_the_schedule_takes(
    run: TrainingRun, efficiency: Efficiency, backward: float
) -> None:
    """Micro-batches times the slowest stage, and the bubble."""
    strategy = replace(run.strategy, split=())
    done = work(run.model, run.batch, StrategyColumns.of([strategy]), SMALL_DEVICE, efficiency)
    alike = _alike(done)
    chunk_s = float(alike.compute_s[0, 0]) / strategy.vpp
    forward_s = [[chunk_s / (1 + backward)] * strategy.vpp] * strategy.pp
    backward_s = [[chunk_s * backward / (1 + backward)] * strategy.vpp] * strategy.pp
    micro_batches = round(float(done.micro_batches[0]))
    found = makespan(strategy.pp, strategy.vpp, micro_batches, forward_s, backward_s)
    times = stage_times(alike, {})
    busy_s = micro_batches * float(times.slowest_s[0])
    assert busy_s + float(times.bubble_s[0]) == pytest.approx(found)


@given(st.integers(1, 5), st.integers(1, 6), draws())
def test_uneven_stages_lie_between_alike_ones(pp: int, micro_batches: int, data: Draws) -> None:
    """The schedule's time and the formula's: within those of all as fast, or as slow, as one."""
    seconds = st.integers(1, 4)
    forward_s = [[float(data.draw(seconds))] for _ in range(pp)]
    backward_s = [[2 * one[0]] for one in forward_s]
    stages = [f[0] + b[0] for f, b in zip(forward_s, backward_s, strict=True)]
    passes = micro_batches + pp - 1
    formula = micro_batches * max(stages) + sum(stages) - max(stages)
    for found in (formula, makespan(pp, 1, micro_batches, forward_s, backward_s)):
        assert max(stages) * micro_batches <= found <= passes * max(stages)


def _alike(done: StrategyWork) -> StrategyWork:
    """The same with the first stage's work on all stages, and nothing sent."""
    same = done.compute_s[:, :1] + 0 * done.compute_s
    return replace(done, compute_s=same, requests=())
