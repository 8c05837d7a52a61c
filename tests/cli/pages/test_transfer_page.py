"""docs/transfer.md: its piece writes the layouts, and its commands print what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.tools import cli

PAGE = (Path(__file__).parents[3] / "docs" / "transfer.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)


def test_the_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code, {})
    assert len(COMMANDS) == 6
    for command, shown in COMMANDS:
        done = cli(*shlex.split(command))
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines() == shown.splitlines()
