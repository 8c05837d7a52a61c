"""The page of trainers shows what is written, and names all that is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from p2smt.interop.trainers.option_table import TRAINERS, find_trainer
from p2smt.training.model_file import read_model
from p2smt.training.strategy import Batch, parse_strategy
from tests.imports import ROOT

PAGE = ROOT / "docs" / "launchers" / "trainers.md"


BATCH = Batch(1024, 8192)


@dataclass(frozen=True)
class Shown:
    """A block of the page: what is exported, and whether as Python where both are written."""

    strategy: str
    model: str = "llama-3-70b"
    batch: Batch = BATCH
    python: bool = False

    def text(self, name: str) -> str:
        run = (read_model(self.model), self.batch, parse_strategy(self.strategy))
        return find_trainer(name).export(*run, python=self.python).text


DEEPSEEK = Shown(
    "pp=4,vpp=4,dp=64,zero=1,ep=64,dispatcher=flex,overlap=1,recompute=mla_up_proj,dtype=mxfp8",
    "deepseek-v3",
    Batch(2048, 4096),
)
SHOWN = {
    "megatron": [Shown("tp=8,pp=2,dp=32,vpp=20,mbs=1,sp=1,zero=1"), DEEPSEEK],
    "megatron-bridge": [DEEPSEEK],
    "torchtitan": [
        Shown("tp=4,pp=4,dp=4,mbs=1,sp=1,zero=3,recompute=full"),
        Shown("tp=2,dp=32,sp=1,zero=3,ep=8,recompute=full", "qwen3-30b-a3b", python=True),
    ],
    "deepspeed": [Shown("pp=8,dp=8,mbs=1,zero=1,recompute=full")],
}


def sections() -> dict[str, str]:
    """The parts of the page by their headings."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_what_is_written(name: str) -> None:
    section = sections()[find_trainer(name).title]
    blocks = re.findall(r"^```(?:text|json|python)\n(.*?)^```", section, re.S | re.M)
    assert blocks == [shown.text(name) for shown in SHOWN[name]]
    told = re.findall(r"`((?:\w+=[\w+]+,)+\w+=\w+)`", section)
    assert told == [shown.strategy for shown in SHOWN[name]]


def test_the_page_names_all_that_is_missing() -> None:
    shared = {feature.words for feature in find_trainer("megatron").missing}
    for trainer in TRAINERS:
        text = " ".join(sections()[trainer.title].split())
        known = shared if trainer.name == "megatron-bridge" else set()
        assert [
            each.words
            for each in trainer.missing
            if each.words not in known and each.words not in text
        ] == []
        assert trainer.commit[:10] in text


def test_the_page_shows_every_trainer() -> None:
    assert [*SHOWN] == [trainer.name for trainer in TRAINERS]
    (shown,) = SHOWN["deepspeed"]
    run = (read_model(shown.model), shown.batch, parse_strategy(shown.strategy))
    for note in find_trainer("deepspeed").export(*run).notes[1:]:
        assert f"    {note}\n" in PAGE.read_text()
