"""Formulas of memory: against tensors counted one by one, schedules run step by step, the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.efficiency import Framework, TrainingRun
from p2smt.training.formulas.quantities import Quantities, quantities
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.pipelines import most_held, order
from tests.oracles.transformers import Oracle
from tests.strategies.trainings import training_runs


def counted(run: TrainingRun, gradient_bytes: int = 4) -> Quantities:
    framework = Framework("any", False, 0.0, False, False, gradient_bytes, gradient_bytes)
    columns = StrategyColumns.of([run.strategy])
    return quantities(run.model, run.batch, columns, framework)


@given(training_runs())
def test_a_layer_keeps_its_tensors(run: TrainingRun) -> None:
    run = replace(run, strategy=replace(run.strategy, recompute_layers=0))
    kept = counted(run).of_strategy("kept_bytes")[0]
    assert kept == pytest.approx(float(Oracle(run.model, run.batch, run.strategy, 4).kept()))


@given(training_runs())
def test_layers_held_by_schedules(run: TrainingRun) -> None:
    found, strategy = counted(run), run.strategy
    micro_batches = round(found.of_strategy("micro_batches")[0])
    chunks = Oracle(run.model, run.batch, strategy, 4).chunks()
    for at, stage in enumerate(found.stages.index[0].tolist()):
        layers = chunks[stage :: strategy.pp]
        passes = order(stage, strategy.pp, strategy.vpp, micro_batches)
        held = found.of_stage("held_layers")[0, at]
        assert held == pytest.approx(most_held(passes, layers))


@given(training_runs())
def test_bytes_of_layers_held_by_schedules(run: TrainingRun) -> None:
    """Where all chunks compute as many layers again; else the most of both kinds together."""
    found, strategy = counted(run), run.strategy
    oracle = Oracle(run.model, run.batch, strategy, 4)
    micro_batches = round(found.of_strategy("micro_batches")[0])
    again, most = strategy.recompute is Recompute.FULL, strategy.recompute_layers
    for at, stage in enumerate(found.stages.index[0].tolist()):
        layers = oracle.chunks()[stage :: strategy.pp]
        passes = order(stage, strategy.pp, strategy.vpp, micro_batches)
        held = [float(sum(map(oracle.kept, range(count)))) for count in layers]
        names = ("activation_bytes", "ends_kept_bytes", "recomputed_bytes")
        all_, ends, once = (found.of_stage(name)[0, at] for name in names)
        alike = not again or len({min(count, most or count) for count in layers}) == 1
        expected = most_held(passes, held)
        assert all_ - ends - once >= expected * (1 - 1e-12)
        if alike or not most:
            assert all_ - ends - once == pytest.approx(expected)


@dataclass(frozen=True)
class Published:
    """A configuration of arXiv 2205.05198 table 3: sizes of a GPT and how it is spread."""

    layers: int
    hidden: int
    heads: int
    pp: int
    vpp: int
    micro_batch: int

    def run(self, recompute: Recompute, sequence_parallel: bool) -> TrainingRun:
        h, head_size = self.hidden, self.hidden // self.heads
        heads = self.heads
        model = Transformer(
            "gpt", self.layers, h, heads, heads, 4 * h, False, 51200, head_size, tied=True
        )
        strategy = Strategy(
            tp=8,
            pp=self.pp,
            vpp=self.vpp,
            micro_batch=self.micro_batch,
            recompute=recompute,
            sequence_parallel=sequence_parallel,
            flash=False,
        )
        return TrainingRun(model, Batch(self.micro_batch * self.pp * 8, 2048), strategy)


SMALL = Published(layers=48, hidden=6144, heads=64, pp=1, vpp=1, micro_batch=4)
MIDDLE = Published(layers=96, hidden=12288, heads=96, pp=8, vpp=3, micro_batch=1)
LARGE = Published(layers=105, hidden=20480, heads=128, pp=35, vpp=3, micro_batch=1)

# s b h = 2048 * 4 * 6144 = 50,331,648; 2048 * 12288 = 25,165,824; 2048 * 20480 = 41,943,040.
# 5 a s / h: 5 * 64 / 3 = 106.67; 5 * 96 / 6 = 80; 5 * 128 / 10 = 64.
# layers held: 48; 96 (1 + 7 / 24) = 124; 105 (1 + 34 / 105) = 139.
BY_HAND = [
    # equation 2: s b h (10 + 24 / t + 5 a s / (h t)) a layer
    (SMALL, Recompute.NONE, False, 48 * 50_331_648 * (10 + 24 / 8 + 106.6666667 / 8)),
    (MIDDLE, Recompute.NONE, False, 124 * 25_165_824 * (10 + 24 / 8 + 80 / 8)),
    (LARGE, Recompute.NONE, False, 139 * 41_943_040 * (10 + 24 / 8 + 64 / 8)),
    # equation 4: s b h / t (34 + 5 a s / h)
    (SMALL, Recompute.NONE, True, 48 * 6_291_456 * (34 + 106.6666667)),
    (MIDDLE, Recompute.NONE, True, 124 * 3_145_728 * (34 + 80)),
    (LARGE, Recompute.NONE, True, 139 * 5_242_880 * (34 + 64)),
    # equation 6: 34 s b h / t
    (SMALL, Recompute.SELECTIVE, True, 48 * 6_291_456 * 34),
    (MIDDLE, Recompute.SELECTIVE, True, 124 * 3_145_728 * 34),
    (LARGE, Recompute.SELECTIVE, True, 139 * 5_242_880 * 34),
    # section 5: 2 s b h
    (SMALL, Recompute.FULL, False, 48 * 50_331_648 * 2),
    (MIDDLE, Recompute.FULL, False, 124 * 25_165_824 * 2),
    (LARGE, Recompute.FULL, False, 139 * 41_943_040 * 2),
]


@pytest.mark.parametrize(("published", "recompute", "sp", "by_hand"), BY_HAND)
def test_activations_of_layers_are_those_of_the_paper(
    published: Published, recompute: Recompute, sp: bool, by_hand: float
) -> None:
    found = counted(published.run(recompute, sp))
    layers = found.of_stage("held_layers")[0, 0] * found.of_strategy("kept_bytes")[0]
    assert layers == pytest.approx(by_hand, rel=1e-8)


def test_ends_of_the_paper() -> None:
    """Section 4.3: s b h / t (p + 4 (1 + V / h)) beside the layers, on one stage both ends."""
    found = counted(SMALL.run(Recompute.SELECTIVE, True))
    by_hand = 6_291_456 * (1 + 4 * (1 + 51200 / 6144))
    assert found.of_stage("ends_kept_bytes")[0, 0] == pytest.approx(by_hand)
    first = counted(LARGE.run(Recompute.SELECTIVE, True)).of_stage("ends_kept_bytes")[0, 0]
    assert first == pytest.approx(5_242_880 * 70)  # the paper leaves interleaving out: 35


@given(training_runs(), st.sampled_from([2, 4]))
def test_zero_shards_what_its_stage_says(run: TrainingRun, gradient_bytes: int) -> None:
    """16 or 18 bytes an element in all; each part by dp and cp from its stage of ZeRO on."""
    found, strategy = counted(run, gradient_bytes), run.strategy
    ranks = strategy.dp * strategy.cp // strategy.dp_replicate
    elements, layer = found.of_stage("stage_parameters"), found.of_strategy("layer_parameters")[0]
    ends = elements - found.of_stage("n") * layer
    largest = np.maximum(layer, (ends > 0) * run.model.vocab * run.model.hidden / strategy.tp)
    sharded = [elements / ranks if strategy.zero >= stage else elements for stage in (1, 2, 3)]
    whole = [strategy.zero >= stage for stage in (1, 2, 3)]
    expected = {
        "optimizer_bytes": 12 * sharded[0],
        "gradient_bytes": gradient_bytes * (sharded[1] + whole[1] * largest),
        "parameter_bytes": 2 * (sharded[2] + whole[2] * (2 * layer + ends)),
    }
    for name, bytes_ in expected.items():
        assert found.of_stage(name) == pytest.approx(bytes_), name
