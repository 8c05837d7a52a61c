"""docs/journals.md: its commands print what is shown, and its records and verdicts exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p2smt.parallel_search.journal.file_model import LINES
from p2smt.parallel_search.subproblem import SubproblemVerdict
from tests.imports import ROOT
from tests.pages import commands, printed, with_programs

PAGE = ROOT / "docs" / "journals.md"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    environment = with_programs(tmp_path)
    for command, lines in commands(PAGE):
        assert printed(command, tmp_path, environment) == [line for line in lines if line], command


def test_every_record_and_verdict_is_explained() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"^\| `(\w+)` \| ", text, re.M)) - {"record"} == set(LINES)
    assert all(f"`{verdict.value}`" in text for verdict in SubproblemVerdict)
