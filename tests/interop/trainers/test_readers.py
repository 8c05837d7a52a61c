"""What trainers' files are read to: what was written, and what public files say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from _pytest.tmpdir import TempPathFactory
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.launch import Launch
from p2smt.interop.trainers.launches import read_launch
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import Recompute, Strategy
from p2smt.training.transformer import Transformer
from p2smt.training.validity import violations
from tests.interop.trainers.cases import Run, easy_runs
from tests.interop.trainers.mixtures import mixture_runs


def written_and_read(trainer: Trainer, run: Run) -> tuple[Launch, Strategy]:
    """A launch script of what a trainer is told, read; and the strategy with its layers told."""
    model, batch, strategy = run
    assume(not trainer.lacks(model, batch, strategy))
    text = trainer.export(model, batch, strategy).text
    lines = [line.partition(" #")[0] for line in text.splitlines()]
    script = "torchrun train.py " + " \\\n  ".join(lines)
    named = None if trainer is MEGATRON else model
    told = {"dispatcher": strategy.dispatcher}
    return read_launch(script, told, model=named, devices=strategy.devices), strategy


def same(found: Strategy, asked: Strategy, model: Transformer) -> bool:
    """Whether they are one strategy, however its layers are told."""
    if asked.modules == ("core_attn",):  # by another name
        asked = replace(asked, modules=(), recompute=Recompute.SELECTIVE)
    layers = [chunk_layers(model.layers, one, model.mtp) for one in (found, asked)]
    return layers[0] == layers[1] and replace(found, split=()) == replace(asked, split=())


@given(easy_runs("megatron"))
def test_dense_strategies_for_megatron_are_read_back(run: Run) -> None:
    found, asked = written_and_read(MEGATRON, run)
    assert same(found.strategy, asked, run[0]), (found.strategy, asked)
    assert found.batch == run[1]


@given(mixture_runs("megatron"))
def test_mixtures_for_megatron_are_read_back(run: Run) -> None:
    found, asked = written_and_read(MEGATRON, run)
    assert same(found.strategy, asked, run[0]), (found.strategy, asked)
    assert found.batch == run[1]


@given(easy_runs("torchtitan"))
def test_dense_strategies_for_torchtitan_are_read_back(run: Run) -> None:
    found, asked = written_and_read(TORCHTITAN, run)
    assert same(found.strategy, asked, run[0]), (found.strategy, asked)
    assert found.batch == run[1]


@given(mixture_runs("torchtitan"))
def test_mixtures_for_torchtitan_are_read_back(run: Run) -> None:
    found, asked = written_and_read(TORCHTITAN, run)
    assert same(found.strategy, asked, run[0]), (found.strategy, asked)
    assert found.batch == run[1]


MANY = 1000
ENOUGH = settings(
    max_examples=3 * MANY,  # some are drawn twice
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
DEGREES = ("tp", "pp", "cp", "dp", "vpp", "ep", "etp", "micro_batch")


def cut_experts(run: Run) -> Run:
    """The same with experts that are cut in two, where that is valid."""
    model, batch, strategy = run
    two = replace(strategy, etp=2)
    valid = model.experts and not violations(model, batch, two, two.devices)
    return (model, batch, two) if valid else run


@pytest.mark.exhaustive
@pytest.mark.parametrize("trainer", [MEGATRON, TORCHTITAN], ids=lambda trainer: trainer.name)
def test_a_thousand_strategies_are_read_back(trainer: Trainer) -> None:
    seen: set[tuple[str, Strategy]] = set()
    mixed = mixture_runs(trainer.name)

    @settings(ENOUGH)
    @given(st.one_of(easy_runs(trainer.name), mixed, mixed.map(cut_experts)))
    def each(run: Run) -> None:
        found, asked = written_and_read(trainer, run)
        assert same(found.strategy, asked, run[0]), (found.strategy, asked)
        assert found.batch == run[1]
        seen.add((run[0].name, asked))

    each()
    assert len(seen) >= MANY
    for name in DEGREES:
        assert sum(getattr(one, name) > 1 for _, one in seen) > MANY // 50, name


@given(easy_runs("deepspeed"))
def test_strategies_for_deepspeed_are_read_back(
    tmp_path_factory: TempPathFactory, run: Run
) -> None:
    model, batch, strategy = run
    assume(not DEEPSPEED.lacks(model, batch, strategy))
    path = tmp_path_factory.getbasetemp() / "ds.json"
    path.write_text(DEEPSPEED.export(model, batch, strategy).text)
    told = {"seq": str(batch.tokens), "pp": str(strategy.pp), "recompute": strategy.recompute.value}
    found = read_launch(str(path), told, model=model, devices=strategy.devices)
    assert same(
        replace(found.strategy, flash=strategy.flash, dropout=strategy.dropout), strategy, model
    )
    assert found.batch == batch


SCRIPT = """TP=2
source ./site.sh
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 \\
    --num-attention-heads 8 --vocab-size 1000 --seq-length 1024 --micro-batch-size 1 \\
    --global-batch-size 16 --bf16 --tensor-model-parallel-size $TP
"""


def test_what_a_file_beside_may_set_is_asked_for_and_what_it_cannot_is_said() -> None:
    rule = re.escape("does not say TP (./site.sh may set it); give --set TP=..")
    with pytest.raises(InputError, match=rule):
        read_launch(SCRIPT, {})
    said = "not read, and taken to set nothing else: ./site.sh (--set NAME=VALUE)"
    found = read_launch(SCRIPT, {"TP": "4"})
    assert said in found.assumed
    assert found.strategy.tp == 4
    first, second, rest = SCRIPT.split("\n", 2)
    assert read_launch("\n".join([second, first, rest]), {}).strategy.tp == 2
    for file in ("env/bin/activate", "~/.bashrc", "/etc/profile.d/x.sh", "c/etc/conda.sh"):
        assert read_launch(SCRIPT.replace("./site.sh", file), {}).strategy.tp == 2


def test_a_setting_of_a_variable_that_a_file_lacks_is_said() -> None:
    told = {"TP": "4", "TPP": "2", "--lr": "1e-4"}
    said = [note for note in read_launch(SCRIPT, told).assumed if note.startswith("--set")]
    assert said == ["--set TPP: the command line has nothing of that name"]


@pytest.mark.parametrize(
    ("starter", "ranks"),
    [
        ("torchrun --nnodes 2 --nproc-per-node 8", 16),
        ("srun -N 2 --ntasks-per-node=8 python", 16),
        ("srun -N 2 -n 16 --ntasks-per-node=8 python", 16),
        ("srun --nodes=2 --ntasks=16 docker run -v a -v b image python", 16),
        ("mpirun -np 16 -x A -x B python", 16),
        ("srun -N 2 --ntasks-per-node=1 torchrun --nnodes 2 --nproc-per-node 8", 16),
        ("srun -n 16 bash -c 'exec \"$@\"' - python", 16),
        ("srun -n 2 bash -c 'torchrun --nnodes 2 --nproc-per-node 8 \"$@\"' -", 16),
        ("torchrun --nnodes 1:4 --nproc-per-node gpu", 8),
    ],
)
def test_ranks_are_counted_as_their_starter_makes_them(starter: str, ranks: int) -> None:
    """Where it does not say, as many as there are devices: here 8."""
    script = SCRIPT.replace("source ./site.sh\n", "")
    script = script.replace("torchrun --nproc-per-node 8", starter)
    told = 8 if ranks == 8 else None
    assert read_launch(script, {}, devices=told).devices == ranks


@pytest.mark.parametrize(
    ("options", "dropped"),
    [
        ("", True),
        ("--hidden-dropout 0.1", True),
        ("--attention-dropout 0.1 --hidden-dropout 0.1", True),
        ("--attention-dropout 0 --hidden-dropout 0.1", True),
        ("--attention-dropout 0.0 --hidden-dropout 0", False),
    ],
)
def test_both_rates_of_dropout_are_read(options: str, dropped: bool) -> None:
    found = read_launch(f"{SCRIPT.rstrip()} {options}\n", {"TP": "2"})
    assert found.strategy.dropout is dropped


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("--fp16", "has both --bf16 and --fp16; leave out one of them"),
        ("--swiglu --squared-relu", "has both --swiglu and --squared-relu"),
        (
            "--num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 2",
            "has both --num-layers-per-virtual",
        ),
        (
            "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
            "3: times pp 2 must divide the 4 layers",
        ),
        ("--expert-model-parallel-size 4", "size 4: needs --num-experts"),
    ],
)
def test_options_that_contradict_one_another_are_refused(options: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        read_launch(f"{SCRIPT.rstrip()} {options}\n", {"TP": "2"})
