"""docs/bounds.md: its pieces run in order and print what is shown."""

from __future__ import annotations

import shlex
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import blocks, commands

PAGE = ROOT / "docs" / "bounds.md"


def test_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    (code,), (text,) = blocks(PAGE, "python"), blocks(PAGE, "text")
    with chdir(tmp_path):
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(code, PAGE.name, "exec"), {})
        assert out.getvalue() == text
        for command, lines in commands(PAGE):
            program, *words = shlex.split(command)
            assert program == "p2smt"
            assert cli(*words).out.splitlines() == lines
