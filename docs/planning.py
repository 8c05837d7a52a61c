"""Runs the commands and the piece of planning.md; writes what they print, tables, the picture.

Usage: python docs/planning.py
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from experiments.testbed.written.marked import filled
from experiments.training_runs.fit_kinds import START
from p2smt.cli import run
from p2smt.training.efficiency import LayerConstants
from p2smt.training.formulas.rows import count_rows, kind_rows, second_rows
from p2smt.training.formulas.symbols import KIND_MEANINGS, MEANINGS
from p2smt.training.megatron_rules import GIVEN_RULES, SOURCES
from p2smt.training.validity import MIXTURE_RULES, RULES

PAGE = Path(__file__).parent / "planning.md"
MIXTURES = Path(__file__).parent / "mixtures.md"
PICTURE = Path(__file__).parent / "figures" / "planning.svg"


def page(text: str) -> str:
    """The page with what its commands and its piece print now, and the tables of now."""
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = re.sub(r"```console\n\$ p2smt (.*?)\n(.*?)```", _command, text, flags=re.S)
        PICTURE.write_bytes(Path("plan.svg").read_bytes())
        shown = _printed(lambda: exec(compile(code, PAGE.name, "exec"), {}))
    text = re.sub(r"```text\n(.*?)```", lambda _: f"```text\n{shown}```", text, flags=re.S)
    return with_tables(text)


def with_tables(text: str) -> str:
    """The page with the tables of now."""
    text = filled(text, "rules", rules())
    text = filled(text, "symbols", symbols())
    return filled(text, "formulas", formulas())


def rules() -> str:
    """Every rule of validity by its name, with the names of what has a number."""
    names = ("devices", "heads", "kv_heads", "ffn", "layers", "tokens", "sequences")
    names = (*names, "mamba_heads", "groups")
    named = {name: f"`{name}`" for name in names} | {"ahead": ""}
    rows = ((f"`{rule.name}`", rule.sentence.format(**named), SOURCES[rule.name]) for rule in RULES)
    return _table(("rule", "what must hold", "lines of Megatron-LM"), rows)


def given_rules() -> str:
    """Every rule on what goes with the degrees, and on what is given."""
    names = ("most", "dp", "ed", "name", "experts", "width", "shared_width")
    named = {name: f"`{name}`" for name in names}
    told: dict[str, str] = {"split": "a number for each chunk, whose sum is the layers"}
    told["experts"] = "ep, etp, overlap and dispatcher are of mixtures of experts"
    for rule in MIXTURE_RULES:
        sentence = rule.sentence.format(**named)
        told[rule.name] = f"{told[rule.name]}; {sentence}" if rule.name in told else sentence
    rows = [(f"`{name}`", words, SOURCES[name]) for name, words in told.items()]
    rows += [(f"`{one.name}`", one.sentence.format(**named), one.source) for one in GIVEN_RULES]
    return _table(("rule", "what must hold", "lines of Megatron-LM"), rows)


def symbols() -> str:
    """Every symbol that is given from outside."""
    return _table(("symbol", "meaning"), ((f"`{one.name}`", what) for one, what in MEANINGS))


def formulas() -> str:
    """Every row of the table of formulas."""
    rows = (
        (f"`{row.name}`", f"`{row.expression}`", row.unit, row.meaning, row.source)
        for row in (*count_rows(), *second_rows())
    )
    return _table(("name", "formula", "unit", "meaning", "source"), rows)


def kind_symbols() -> str:
    """Every symbol that models with layers of several kinds have besides."""
    named = ((f"`{one.name}`", what) for one, what in KIND_MEANINGS)
    return _table(("symbol", "meaning"), named)


def kind_formulas(mla: bool) -> str:
    """Every row of their table; of latent attention those alone that differ."""
    rows = [row for part in kind_rows(mla) for row in part]
    others = {(row.name, str(row.expression)) for part in kind_rows(False) for row in part}
    chosen = (row for row in rows if not mla or (row.name, str(row.expression)) not in others)
    cells = (
        (f"`{row.name}`", f"`{row.expression}`", row.unit, row.meaning, row.source)
        for row in chosen
    )
    return _table(("name", "formula", "unit", "meaning", "source"), cells)


TOLD_BY: Mapping[str, str] = {
    "core": "of each chip; exponentials bound it (FlashAttention-3, arXiv 2407.08608): runs of "
    "long sequences",
    "memory": "streaming kernels reach less than the data sheet: elementwise work of all runs",
    "edge": "each tile of outputs is started and written once (Stream-K, arXiv 2301.03598): "
    "runs in FP8 and FP4, which are less fast than their peak, and narrow experts",
    "quantised": "2 bytes read, 1 written, more for scales and transposed: FP8 and FP4",
    "state_bytes": "inputs, gates, convolution and states of chunks, read and written by several "
    "kernels (Mamba-2, arXiv 2405.21060): hybrids",
    "host_attention_s": "kernels launched one by one: small micro-batches without graphs",
    "host_mlp_s": "the same",
    "host_mamba_s": "the same: hybrids",
    "host_experts_s": "the same: routers, permutations, dispatch",
    "host_expert_s": "products of experts started one by one: many experts on a device",
    "dispatch": "part of the library's rate: an all-to-all over several nodes",
    "hides": "a second stream takes part of the multiprocessors: runs with overlap",
}
"""What each constant by kinds of layers comes from, and which runs tell it."""


def constants() -> str:
    """Every constant that is common to all runs, and where its fit began."""
    found = []
    for name, value in asdict(LayerConstants()).items():
        if name in TOLD_BY:
            begins = START.get(name, START["core_b200"])
            shown = "by chip" if name == "core" else f"{value:g}"
            found.append((f"`{name}`", shown, f"{begins:g}", TOLD_BY[name]))
    return _table(
        ("constant", "fitted", "drawn to", "where it comes from, and what tells it"), found
    )


def mixtures_page(text: str) -> str:
    """The page on mixtures with what its commands print and the tables of now."""
    text = re.sub(r"```console\n\$ p2smt (.*?)\n(.*?)```", _command, text, flags=re.S)
    text = filled(text, "rules", given_rules())
    text = filled(text, "constants", constants())
    text = filled(text, "symbols", kind_symbols())
    text = filled(text, "formulas", kind_formulas(mla=False))
    return filled(text, "latent", kind_formulas(mla=True))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"
    return head + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _command(found: re.Match[str]) -> str:
    shown = _printed(lambda: run(shlex.split(found[1])))
    return f"```console\n$ p2smt {found[1]}\n{shown}```"


def _printed(what: Callable[[], object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        what()
    return out.getvalue()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    text = MIXTURES.read_text(encoding="utf-8")
    MIXTURES.write_text(mixtures_page(text), encoding="utf-8")
