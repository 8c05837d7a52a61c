"""docs/fabrics.md: its commands print what is shown, its file is one, its names are known."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from p2smt.fabric.fabric_file import FAMILIES, fabric_names
from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import blocks, commands

PAGE = ROOT / "docs" / "fabrics.md"


def test_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in blocks(PAGE, "yaml"):
        (tmp_path / f"{text.split()[1]}.yaml").write_text(text)
    shown = list(commands(PAGE))
    assert len(shown) == 3
    for command, lines in shown:
        done = cli(*shlex.split(command)[1:])
        assert done.code == 0
        assert [line.rstrip() for line in done.out.splitlines()] == lines


def test_every_preset_and_family_is_named() -> None:
    prose = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.S | re.M)
    forms = {form for text in FAMILIES for form in text.split(" or ")}
    assert {*fabric_names(), *forms} <= set(re.findall(r"`([^`]+)`", prose))
