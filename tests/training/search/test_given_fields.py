"""What is given to all strategies of a search: each has it, and its price."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.option_table import lacks_of
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import predict
from p2smt.training.search.choices import Choices
from p2smt.training.search.plan import plan
from p2smt.training.search.question import PlanQuestion, SpaceLimits, searched_field
from p2smt.training.search.strategies import space_of
from p2smt.training.transformer import Experts
from p2smt.training.validity import violations
from tests.refusals import refusal
from tests.training.search.test_plan_answers import SMALL

WIDE = replace(SMALL, space=replace(SMALL.space, zero=None))
GIVEN = replace(WIDE, optimizer_bytes=8)


def test_every_strategy_has_what_is_given_and_can_run() -> None:
    found = space_of(GIVEN, Choices.of(GIVEN))
    every = [found.strategy(row) for row in range(len(found))]
    assert {one.optimizer_bytes for one in every} == {8}
    assert min(found.zero) == 1
    for one in every:
        assert violations(SMALL.model, SMALL.batch, one, SMALL.topology.devices) == ()
    usual = space_of(WIDE, Choices.of(WIDE))
    assert len(found) == np.count_nonzero(usual.zero > 0)


def test_the_best_is_what_an_estimate_says_and_needs_less() -> None:
    answer, usual = plan(GIVEN), plan(replace(WIDE, space=replace(WIDE.space, zero=(1, 2, 3))))
    assert answer.best is not None
    assert usual.best is not None
    best = answer.best
    run = TrainingRun(SMALL.model, SMALL.batch, best.strategy)
    said = predict(run, SMALL.topology, SMALL.efficiency, best.placement)
    assert said.time.iteration_s == pytest.approx(best.iteration_s)
    assert best.iteration_s < usual.best.iteration_s


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"optimizer_bytes": 3}, "from 4 to 12"),
        ({"optimizer_bytes": 8, "space": SpaceLimits(zero=(0, 1))}, "(ZeRO) alone"),
        ({"optimizer_bytes": 8, "fixed": (("zero", 0),)}, "(ZeRO) alone"),
        ({"imbalance": 1.5}, "has none"),
        ({"fp8_attention": True}, "take dtype=fp8"),
        ({"imbalance": 0.5}, "1 (balanced) or more"),
    ],
)
def test_what_cannot_be_given_is_refused(change: dict[str, object], part: str) -> None:
    fields = {name: getattr(SMALL, name) for name in PlanQuestion.__dataclass_fields__}
    assert part in refusal(lambda: PlanQuestion(**fields | change))


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("optimizer_bytes", "give --optimizer-bytes"),
        ("imbalance", "give --imbalance"),
        ("dtype", "give --dtype"),
        ("offload", "estimate --strategy takes offload"),
    ],
)
def test_what_is_given_is_not_searched(key: str, remedy: str) -> None:
    assert remedy in refusal(searched_field, key, key)


@pytest.mark.parametrize(
    ("trainer", "stages"), [(MEGATRON, (0, 1)), (DEEPSPEED, (0, 1)), (TORCHTITAN, (0, 1, 2, 3))]
)
def test_what_shards_gradients_with_the_optimizer_is_searched_with_it(
    trainer: Trainer, stages: tuple[int, ...]
) -> None:
    """Of a mixture, of which the stages of published runs are searched."""
    mixture = replace(WIDE.model, experts=Experts(8, 2, 48))
    lacks = lacks_of(trainer, WIDE.batch)
    asked = replace(WIDE, model=mixture, launcher=trainer.name, lacks=lacks)
    assert Choices.of(asked).choices["zero"] == stages
