"""The pages of the start: commands run where nothing but examples is, and print what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.pages import commands, printed, with_programs

PAGES = sorted((ROOT / "docs").glob("start-*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(one, id=one.stem) for one in PAGES])
def test_every_command_runs_and_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = with_programs(tmp_path)
    found = list(commands(page))
    assert found[0][1], "the first answer is shown"
    assert sum(not shown for _, shown in found) >= 2
    for command, shown in found:
        refuted = command.endswith('|| echo "exit $?"')
        lines = printed(command, tmp_path, environment)
        assert (lines[-1:] == ["exit 1"]) == refuted, command
        if shown:
            assert lines == shown, command


def test_each_begins_with_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        first, _ = next(commands(page))
        assert f"$ {first.partition(' || ')[0].partition(' -o ')[0]}" in readme, page
