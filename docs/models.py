"""Writes the tables of models and families into docs/models.md.  Usage: python docs/models.py"""

from __future__ import annotations

from pathlib import Path

from experiments.testbed.written.marked import filled
from p2smt.interop.config_families import FAMILIES
from p2smt.report.training.model_list import layers_text
from p2smt.training.model_file import read_model
from p2smt.training.model_names import model_names
from p2smt.training.transformer import Transformer

PAGE = Path(__file__).parent / "models.md"
HEAD = "| model | parameters | active | layers | hidden | heads | vocab | tied |\n"


def row(model: Transformer) -> str:
    """One line of the table of models."""
    heads = f"{model.heads} of {model.head_size}"
    heads += "" if model.mla else f", {model.kv_heads} kv"
    numbers = (model.parameters, model.active_parameters)
    sizes = [f"{number / 1e9:.4g} B" for number in numbers]
    cells = (*sizes, layers_text(model), model.hidden, heads, model.vocab)
    return f"| `{model.name}` | {' | '.join(map(str, cells))} | {'yes' if model.tied else 'no'} |\n"


def models() -> str:
    """The table of all models that come with the package."""
    found = [read_model(name) for name in model_names()]
    return HEAD + "|---" * 8 + "|\n" + "".join(map(row, found))


def families() -> str:
    """The list of families."""
    return ", ".join(f"`{name}`" for name in sorted(FAMILIES)) + "\n"


def page(text: str) -> str:
    """The page's text with the tables of now."""
    return filled(filled(text, "models", models()), "families", families())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
