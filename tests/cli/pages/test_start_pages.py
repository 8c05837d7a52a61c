"""The pages of the start: every command on them runs where nothing but examples is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.pages import commands, printed, with_programs

PAGES = sorted((ROOT / "docs").glob("start-*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(one, id=one.stem) for one in PAGES])
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = with_programs(tmp_path)
    asked = [command for command, shown in commands(page) if not shown]
    assert len(asked) >= 2
    for command in asked:
        refuted = command.endswith('|| echo "exit $?"')
        lines = printed(command, tmp_path, environment)
        assert (lines[-1:] == ["exit 1"]) == refuted, command


def test_each_begins_with_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        first, _ = next(commands(page))
        assert f"$ {first.partition(' || ')[0].partition(' -o ')[0]}" in readme, page
