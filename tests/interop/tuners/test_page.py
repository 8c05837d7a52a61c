"""The page on tuner files: every command on it runs and prints what it shows."""

from __future__ import annotations

from os import environ
from pathlib import Path

from p2smt.interop.tuners.formats import FORMATS
from tests.imports import ROOT
from tests.interop.tuners.tables import tables
from tests.interpreter import ran
from tests.pages import commands, with_programs

PAGE = ROOT / "docs" / "tuner-files.md"


def test_the_page(tmp_path: Path) -> None:
    with_programs(tmp_path)
    path = {"PATH": f"{tmp_path / 'bin'}:{environ['PATH']}"}
    for name, text in tables().items():
        (tmp_path / name).write_text(text)
    for command, lines in commands(PAGE):
        done = ran("bash", "-c", command, folder=tmp_path, environment=path)
        while lines and not lines[-1]:
            lines = lines[:-1]
        assert (done.stdout + done.stderr).splitlines() == lines, command


def test_the_page_has_every_format() -> None:
    text = PAGE.read_text()
    assert all(f"`{row.name}`" in text for row in FORMATS)
