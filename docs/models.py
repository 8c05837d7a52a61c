"""Writes the tables of models and families into docs/models.md.  Usage: python docs/models.py"""

from __future__ import annotations

from pathlib import Path

from p2smt.interop.model_config import FAMILIES
from p2smt.training.model_file import model_names, read_model
from p2smt.training.transformer import Transformer

PAGE = Path(__file__).parent / "models.md"
BEGIN, END = "<!-- {}: written by docs/models.py -->\n", "<!-- {} end -->\n"
HEAD = "| model | parameters | layers | hidden | heads | kv_heads | ffn | gated | vocab | tied |\n"


def row(model: Transformer) -> str:
    """One line of the table of models."""
    heads = f"{model.heads} of {model.head_size}"
    flags = ["yes" if flag else "no" for flag in (model.gated, model.tied)]
    sizes = (model.layers, model.hidden, heads, model.kv_heads, model.ffn)
    cells = (f"`{model.name}`", f"{model.parameters / 1e9:.4g} B", *sizes, flags[0])
    return f"| {' | '.join(map(str, (*cells, model.vocab, flags[1])))} |\n"


def models() -> str:
    """The table of all models that come with the package."""
    found = [read_model(name) for name in model_names()]
    return HEAD + "|---" * 10 + "|\n" + "".join(map(row, found))


def families() -> str:
    """The list of families."""
    return ", ".join(f"`{name}`" for name in FAMILIES) + "\n"


def filled(text: str, name: str, new: str) -> str:
    """The text with what stands between the marks of that name replaced."""
    begin, end = BEGIN.format(name), END.format(name)
    before, _, rest = text.partition(begin)
    return before + begin + new + end + rest.partition(end)[2]


def page(text: str) -> str:
    """The page's text with the tables of now."""
    return filled(filled(text, "models", models()), "families", families())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
