"""docs/models.md agrees with the code: its tables, its example, and the keys that it names."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from p2smt.files.yaml_text import load_yaml
from p2smt.training.model_file import TransformerModel, model_from_data
from p2smt.training.transformer import Transformer

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "models.md").read_text()


def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("models", DOCS / "models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_up_to_date() -> None:
    assert tables().page(TEXT) == TEXT, "run: python docs/models.py"


def test_the_example_is_a_model_with_every_key() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    data = load_yaml(example, "example")
    assert isinstance(data, dict)
    assert set(data) == set(TransformerModel.model_fields)
    sources = ("its paper, table 2",)
    expected = Transformer(
        "mine", 32, 4096, 32, 8, 14_336, True, 128_256, 128, tied=False, sources=sources
    )
    assert model_from_data(data, "example") == expected
