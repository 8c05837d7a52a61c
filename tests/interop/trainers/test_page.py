"""The page of trainers shows what is written, and names all that is missing."""

from __future__ import annotations

import re

import pytest

from p2smt.interop.trainers.option_table import TRAINERS, find_trainer
from p2smt.training.strategy import Batch, Recompute, Strategy
from tests.imports import ROOT
from tests.interop.trainers.cases import LLAMA_70B

PAGE = ROOT / "docs" / "launchers" / "trainers.md"
BATCH = Batch(1024, 8192)
SHOWN = {
    "megatron": Strategy(tp=8, pp=2, dp=32, vpp=20, sequence_parallel=True, zero=1),
    "torchtitan": Strategy(
        tp=4, pp=4, dp=4, sequence_parallel=True, zero=3, recompute=Recompute.FULL
    ),
    "deepspeed": Strategy(pp=8, dp=8, zero=1, recompute=Recompute.FULL),
}


def sections() -> dict[str, str]:
    """The parts of the page by their headings."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_what_is_written(name: str) -> None:
    trainer = find_trainer(name)
    section = sections()[trainer.title]
    (block,) = re.findall(r"^```(?:text|json)\n(.*?)^```", section, re.S | re.M)
    written = trainer.export(LLAMA_70B, BATCH, SHOWN[name])
    assert block == written.text
    (given,) = re.findall(r"`((?:\w+=\w+,)+\w+=\w+)`", section)
    keys = dict(item.split("=") for item in given.split(","))
    strategy = SHOWN[name]
    values = {
        **{key: getattr(strategy, key) for key in ("tp", "pp", "dp", "vpp", "zero")},
        "mbs": strategy.micro_batch,
        "sp": int(strategy.sequence_parallel),
        "recompute": strategy.recompute.value,
    }
    assert keys == {key: str(values[key]) for key in keys}
    unsaid = {key: value for key, value in values.items() if key not in keys}
    assert unsaid.items() <= {"tp": 1, "vpp": 1, "sp": 0, "recompute": "none"}.items()


def test_the_page_shows_the_configuration_in_python() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", sections()["TorchTitan"], re.S | re.M)
    trainer = find_trainer("torchtitan")
    assert block == trainer.export(LLAMA_70B, BATCH, SHOWN["torchtitan"], python=True).text


def test_the_page_names_all_that_is_missing() -> None:
    for trainer in TRAINERS:
        text = " ".join(sections()[trainer.title].split())
        assert [each.words for each in trainer.missing if each.words not in text] == []
        assert trainer.commit[:10] in text


def test_the_page_shows_every_trainer() -> None:
    assert [*SHOWN] == [trainer.name for trainer in TRAINERS]
    for note in find_trainer("deepspeed").export(LLAMA_70B, BATCH, SHOWN["deepspeed"]).notes[1:]:
        assert f"    {note}\n" in PAGE.read_text()
