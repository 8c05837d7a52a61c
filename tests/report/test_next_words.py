"""What comes next: a plan that is in a file is exported, another one is written first."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.report.screen import plan_words
from tests.cli.tools import H100, SMALL, TINY, cli


def test_a_plan_that_is_written_is_not_to_be_written() -> None:
    assert plan_words("a.json") == "export a.json"
    assert plan_words(None) == "-o PLAN, export PLAN"


@pytest.mark.parametrize("hosts", ["", 'hosts: "n[1-2]"\n'])
def test_screens_of_plan_say_so(
    hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY + H100 + hosts)
    Path("small.yaml").write_text(SMALL)
    words = ["plan", "-m", "small.yaml", "-t", "tiny.yaml", "--global-batch", "16", "--seq", "1024"]
    words += ["--max-vpp", "1", "--recompute", "none", "--zero", "0", "--fix", "tp=2"]
    words += ["--hosts", "n[1-2]"] if hosts else []
    assert "next     -o PLAN, export PLAN --to " in cli(*words).out
    for more in ((), ("--details",)):
        assert "next     export p.json --to " in cli(*words, "-o", "p.json", *more).out


@pytest.mark.parametrize("hosts", ["", 'hosts: "n[1-2]"\n'])
def test_screens_of_solve_say_so(
    hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY + H100 + hosts)
    words = ["solve", "-t", "tiny.yaml", "--axes", "dp=2,tp=4", "--reduce", "dp=1MiB"]
    assert "next     -o PLAN, export PLAN --to FORMAT; " in cli(*words).out
    assert "next     export p.json --to FORMAT; " in cli(*words, "-o", "p.json").out
