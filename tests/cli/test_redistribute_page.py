"""docs/redistribution.md: its commands print what is shown, its piece runs, its fields exist."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from p2smt.report.schemas.catalogue import schema_of
from tests.cli.tools import cli

PAGE = (Path(__file__).parents[2] / "docs" / "redistribution.md").read_text(encoding="utf-8")
PICTURE = Path(__file__).parents[2] / "docs" / "figures" / "redistribution.svg"
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's cluster."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (tmp_path / "cluster.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_prints_what_is_shown(command: str, shown: str) -> None:
    done = cli(*shlex.split(command))
    assert (done.code, done.err) == (4 if shown.startswith("infeasible") else 0, "")
    assert done.out.splitlines() == shown.splitlines(), "run: python docs/redistribution.py"
    if "--svg" in command:
        assert Path("blocks.svg").read_text() == PICTURE.read_text()


def test_the_piece_prints_what_is_shown() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "redistribution.md", "exec"), {})
    assert out.getvalue() == shown


def test_the_fields_are_those_of_the_schema() -> None:
    (rows,) = re.findall(r"\| field \| meaning \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.S)
    named = {
        word
        for row in rows.splitlines()
        for word in re.findall(r"`([a-z_]+)`", row.partition("exit codes")[0])
    }
    described = json.dumps(schema_of("redistribute"))
    assert len(named) >= 20
    assert {word for word in named if f'"{word}"' not in described} == set()


def test_the_table_of_memory_is_the_code_s() -> None:
    from p2smt.arrays import memory

    rows = re.findall(r"^\| (?:slice|all-|permute|reduce-scatter).*$", memory.__doc__ or "", re.M)
    assert len(rows) == 6
    assert all(row in PAGE for row in rows)
