"""docs/planning.md: its commands and its piece print what is shown, its tables are of now."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from p2smt.training.strategy import KEYS
from tests.cli.tools import cli

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "planning.md").read_text(encoding="utf-8")
PICTURE = DOCS / "figures" / "planning.svg"
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)
REFILL = "run: python docs/planning.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planning", DOCS / "planning.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == PAGE.count("```console") >= 4
    for command, shown in COMMANDS:
        done = cli(*shlex.split(command))
        expected = 4 if "infeasible: " in shown else 0
        assert (done.code, done.err) == (expected, ""), command
        assert done.out.splitlines() == shown.splitlines(), REFILL
    assert Path("plan.svg").read_text() == PICTURE.read_text(), REFILL


def test_the_piece_prints_what_is_shown() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "planning.md", "exec"), {})
    assert out.getvalue() == shown


def test_the_tables_are_of_now() -> None:
    assert script().with_tables(PAGE) == PAGE, REFILL


def test_the_page_on_mixtures_is_of_now() -> None:
    page = (DOCS / "mixtures.md").read_text()
    assert script().mixtures_page(page) == page, REFILL


def test_every_key_of_a_strategy_is_described() -> None:
    assert [key for key in KEYS if f"`{key}`" not in PAGE] == []
