"""What trainers' files are read to: what was written, and what public files say."""

from __future__ import annotations

from dataclasses import replace

from _pytest.tmpdir import TempPathFactory
from hypothesis import assume, given

from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.launch import Launch
from p2smt.interop.trainers.launches import read_launch
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.strategy import Recompute, Strategy
from p2smt.training.transformer import Transformer
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
