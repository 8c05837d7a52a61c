"""The pages of the start: every command on them runs where nothing but examples is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import commands, printed, with_programs

PAGES = sorted((ROOT / "docs").glob("start-*.md"))


IDS = [pytest.param(one, id=one.stem) for one in PAGES]


def asked(page: Path, folder: Path) -> list[str]:
    """The commands of a page, for a folder that has the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    found = [command for command, shown in commands(page) if not shown]
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("page", IDS)
def test_every_command_is_answered(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in asked(page, tmp_path):
        line, refuted, _ = command.partition(' || echo "exit $?"')
        line, _, file = line.partition(" > ")
        outcome = cli(*shlex.split(line)[1:])
        assert outcome.code == (1 if refuted else 0), command
        if file:
            Path(file).write_text(outcome.out)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", IDS)
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    environment = with_programs(tmp_path)
    for command in asked(page, tmp_path):
        refuted = command.endswith('|| echo "exit $?"')
        lines = printed(command, tmp_path, environment)
        assert (lines[-1:] == ["exit 1"]) == refuted, command


def test_each_begins_with_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        first, _ = next(commands(page))
        assert f"$ {first.partition(' || ')[0].partition(' -o ')[0]}" in readme, page
