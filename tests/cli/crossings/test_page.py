"""docs/crossings.md: its commands print what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.tools import cli

PAGE = (Path(__file__).parents[3] / "docs" / "crossings.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_prints_what_is_shown(command: str, shown: str) -> None:
    done = cli(*shlex.split(command))
    assert (done.code, done.err) == (0, "")
    assert _certain(done.out) == _certain(shown)


def _certain(text: str) -> list[str]:
    """Its lines but points: z3 gives any one where a program is alone best."""
    lines = (line.rstrip() for line in text.splitlines())
    return [line.partition(" at ")[0] if "alone best at" in line else line for line in lines]
