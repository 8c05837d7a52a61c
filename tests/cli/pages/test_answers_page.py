"""docs/answers.md: its command prints what is shown, its piece runs, and its fields exist."""

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

PAGE = (Path(__file__).parents[3] / "docs" / "answers.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's cluster."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (tmp_path / "cluster.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "shown"), re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)
)
def test_a_command_prints_what_is_shown(command: str, shown: str) -> None:
    done = cli(*shlex.split(command))
    assert (done.code, done.err) == (0, "")
    assert done.out.strip() == shown.strip()


def test_lines_on_gains_are_those_of_their_commands() -> None:
    shown = re.findall(r"^    \$ p2smt (solve .*)\n    (.*)$", PAGE, re.M)
    assert len(shown) == 3
    for command, line in shown:
        assert line in cli(*shlex.split(command)).out.splitlines()


@pytest.mark.usefixtures("folder")
def test_the_piece_finds_those_near_the_optimum() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "answers.md", "exec"), {})
    assert out.getvalue().startswith("complete [((8, 2), (1, 4), (2, 1)), ")


def test_the_fields_are_those_of_the_schema() -> None:
    (rows,) = re.findall(r"\| meaning \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.S)
    named = {word for row in rows.splitlines() for word in re.findall(r"`([a-z_]+)`", row)}
    described = json.dumps(schema_of("solve"))
    assert len(named) >= 20
    assert {word for word in named if f'"{word}"' not in described} == set()
