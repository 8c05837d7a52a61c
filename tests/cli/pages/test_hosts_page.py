"""docs/hosts.md: its commands print what is shown, its piece runs, and its fields exist."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from p2smt.report.outputs.catalogue import schema_of
from tests.cli.tools import cli

PAGE = (Path(__file__).parents[3] / "docs" / "hosts.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's clusters."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (tmp_path / "cluster.yaml").write_text(text)
    free = text.replace("bandwidth: 200 GB/s", "bandwidth: 1400 GB/s")
    free = free.replace(", bandwidth: 100 GB/s}", "}").replace(
        "levels:", "assumed: [leaf]\nlevels:"
    )
    (tmp_path / "unstated.yaml").write_text(free)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.exhaustive
@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_prints_what_is_shown(command: str, shown: str) -> None:
    done = cli(*shlex.split(command))
    assert (done.code, done.err) == (0, "")
    assert _whichever(done.out) == _whichever(shown)


def _whichever(text: str) -> list[str]:
    """The lines without what tells equally good orders apart: the hosts of ranks, crossings."""
    kept = [line for line in text.strip().splitlines() if not re.match(r"\d+-\d+ +n\d+ ", line)]
    return [_best(line) if line.startswith("best ") else line for line in kept]


def _best(line: str) -> str:
    """The time of the best order, where the line has it."""
    words = line.split()
    return " ".join(words[:3] if "%" in words else words[:1])


@pytest.mark.usefixtures("folder")
def test_the_piece_prints_what_is_shown() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "hosts.md", "exec"), {})
    assert out.getvalue() == shown


def test_the_fields_are_those_of_the_schema() -> None:
    (rows,) = re.findall(r"\| field \| meaning \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.S)
    named = {word for row in rows.splitlines() for word in re.findall(r"`([a-z_]+)`", row)}
    described = json.dumps(schema_of("solve"))
    assert len(named) >= 9
    assert {word for word in named if f'"{word}"' not in described} == set()
