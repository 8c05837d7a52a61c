"""docs/synthesis.md: its commands print what is shown, and its piece runs."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from p2smt.synthesis.synthesize import complete_search
from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import commands, without_times

PAGE = ROOT / "docs" / "synthesis.md"


def test_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order: those of verify read what those before them wrote.  Times are masked.

    Where ``|| echo`` follows a command, the last line is its exit code.
    """
    monkeypatch.chdir(tmp_path)
    for line, lines in commands(PAGE):
        command, said, _ = line.partition(' || echo "exit $?"')
        done = cli(*shlex.split(command)[1:])
        assert (done.code == 0, done.err) == (not said, "")
        printed = [line.rstrip() for line in done.out.splitlines()]
        printed += [f"exit {done.code}"] if said else []
        assert without_times(printed) == without_times(lines)


def test_the_piece_prints_what_is_shown() -> None:
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "synthesis.md", "exec"), {})
    assert out.getvalue() == shown


def test_reasons_are_those_of_the_code() -> None:
    from p2smt.fabric.fabric_file import load_fabric
    from p2smt.synthesis.setting import Answer, SynthesisSetting
    from p2smt.synthesis.synthesize import BY_BOUND

    fabric = load_fabric("ring:3")
    copying, adding = (SynthesisSetting(fabric, name) for name in ("allgather", "allreduce"))
    named = complete_search(adding).replace("1 message", "K messages")
    reasons = (Answer.SCHEDULE, BY_BOUND, complete_search(copying), named)
    for reason in (*reasons, Answer.NO_SYMMETRIC, Answer.UNKNOWN):
        assert f"\n| `{reason}` |" in PAGE.read_text()
