"""Formulas of sizes, operations and requests, against a count of every layer and micro-batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from p2smt.training.efficiency import Framework, TrainingRun
from p2smt.training.formulas.quantities import Quantities, quantities
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import axis_requests, request_columns
from p2smt.training.strategy import AXES, SHARD_AXES, Batch, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.transformers import Call, Oracle
from tests.strategies.trainings import training_runs


def framework(gradient_bytes: int) -> Framework:
    return Framework("any", False, 0.0, False, False, gradient_bytes, gradient_bytes)


def counted(run: TrainingRun, gradient_bytes: int) -> Quantities:
    columns = StrategyColumns.of([run.strategy])
    return quantities(run.model, run.batch, columns, framework(gradient_bytes))


def oracle(run: TrainingRun, gradient_bytes: int = 4) -> Oracle:
    return Oracle(run.model, run.batch, run.strategy, gradient_bytes)


@given(training_runs())
def test_parameters_and_operations(run: TrainingRun) -> None:
    found, tallies = counted(run, 4), oracle(run).tallies()
    layer = sum(found.of_strategy(f"{name}_flops")[0] for name in ("qkv", "output", "up", "down"))
    for at, stage in enumerate(found.stages.index[0]):
        tally, micro_batches = tallies[stage], found.of_strategy("micro_batches")[0]
        layers, last = found.of_stage("n")[0, at], found.of_stage("last")[0, at]
        assert found.of_stage("stage_parameters")[0, at] == tally.parameters
        products = layers * layer + last * found.of_strategy("logits_flops")[0]
        assert micro_batches * products == tally.product_flops
        scores = 2 * layers * found.of_strategy("scores_flops")[0]
        assert micro_batches * scores == tally.score_flops


@given(training_runs())
def test_operations_of_the_model_are_those_of_all_devices(run: TrainingRun) -> None:
    """With fused attention: the others compute scores that nobody needs."""
    tallies = oracle(run).tallies()
    own = sum(tally.product_flops + tally.score_flops for tally in tallies)
    ranks = run.strategy.devices // run.strategy.pp
    found = float(counted(run, 4).values["model_flops"])
    shared = run.strategy.tp > run.model.kv_heads  # keys are computed several times
    if run.strategy.flash and not shared:
        assert found == 3 * own * ranks
    else:
        assert found < 3 * own * ranks


COPIED = TrainingRun(
    Transformer("copied", 4, 24, 4, 2, 32, True, 64, 5),
    Batch(24, 16),
    Strategy(tp=2, pp=2, dp=4, cp=2, zero=1, dp_replicate=2),
)
"""Copies of what ZeRO shards, and shards over both dp and cp."""


@given(training_runs(), st.sampled_from([2, 4]))
@example(COPIED, 2)
@example(replace(COPIED, strategy=replace(COPIED.strategy, zero=3)), 4)
def test_requests(run: TrainingRun, gradient_bytes: int) -> None:
    columns, found = StrategyColumns.of([run.strategy]), counted(run, gradient_bytes)
    tallies = oracle(run, gradient_bytes).tallies()
    micro_batches = round(found.of_strategy("micro_batches")[0])
    for at, stage in enumerate(found.stages.index[0]):
        calls: Counter[Call] = Counter()
        for one in request_columns(found, columns):
            times = round(one.calls[0, at]) * (1 if one.once else micro_batches)
            calls[(one.kind.value, one.axes, int(one.payload_bytes[0]))] += times
        assert +calls == tallies[stage].calls


@given(training_runs())
def test_gradients_kept_as_shards_are_reduced_for_every_micro_batch(run: TrainingRun) -> None:
    """Each matrix of the stage; whole ones wait, and are reduced at once in the end."""
    columns, found = StrategyColumns.of([run.strategy]), counted(run, 4)
    micro_batches = round(found.of_strategy("micro_batches")[0])
    ranks = run.strategy.dp * run.strategy.cp
    requests = {one.name: one for one in request_columns(found, columns)}
    each = [requests[f"dp {name} scatter"] for name in ("layer", "ends")]
    atonce = [requests[name] for name in ("dp gradients", "dp gradients scatter")]
    for at in range(found.stages.index.shape[1]):
        layers, elements = (found.of_stage(name)[0, at] for name in ("n", "stage_parameters"))
        often = [0.0 if one.once else one.calls[0, at] for one in each]
        seldom = sum(one.calls[0, at] for one in atonce if one.once)
        sharded = ranks > 1 and run.strategy.zero >= 2
        assert often[0] == (layers if sharded else 0)
        assert seldom == (ranks > 1 and run.strategy.zero < 2)
        sent = sum(
            calls * int(one.payload_bytes[0]) for calls, one in zip(often, each, strict=True)
        )
        assert micro_batches * sent == (micro_batches * 4 * elements if sharded else 0)


@given(training_runs())
@example(COPIED)
def test_requests_of_a_strategy_are_those_of_the_stage_that_asks_most(run: TrainingRun) -> None:
    tallies = oracle(run).tallies()
    sizes = dict(zip(AXES, run.strategy.sizes, strict=True))
    sizes |= dict(zip(SHARD_AXES, run.strategy.shard_sizes, strict=True))
    shards = {"dp": "dps"} if run.strategy.dp_replicate > 1 else {}
    requests = axis_requests(run.model, run.batch, run.strategy, framework(4))

    def own(call: Call) -> tuple[str, tuple[str, ...]]:
        named = (shards.get(axis, axis) for axis in call[1])
        return call[0], tuple(axis for axis in named if sizes[axis] > 1)

    assert len({one.name for one in requests}) == len(requests)
    for axes, kind in {(one.axes, one.kind) for one in requests}:
        assert all(sizes[axis] > 1 for axis in axes)
        mine = sum(one.calls for one in requests if (one.axes, one.kind) == (axes, kind))
        asked = [
            sum(n for call, n in tally.calls.items() if own(call) == (kind.value, axes))
            for tally in tallies
        ]
        assert max(asked) <= mine <= sum(asked)


@given(st.lists(training_runs(), min_size=2, max_size=4))
def test_columns_are_strategies_one_beside_the_other(runs: list[TrainingRun]) -> None:
    strategies = [run.strategy for run in runs]
    columns = StrategyColumns.of(strategies)
    assert [columns.strategy(row) for row in range(len(columns))] == strategies
    even = [row for row, one in enumerate(strategies) if not one.split]
    taken = columns.take(np.array(even, dtype=np.int64))
    assert [taken.strategy(n) for n in range(len(taken))] == [strategies[row] for row in even]
