"""docs/solving.md: its command and its piece print what is shown."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import blocks, commands

PAGE = ROOT / "docs" / "solving.md"


def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    (cube,) = blocks(PAGE, "yaml")
    (tmp_path / "cube.yaml").write_text(cube, encoding="utf-8")
    with contextlib.chdir(tmp_path):
        for command, shown in commands(PAGE):
            done = cli(*shlex.split(command)[1:])
            assert done.code == 0
            assert [line.rstrip() for line in done.out.splitlines()] == shown


def test_the_piece_prints_what_is_shown() -> None:
    (code,), (shown,) = blocks(PAGE, "python"), blocks(PAGE, "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "solving.md", "exec"), {})
    assert printed.getvalue() == shown


def test_every_command_is_in_the_table() -> None:
    from p2smt.cli.guide.commands import COMMANDS

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| (?:`p2smt \w+[^|]*)", page, re.M))
    words = {word for row in named for word in re.findall(r"`p2smt (\w+)", row)}
    assert words == set(COMMANDS)
