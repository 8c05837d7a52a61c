"""Predictions of iterations: a count by hand, placements, parts, and what is refused."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import PriceBasis
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import estimate_range, predict, predict_with
from p2smt.training.pipeline import axis_requests, call_seconds, combine, default_placement, work
from p2smt.training.prediction import Prediction, RunEstimate
from p2smt.training.strategy import AXES, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.strategies import clusters
from tests.strategies.trainings import efficiencies, training_runs
from tests.training.devices import SMALL_DEVICE

PLAIN = Framework("plain", False, 0.0, False, False, 4)
WHOLE = Efficiency("whole", "any", PLAIN, 1.0, 0.0, 1, 0.0)
TINY = Transformer("tiny", 1, 4, 2, 1, 8, True, 16, 2)
"""A layer of 4 x (4 + 2 + 2), 4 x 4, two 4 x 8 and 8 x 4; ends of 4 x 16."""


def switches(*sizes: int, device: Device | None = SMALL_DEVICE) -> Topology:
    """Levels of switches, each ten times as fast as the one outside it."""
    levels = [(f"l{n}", size, 1e6 * 10**n) for n, size in enumerate(sizes)]
    return clusters.switches(*levels, device=device)


def alone(peak: float, bandwidth: float, **fields: object) -> Prediction:
    """The tiny model on one device: 2 sequences of 4 tokens, one after the other."""
    strategy = replace(Strategy(), **fields)  # type: ignore[arg-type]
    device = Device("one", (("bf16", peak),), bandwidth, 10**9)
    return predict_with(TrainingRun(TINY, Batch(2, 4), strategy), device, WHOLE, {})


def test_arithmetic_by_hand() -> None:
    """Products of a layer: 2 x 4 tokens x (4 x 8 + 4 x 4 + 4 x 16 + 8 x 4) = 1152.

    Half of the scores, twice 2 x 4 x 4 x 4 / 2 = 128.  Logits 2 x 4 x 4 x 16 = 512.  Backward twice
    that, of fused attention 2.5 times.
    """
    found = alone(1000, 1e12)
    assert found.time.compute_s == pytest.approx(2 * 5.440, rel=1e-6)
    assert found.model_flops == 2 * 3 * (1152 + 128 + 512)
    assert found.tokens_per_s == pytest.approx(8 / found.time.iteration_s)
    assert found.utilization == pytest.approx(2 * 5376 / (2 * 5440), rel=1e-6)
    full = alone(1000, 1e12, recompute=Recompute.FULL)
    assert full.time.compute_s == pytest.approx(2 * (5.440 + 1.152 + 0.128), rel=1e-6)
    selective = alone(1000, 1e12, recompute=Recompute.SELECTIVE)
    assert selective.time.compute_s == pytest.approx(2 * (5.440 + 0.128), rel=1e-6)
    slower = replace(WHOLE, framework=replace(PLAIN, attention=0.5))
    run = TrainingRun(TINY, Batch(2, 4), Strategy())
    device = Device("one", (("bf16", 1000),), 1e12, 10**9)
    half = predict_with(run, device, slower, {})
    assert half.time.compute_s == pytest.approx(2 * (5.440 + 3.5 * 0.128), rel=1e-6)
    scores = alone(1000, 1e12, flash=False)  # all of them, backward twice
    assert scores.time.compute_s == pytest.approx(2 * (3 * 1.664 + 3 * 0.256), rel=1e-6)


def test_memory_traffic_by_hand() -> None:
    """Forward: products 160 + 96 + 288 + 160, fused attention 96, the rest 352 + 192 + 96.

    Embedding 64; logits 288, their loss 18 x 64 = 1152, backward 14 x 64 = 896.  144 + 128 elements
    of parameters, 30 bytes each.
    """
    found = alone(1e15, 1000)
    forward = 704 + 96 + 640 + 64 + 288 + 1152
    backward = 2 * (704 + 640) + 2.5 * 96 + 2 * 64 + 2 * 288 + 896
    assert found.time.compute_s == pytest.approx(2 * (forward + backward) / 1000)
    assert found.time.optimizer_s == pytest.approx(272 * 30 / 1000)
    assert found.time.iteration_s == found.time.compute_s + found.time.optimizer_s
    unfused = alone(1e15, 1000, flash=False)  # 2 x 2 (16 + 8 + 32) for two products, 9 x 32
    more = 3 * (2 * 112 + 288) - 3.5 * 96
    assert unfused.time.compute_s - found.time.compute_s == pytest.approx(2 * more / 1000)


@pytest.mark.parametrize(("zero", "elements"), [(0, 272), (1, 272 / 6), (3, 272 / 6)])
def test_a_sharded_optimizer_steps_over_its_part(zero: int, elements: float) -> None:
    columns = StrategyColumns.of([Strategy(dp=3, cp=2, zero=zero)])
    done = work(TINY, Batch(3, 4), columns, SMALL_DEVICE, WHOLE)
    assert done.optimizer_s[0] == pytest.approx(30 * elements / 1e9)


def test_a_layer_takes_its_overhead() -> None:
    run = TrainingRun(replace(TINY, layers=3), Batch(2, 4), Strategy())
    slow = replace(WHOLE, layer_s=10.0)
    found, without = (predict_with(run, SMALL_DEVICE, e, {}).time.compute_s for e in (slow, WHOLE))
    assert found - without == pytest.approx(2 * 3 * 10.0)


@given(training_runs(), efficiencies())
def test_parts_make_the_whole(run: TrainingRun, efficiency: Efficiency) -> None:
    topology = switches(run.strategy.devices)
    found = predict(run, topology, efficiency)
    columns = StrategyColumns.of([run.strategy])
    done = work(run.model, run.batch, columns, SMALL_DEVICE, efficiency)
    requests = axis_requests(run.model, run.batch, run.strategy, efficiency.framework)
    call_s = {one.name: call_seconds(topology, run.strategy, one, None) for one in requests}
    assert found.time.iteration_s == pytest.approx(combine(done, call_s)[0])
    shown: defaultdict[str, float] = defaultdict(float)
    for axis, seconds in found.time.communication_s:
        shown[axis.removesuffix("r")] += seconds  # dpr: between the copies of shards
    for axis, seconds in shown.items():
        mine = [one.visible_s for one in found.requests if one.request.name.split()[0] == axis]
        assert seconds == pytest.approx(sum(mine), abs=1e-12)
    for one in found.requests:
        assert one.visible_s + one.hidden_s == pytest.approx(one.call_s * one.request.calls)
    assert found.memory.total == pytest.approx(done.memory_bytes[0], abs=4)
    assert found.devices == run.strategy.devices


@given(training_runs(), efficiencies())
def test_an_iteration_is_as_long_as_its_calls_may_be_together(
    run: TrainingRun, efficiency: Efficiency
) -> None:
    """Its ends are those of the model where every call is as short, or as long, as it may be."""
    topology = switches(run.strategy.devices)
    found = predict(run, topology, efficiency)
    whole = RunEstimate(run, topology, efficiency, None, found, 1)
    within = estimate_range(whole)
    if within.iteration is None:
        assert not found.requests
        return
    low, high = within.iteration.low_s, within.iteration.high_s
    assert low <= found.time.iteration_s <= high
    assert within.iteration.basis is PriceBasis.ASSUMED
    for one in found.requests:
        call = within.calls[one.request.name]
        assert call.low_s <= one.call_s == call.seconds <= call.high_s
    for end, seconds in ((0, low), (1, high)):
        call_s = {name: (one.low_s, one.high_s)[end] for name, one in within.calls.items()}
        again = predict_with(run, topology.known_device, efficiency, call_s)
        assert again.time.iteration_s == seconds


@given(training_runs())
def test_the_default_placement_is_that_of_megatron(run: TrainingRun) -> None:
    """Prices of the matrix, and those of its ranks device by device, are one."""
    topology = switches(1, run.strategy.devices)
    matrix = Placement(tuple((1, size) for size in run.strategy.sizes))
    assert default_placement(topology, run.strategy) == matrix
    assert predict(run, topology, WHOLE, matrix) == predict(run, topology, WHOLE)


def test_axes_lie_in_megatrons_order_outermost_first() -> None:
    strategy = Strategy(pp=2, dp=3, cp=2, tp=4)
    found = default_placement(switches(6, 2, 4), strategy)
    assert AXES == ("pp", "dp", "cp", "tp")
    assert found == Placement(((2, 1, 1), (3, 1, 1), (1, 2, 1), (1, 1, 4)))


def test_ranks_that_no_matrix_expresses_have_prices_too() -> None:
    """Two groups of tp over three nodes of four: the middle node has a part of each."""
    model = replace(TINY, heads=6, kv_heads=6, ffn=12)
    run = TrainingRun(model, Batch(2, 4), Strategy(tp=6, dp=2))
    topology = switches(3, 4)
    assert default_placement(topology, run.strategy) is None
    found = predict(run, topology, WHOLE)
    inside = predict(run, switches(2, 6), WHOLE)
    by_name = {one.request.name: one.call_s for one in inside.requests}
    for one in found.requests:
        if one.request.axes == ("tp",):
            assert one.call_s > by_name[one.request.name]


def test_a_placement_changes_the_time() -> None:
    run = TrainingRun(replace(TINY, kv_heads=2), Batch(4, 4), Strategy(tp=2, dp=2))
    tp_outside = Placement(((1, 1), (1, 2), (1, 1), (2, 1)))
    topology = switches(2, 2)
    found = predict(run, topology, WHOLE, tp_outside).time
    assert (
        dict(found.communication_s)["tp"]
        > dict(predict(run, topology, WHOLE).time.communication_s)["tp"]
    )


@pytest.mark.parametrize(
    ("strategy", "placement", "message"),
    [
        (Strategy(dp=4), None, "rule devices"),
        (Strategy(dp=2), Placement(((2, 1), (1, 1), (1, 1), (1, 1))), "row products"),
        (Strategy(dp=2, dtype="fp16"), None, "no peak of fp16"),
        (Strategy(pp=2), None, "rule layers"),
    ],
)
def test_what_cannot_run_is_refused(
    strategy: Strategy, placement: Placement | None, message: str
) -> None:
    device = Device("one", (("bf16", 1e9),), 1e9, 10**9)
    with pytest.raises(InputError, match=message):
        predict(
            TrainingRun(replace(TINY, layers=5), Batch(4, 4), strategy),
            switches(2, 1, device=device),
            WHOLE,
            placement,
        )


def test_a_topology_that_names_no_device_is_refused() -> None:
    run = TrainingRun(TINY, Batch(2, 4), Strategy(dp=2))
    with pytest.raises(InputError, match="does not say what a device can do"):
        predict(run, switches(2, device=None), WHOLE)
