"""Commands of the page on nodes print what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.tools import cli
from tests.interop.clusters.nodes.texts import (
    CUBE,
    alike,
    cells_of,
    input_file,
    matrix,
    switched,
    with_cards,
)

PAGE = Path(__file__).resolve().parents[4] / "docs" / "node-readers.md"
BLOCKS = re.findall(r"^( *)```console\n(.*?)^ *```", PAGE.read_text(), re.S | re.M)
SHOWN = [
    (command, rest.strip().split("\n"))
    for indent, block in BLOCKS
    for command, _, rest in (
        part.partition("\n") for part in re.split(r"^\$ p2smt ", dedent(block), flags=re.M)[1:]
    )
]
NEAR = [["PXB" if g // 2 == c // 2 else "SYS" for g in range(8)] for c in range(8)]
LEGEND = "\nNIC Legend:\n\n" + "".join(f"  NIC{c}: mlx5_{c}\n" for c in range(10))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the page names."""
    cells = with_cards(alike(8, "NV18"), NEAR + [["SYS"] * 8] * 2)
    dump = switched(counts=(5, 5, 4, 4), sm=90, speed=400000)
    for name, text in {
        "topo.txt": matrix(cells, [f"NIC{c}" for c in range(10)]) + LEGEND,
        "dump.xml": dump.replace("16 GT/s", "32.0 GT/s PCIe"),
        "input.xml": input_file(),
        "dgx1.txt": matrix(cells_of(CUBE)),
        "topology.conf": "SwitchName=l0 Nodes=h[0-1]\nSwitchName=l1 Nodes=h[2-4]\n"
        "SwitchName=s Switches=l[0-1]\n",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NCCL_TOPO_FILE", raising=False)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_print_what_the_page_shows(command: str, shown: list[str]) -> None:
    done = cli(*command.split())
    assert sorted((done.out + done.err).strip().split("\n")) == sorted(shown)


def test_the_page_has_commands() -> None:
    assert len(SHOWN) == 6
