"""What is written starts the run that was asked for; what is refused is refused by a rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.trainers.option_table import TRAINERS, find_trainer, lacks_of
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.efficiencies.frameworks import framework
from p2smt.training.strategy import RARE_FIELDS, Batch, Recompute, Strategy, strategy_text
from p2smt.training.transformer import Transformer
from p2smt.training.validity import violations
from tests.interop.trainers.cases import (
    LLAMA_70B,
    ODD,
    ORACLE_OF,
    PLAIN,
    QWEN_SMALL,
    Run,
    easy_runs,
    runs,
    same_run,
)
from tests.interop.trainers.started import Refused
from tests.refusals import refusal
from tests.tiers import examples_of

MANY = examples_of(300)
each_trainer = pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer.name)
BATCH = Batch(64, 4096)


Need = tuple[str, str, Transformer, Strategy]
"""A trainer, words on what it lacks, and a model and strategy that need no more than that."""


def starts(trainer: Trainer, run: Run, written: Exported) -> bool:
    """Whether the trainer, by the oracle, runs what was asked for."""
    try:
        found = ORACLE_OF[trainer.name](run[0].seen(run[1].tokens), run[2], written)
    except Refused:
        return False
    return same_run(found, run)


def check_missing_alone(trainer: Trainer, word: str, run: Run) -> None:
    """Whether a valid run is refused for one thing, and would not start if it were written."""
    (missing,) = trainer.lacks(*run)
    assert word in missing
    assert violations(*run, run[2].devices) == ()
    assert not forced(trainer, run)


def forced(trainer: Trainer, run: Run) -> bool:
    """The same of what would be written if nothing were refused; some have no words for it."""
    try:
        model, batch, strategy = run
        return starts(trainer, run, trainer.write(model.seen(batch.tokens), batch, strategy, None))
    except KeyError:
        return False


@settings(max_examples=MANY)
@given(run=runs())
def test_what_is_written_starts_that_run_and_what_is_refused_would_not(run: Run) -> None:
    assert violations(*run, run[2].devices) == ()
    for trainer in TRAINERS:
        if trainer.lacks(*run):
            with pytest.raises(InputError, match="lacks"):
                trainer.export(*run)
            assert not forced(trainer, run), (trainer.name, trainer.lacks(*run))
        else:
            assert starts(trainer, run, trainer.export(*run)), trainer.export(*run)


@each_trainer
def test_strategies_that_suit_a_trainer_are_mostly_written(trainer: Trainer) -> None:
    tried: list[bool] = []

    @settings(max_examples=MANY // 2)
    @given(run=easy_runs(trainer.name))
    def each(run: Run) -> None:
        tried.append(not trainer.lacks(*run))
        assert forced(trainer, run) == tried[-1], trainer.lacks(*run)

    each()
    assert sum(tried) * 3 >= len(tried)


GOOD = Strategy(tp=2, pp=4, dp=2, zero=3)
WIDE = replace(LLAMA_70B, heads=128, kv_heads=128)
LONG_RINGS = Strategy(tp=128, cp=32, sequence_parallel=True, zero=3)
NEEDS: list[Need] = [
    ("megatron", "context", LLAMA_70B, Strategy(cp=2, flash=False)),
    ("torchtitan", "not gated", PLAIN, Strategy(dp=2, zero=3)),
    ("torchtitan", "tied", QWEN_SMALL, replace(GOOD, tp=1)),
    ("torchtitan", "kv_heads", LLAMA_70B, replace(GOOD, tp=16)),
    ("torchtitan", "vocabulary", replace(ODD, kv_heads=16, vocab=50), replace(GOOD, tp=16, pp=1)),
    ("torchtitan", "whose tokens", WIDE, LONG_RINGS),
    ("torchtitan", "multiple of 128", LLAMA_70B, Strategy(cp=64, zero=3)),
    ("torchtitan", "fewer micro-batches", LLAMA_70B, replace(GOOD, pp=4, dp=32)),
    ("torchtitan", "ZeRO-1", LLAMA_70B, replace(GOOD, zero=1)),
    ("torchtitan", "ZeRO-0", LLAMA_70B, Strategy(cp=2)),
    ("torchtitan", "not fused", LLAMA_70B, replace(GOOD, flash=False)),
    ("torchtitan", "attention alone", LLAMA_70B, replace(GOOD, recompute=Recompute.SELECTIVE)),
    ("torchtitan", "different sizes", LLAMA_70B, replace(GOOD, split=(20, 19, 20, 21))),
    ("torchtitan", "training in fp16", LLAMA_70B, replace(GOOD, dtype="fp16")),
    ("deepspeed", "rings", LLAMA_70B, Strategy(cp=2)),
    ("deepspeed", "interleaved", LLAMA_70B, Strategy(pp=2, vpp=2)),
    ("deepspeed", "ZeRO-2 and 3", LLAMA_70B, Strategy(pp=2, dp=2, zero=2)),
    ("deepspeed", "AutoTP has no pipeline", LLAMA_70B, Strategy(pp=2, tp=2)),
    ("deepspeed", "sequence parallelism", LLAMA_70B, Strategy(tp=2, sequence_parallel=True)),
    ("deepspeed", "beyond kv_heads", LLAMA_70B, Strategy(tp=16)),
    ("deepspeed", "attention alone", LLAMA_70B, Strategy(recompute=Recompute.SELECTIVE)),
    ("deepspeed", "different sizes", LLAMA_70B, Strategy(pp=2, split=(39, 41))),
]


@pytest.mark.parametrize(("name", "word", "model", "strategy"), NEEDS)
def test_each_thing_that_is_missing_is_missing_alone_and_is_a_rule(
    name: str, word: str, model: Transformer, strategy: Strategy
) -> None:
    check_missing_alone(find_trainer(name), word, (model, BATCH, strategy))


def test_sequences_are_as_long_as_the_configuration_takes() -> None:
    strategy = Strategy(dp=2, zero=3)
    for tokens, fits in ((40960, True), (40968, False)):
        run = (QWEN_SMALL, Batch(2, tokens), strategy)
        assert (find_trainer("torchtitan").lacks(*run) == ()) == fits
        assert forced(find_trainer("torchtitan"), run) == fits


@each_trainer
def test_an_invalid_strategy_is_refused_by_its_rule(trainer: Trainer) -> None:
    with pytest.raises(InputError, match="tp must divide the 64 heads"):
        trainer.export(LLAMA_70B, BATCH, Strategy(tp=3))


def test_a_refusal_is_one_line_that_names_all_that_is_missing() -> None:
    strategy = Strategy(tp=2, pp=2, dp=2, zero=2, sequence_parallel=True)
    assert refusal(find_trainer("deepspeed").export, LLAMA_70B, BATCH, strategy) == (
        "strategy pp=2,dp=2,cp=1,tp=2: DeepSpeed lacks ZeRO-2 and 3 with pipeline stages; tensor "
        "parallelism with pipeline stages (AutoTP has no pipeline); sequence parallelism between "
        "the matrices of tp; plan with --launcher deepspeed"
    )


def test_trainers_are_found_by_name() -> None:
    assert [find_trainer(trainer.name) for trainer in TRAINERS] == list(TRAINERS)
    with pytest.raises(
        InputError, match=r"launcher 'slurm'.*megatron, megatron-bridge, torchtitan, "
    ):
        find_trainer("slurm")


def test_the_search_asks_with_its_batch() -> None:
    strategy, batch = Strategy(pp=4, dp=32, zero=3), Batch(64, 4096)
    assert lacks_of(find_trainer("torchtitan"), batch)(strategy, LLAMA_70B) == (
        "fewer micro-batches than pipeline stages",
    )
    assert lacks_of(find_trainer("torchtitan"), Batch(128, 4096))(strategy, LLAMA_70B) == ()


@settings(max_examples=MANY // 4)
@given(run=runs())
def test_megatron_overlaps_what_the_prediction_assumes(run: Run) -> None:
    trainer, strategy = find_trainer("megatron"), run[2]
    if trainer.lacks(*run):
        return
    plain = trainer.export(*run)
    assert trainer.export(*run, framework("megatron")) == plain
    written = trainer.export(*run, framework("megatron-core"))
    assert starts(trainer, run, written)
    split = strategy.sequence_parallel
    overlaps = "--tp-comm-overlap" in written.text.splitlines()
    assert overlaps == (split and strategy.dtype == "bf16")
    assert (written.notes != plain.notes) == split
    assert "--overlap-grad-reduce" in written.text.splitlines()
    assert ("--overlap-param-gather" in written.text.splitlines()) == (strategy.zero > 0)


@settings(max_examples=MANY // 4)
@given(run=runs())
@pytest.mark.parametrize("name", ["megatron", "megatron-bridge"])
def test_gradients_have_the_bytes_that_the_prediction_assumes(name: str, run: Run) -> None:
    """By default they are kept in fp32: 2 bytes of a parameter more."""
    trainer, dtype = find_trainer(name), run[2].dtype
    if trainer.lacks(*run):
        return
    narrow = {"megatron": "--grad-reduce-in-bf16", "megatron-bridge": "grad_reduce_in_fp32 = False"}
    for framework_name, size in (("nemo", 2), ("megatron-core", 4)):
        written = trainer.export(*run, framework(framework_name))
        assert starts(trainer, run, written)
        assert framework(framework_name).reduced_bytes("bf16") == size
        assert (narrow[name] in written.text) == (size == 2 and dtype != "fp16")


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(tp=2),
        Strategy(tp=2, sequence_parallel=True, dtype="fp16"),
    ],
)
def test_the_oracle_refuses_an_overlap_of_tp_that_megatron_refuses(strategy: Strategy) -> None:
    trainer, run = find_trainer("megatron"), (LLAMA_70B, BATCH, strategy)
    written = trainer.export(*run)
    assert starts(trainer, run, written)
    assert not starts(trainer, run, replace(written, text=written.text + "--tp-comm-overlap\n"))


@each_trainer
def test_frameworks_of_trainers_are_known(trainer: Trainer) -> None:
    assert [framework(name).name for name in trainer.frameworks] == list(trainer.frameworks)
    core = {"megatron", "megatron-bridge"}  # both train with Megatron Core
    apart = [one for one in TRAINERS if one is not trainer and not {one.name, trainer.name} <= core]
    assert not set(trainer.frameworks) & {name for one in apart for name in one.frameworks}


RARE = [
    Strategy(dp=8, recompute=Recompute.FULL, recompute_layers=2),
    Strategy(dp=8, zero=1, dp_replicate=2),
    Strategy(dp=8, ep=2, shared_overlap=True),
    Strategy(pp=2, dp=4, split=(40, 40), mtp_chunk=2),
    Strategy(dp=8, zero=1, optimizer_bytes=8),
    Strategy(dp=8, offload=0.5),
]


@each_trainer
@pytest.mark.parametrize("strategy", RARE, ids=strategy_text)
def test_what_is_not_told_to_a_trainer_is_not_left_out(
    trainer: Trainer, strategy: Strategy
) -> None:
    usual = Strategy()
    (name,) = (one for one in RARE_FIELDS if getattr(strategy, one) != getattr(usual, one))
    said = f"an option for {name} here"
    assert (said in trainer.lacks(LLAMA_70B, BATCH, strategy)) == (
        name not in trainer.given(strategy)
    )


def test_routing_is_no_option() -> None:
    for trainer in TRAINERS:
        plain, busy = (
            trainer.lacks(LLAMA_70B, BATCH, Strategy(dp=8, ep=2, imbalance=x)) for x in (1.0, 1.5)
        )
        assert plain == busy


def test_megatron_is_told_of_copies_and_moments() -> None:
    plain, given = (
        set(find_trainer("megatron").export(LLAMA_70B, BATCH, strategy).text.splitlines())
        for strategy in (
            Strategy(tp=8, dp=8, sequence_parallel=True, zero=1),
            Strategy(*(8, 1, 8), sequence_parallel=True, zero=1, dp_replicate=4, optimizer_bytes=8),
        )
    )
    assert plain < given
    assert given - plain == {
        "--num-distributed-optimizer-instances 4",
        "--use-precision-aware-optimizer",
        "--exp-avg-dtype bf16",
        "--exp-avg-sq-dtype bf16",
    }


def test_megatron_has_moments_of_two_types_alone() -> None:
    megatron = find_trainer("megatron")
    lacking = [
        size
        for size in range(4, 13)
        if megatron.lacks(LLAMA_70B, BATCH, Strategy(dp=8, zero=1, optimizer_bytes=size))
    ]
    assert lacking == [4, 5, 7, 9, 10, 11]
