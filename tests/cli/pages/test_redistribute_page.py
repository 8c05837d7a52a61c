"""docs/redistribution.md: its commands print what is shown, its piece runs, its fields exist."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from p2smt.report.outputs.catalogue import schema_of
from p2smt.resharding.states import ArrayState
from p2smt.resharding.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    ArrayStep,
    LocalSlice,
    ReduceScatter,
    needed_bytes,
    peak_step_bytes,
    step_bytes,
)
from tests.cli.tools import cli
from tests.resharding.types import first_ends

PAGE = (Path(__file__).parents[3] / "docs" / "redistribution.md").read_text(encoding="utf-8")
PICTURE = Path(__file__).parents[3] / "docs" / "figures" / "redistribution.svg"
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)
FRAME = first_ends("dp=2,tp=8", (16, 16, 16), "R,R,R", "R,R,R").frame  # digits: dp 0, tp 1 2 3
WHOLE, SUMS = ArrayState(((), (), ())), ArrayState(((), (), ()), (0, 1))
BOTH, LAST = ArrayState(((0,), (1,), ())), ArrayState(((), (), (0, 1)))


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
    from p2smt.resharding.steps import MemoryLimit

    rows = re.findall(
        r"^\| (?:slice|all-|permute|reduce-scatter).*$", inspect.getdoc(MemoryLimit) or "", re.M
    )
    assert len(rows) == 6
    assert all(row in PAGE for row in rows)


@pytest.mark.parametrize(
    ("step", "row"),
    [
        (LocalSlice(WHOLE, BOTH), "| slice | digits are free | they join the ends of dimensions' "),
        (AllGather(BOTH, WHOLE), "| all-gather | digits at the ends of dimensions' lists | free |"),
        (AllToAll(BOTH, LAST), "| all-to-all | digits at the ends of some dimensions' lists | at "),
        (ReduceScatter(SUMS, BOTH), "| digits are partial | they join the ends of dimensions' "),
    ],
)
def test_a_step_is_of_as_many_dimensions_as_it_says(step: ArrayStep, row: str) -> None:
    step.check(FRAME)
    assert sum(map(bool, (*step.gained, *step.lost))) >= 2
    assert row in PAGE


def test_an_all_gather_of_two_dimensions_reads_as_it_says() -> None:
    (text,) = re.findall(r"several dimensions \(`(.*?)`\)", PAGE)
    assert AllGather(ArrayState(((0,), (1, 2, 3), ())), WHOLE).text(FRAME) == text


def test_a_source_that_is_kept_counts_as_it_says() -> None:
    size = FRAME.local_bytes(SUMS)
    reduced = AllReduce(SUMS, WHOLE)
    assert re.search(r"a first all-reduce, which is not in place then, takes 2 b\.", PAGE)
    assert peak_step_bytes(FRAME, [reduced]) == size
    assert peak_step_bytes(FRAME, [reduced], keep_source=True) == 2 * size
    cut = LocalSlice(WHOLE, BOTH)
    assert needed_bytes(FRAME, [reduced, cut], 1, True) == step_bytes(FRAME, cut) + size
