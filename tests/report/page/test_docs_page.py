"""docs/report.md: its commands run, and print what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.imports import ROOT

PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")


def test_the_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = re.findall(r"^    p2smt (.*)$", PAGE, re.M)
    assert len(run) == 2
    for command in run:
        assert cli(*shlex.split(command)).code == 0, command
    ((command, shown),) = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)
    lines = cli(*shlex.split(command)).out.splitlines()
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in shown.splitlines()]
    assert len(Path("report.html").read_bytes()) < 200_000


@pytest.mark.exhaustive
def test_a_page_of_16384_devices_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "plan -m llama-3-405b -t dgx-h100:2048 --global-batch 2048 --seq 8192 -o plan.json"
    assert cli(*shlex.split(asked)).code == 0
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    assert len(Path("page.html").read_bytes()) <= 1_000_000
