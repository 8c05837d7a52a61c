"""docs/transfer.md: its pieces write files, its commands print what is shown, its code moves."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.tools import cli
from tests.pages import script
from tests.runtime.forked import fork_ranks, join

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "transfer.md").read_text(encoding="utf-8")
PICTURE = DOCS / "figures" / "transfer.svg"
COMMANDS = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)```", PAGE, re.S)
PIECES = re.findall(r"```python\n(.*?)```", PAGE, re.S)
RANKS = 12


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the files that the pieces write."""
    monkeypatch.chdir(tmp_path)
    layouts, model, _ = PIECES
    for piece in (layouts, model):
        exec(piece, {})
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_commands_print_what_is_shown() -> None:
    assert len(COMMANDS) == 8
    for command, shown in COMMANDS:
        done = cli(*shlex.split(command))
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines() == shown.splitlines()


def test_the_picture_is_that_of_the_first_command(folder: Path) -> None:
    done = cli(*shlex.split(COMMANDS[0][0]), "--memory", "4GiB", "--svg", "drawn.svg")
    assert done.code == 0, done.err
    assert (folder / "drawn.svg").read_text() == PICTURE.read_text()


@pytest.mark.cluster
def test_the_code_moves_a_model(folder: Path) -> None:
    """Both sides run the page's lines: trainers in float32, generators in bfloat16."""
    (command,) = [command for command, _ in COMMANDS if "--code" in command]
    assert cli(*shlex.split(command)).code == 0

    def work(rank: int) -> None:
        transfer = sys.modules["transfer"] = script(folder / "transfer.py")
        join(rank, RANKS, folder / "store")
        whole = {
            name: (torch.arange(rows * columns, dtype=torch.float32) % 256).reshape(shape)
            for names, shape, *_ in transfer.PATTERNS
            for name in names
            for rows, columns in [(shape[0], shape[1] if len(shape) > 1 else 1)]
        }
        right = transfer.cut(whole, rank, after=True)
        given: dict[str, Any] = {
            "before": {name: [one.clone() for one in own] for name, own in _cut(whole, rank)},
            "after": {
                name: [torch.empty_like(one, dtype=torch.bfloat16) for one in own]
                for name, own in right.items()
            },
        }
        exec(PIECES[2], given)
        assert (len(right) == 39) == (rank >= 8)
        for name, own in right.items():
            for found, one in zip(given["after"][name], own, strict=True):
                assert torch.equal(found.float(), one)

    def _cut(whole: dict[str, torch.Tensor], rank: int) -> Any:
        return sys.modules["transfer"].cut(whole, rank).items()

    assert fork_ranks(RANKS, work) == 0
