"""The page on clusters: its files are read by its commands, which print what it shows."""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology
from p2smt.interop.clusters.kubernetes import PRESETS
from tests.cli.tools import cli

PAGE = (Path(__file__).parents[3] / "docs" / "clusters.md").read_text()
FILES = dict(re.findall(r"^`(\S+)`:\n\n```\w*\n(.*?)```$", PAGE, re.S | re.M))
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("block", BLOCKS)
def test_commands_print_what_the_page_shows(block: str, folder: Path) -> None:
    shown, printed = block.splitlines(), []
    for line in shown:
        if line.startswith("$ p2smt "):
            with chdir(folder):
                done = cli(*shlex.split(line.removeprefix("$ p2smt ")))
            printed += [line, *done.err.splitlines(), *done.out.splitlines()]
    assert printed == shown


def test_every_label_preset_is_described() -> None:
    assert {name for name in PRESETS if f"| `{name}` |" not in PAGE} == set()


def test_imported_topologies_are_read(folder: Path) -> None:
    with chdir(folder):
        assert (
            cli("topology", "import", "topology.conf", "--node", "dgx-h100", "-o", "t.yaml").code
            == 0
        )
    assert load_topology(str(folder / "t.yaml")).installed == 128
