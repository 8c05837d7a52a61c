"""docs/verifying.md: its commands print what is shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import commands

PAGE = ROOT / "docs" / "verifying.md"


def test_the_verified_schedules_are_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, damaged, verified, *in_tree = commands(PAGE)
    monkeypatch.chdir(tmp_path)
    done = cli(*shlex.split(made[0])[1:])
    assert (done.code, done.out.splitlines()) == (0, made[1])
    assert damaged == ('sed \'0,/type="r"/s//type="rrc"/\' ring.xml > wrong.xml', [])
    text = Path("ring.xml").read_text()
    Path("wrong.xml").write_text(text.replace('type="r"', 'type="rrc"', 1))
    done = cli(*shlex.split(verified[0])[1:])
    assert (done.code, done.out.splitlines()) == (1, verified[1])
    monkeypatch.chdir(ROOT)
    assert len(in_tree) == 2
    for command, shown in in_tree:
        done = cli(*shlex.split(command)[1:])
        assert (done.code, done.out.splitlines()) == (0, shown)
