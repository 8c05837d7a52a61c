"""docs/models.md agrees with the code: its tables, its example, and the keys that it names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from p2smt.files.yaml_text import load_yaml
from p2smt.plans.training.file_model import TransformerModel
from p2smt.training.model_file import model_from_data, read_model
from p2smt.training.transformer import Transformer
from tests.pages import script

DOCS = Path(__file__).resolve().parents[3] / "docs"
TEXT = (DOCS / "models.md").read_text()


def test_the_tables_are_up_to_date() -> None:
    assert script(DOCS / "models.py").page(TEXT) == TEXT, "run: python docs/models.py"


def test_the_example_is_a_model_with_every_key() -> None:
    examples = [load_yaml(text, "example") for text in re.findall(r"```yaml\n(.*?)```", TEXT, re.S)]
    data, mixture = (dict(one) for one in examples if isinstance(one, dict))
    told = {*data, *mixture, *re.findall(r"`(\w+)`", TEXT)}
    assert told >= set(TransformerModel.model_fields)
    packaged = replace(read_model("deepseek-v3"), name="example", sources=())
    assert model_from_data(mixture, "example") == packaged
    sources = ("its paper, table 2",)
    expected = Transformer(
        "mine", 32, 4096, 32, 8, 14_336, True, 128_256, 128, tied=False, sources=sources
    )
    assert model_from_data(data, "example") == expected
