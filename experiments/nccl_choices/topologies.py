"""Descriptions of nodes for ``planner.cc``, in NCCL's own format, one system a row of ``NODES``.

    python -m experiments.nccl_choices.topologies PLANNER SYSTEM..

runs a planner that was built as ``planner.cc`` says for groups of 1, 2, 4, 8 and 16 GPUs of 1 to 64
nodes, and prints rows of ``choices.csv`` and, with ``--estimates``, of ``estimates.csv``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

CUBE = (
    ((1, 1), (2, 1), (3, 2), (4, 2)),
    ((0, 1), (2, 2), (3, 1), (5, 2)),
    ((0, 1), (1, 2), (3, 2), (6, 1)),
    ((0, 2), (1, 1), (2, 2), (7, 1)),
    ((0, 2), (5, 1), (6, 1), (7, 2)),
    ((1, 2), (4, 1), (6, 2), (7, 1)),
    ((2, 1), (4, 1), (5, 2), (7, 2)),
    ((3, 1), (4, 2), (5, 1), (6, 2)),
)
"""NVLinks of a DGX-1 V100: of each GPU (peer, how many)."""
NVSWITCH, BRIDGE, GPU, CARD = "0x068000", "0x060400", "0x030200", "0x020000"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: GPUs of an architecture with so many NVLinks each (to switches, or as ``peers``
    says), cards of so many Mb/s, spread over switches of the host with links of ``pcie``."""

    sm: int
    nvlinks: int
    cards: int
    mbps: int
    pcie: str = "32.0 GT/s PCIe"
    gpus: int = 8
    switches: int = 0
    cpu: str = 'vendor="GenuineIntel" familyid="6" modelid="143"'
    latency_us: float = 0.0
    peers: tuple[tuple[tuple[int, int], ...], ...] = ()


_AMD = 'vendor="AuthenticAMD" familyid="23" modelid="49"'
_SKYLAKE = 'vendor="GenuineIntel" familyid="6" modelid="85"'
_GEN3, _GEN4 = "8.0 GT/s PCIe", "16.0 GT/s PCIe"
NODES = {
    "dgx-a100": Node(80, 12, 8, 200_000, _GEN4, switches=4, cpu=_AMD),
    "azure-ndv4": Node(80, 12, 8, 200_000, _GEN4, switches=4, cpu=_AMD),
    "aws-p4d": Node(80, 12, 4, 100_000, _GEN3, cpu=_SKYLAKE, latency_us=75),
    "dgx-h100": Node(90, 18, 8, 400_000),
    "gcp-a3-high": Node(90, 18, 4, 200_000),
    "dgx2": Node(70, 6, 8, 100_000, _GEN3, gpus=16, cpu=_SKYLAKE),
    "dgx1-v100": Node(70, 6, 4, 100_000, _GEN3, cpu=_SKYLAKE, peers=CUBE),
    "dgx-b200": Node(100, 18, 8, 400_000),
    "aws-p5": Node(90, 18, 8, 400_000, cpu=_AMD, latency_us=75),
    "aws-p6-b200": Node(100, 18, 8, 400_000, latency_us=35),
    "gcp-a3-mega": Node(90, 18, 8, 200_000),
    "azure-ndv5": Node(90, 18, 8, 400_000),
    "gcp-a4": Node(100, 18, 8, 400_000),
}


def xml(node: Node, used: int) -> str:
    """The node as NCCL reads it, its first GPUs being used."""
    lines, switches = ['<system version="1">'], node.switches or min(node.gpus, node.cards)
    for socket in range(2):
        lines.append(f'<cpu numaid="{socket}" affinity="ffff" arch="x86_64" {node.cpu}>')
        for switch in range(socket * switches // 2, (socket + 1) * switches // 2):
            lines += [_open(node, f"{0x80 + switch:02x}:00", BRIDGE), *_gpus(node, used, switch)]
            lines += [*_cards(node, switch), "</pci>"]
        lines.append("</cpu>")
    return "\n".join([*lines, "</system>"])


def _open(node: Node, place: str, kind: str) -> str:
    other = 'vendor="0x0" device="0x0" subsystem_vendor="0x0" subsystem_device="0x0"'
    speed = f'link_speed="{node.pcie}" link_width="16"'
    return f'<pci busid="0000:{place}.0" class="{kind}" {other} {speed}>'


def _gpus(node: Node, used: int, switch: int) -> Iterator[str]:
    each = node.gpus // (node.switches or min(node.gpus, node.cards))
    for gpu in range(switch * each, (switch + 1) * each):
        yield _open(node, f"{gpu + 1:02x}:00", GPU)
        if gpu < used:
            yield f'<gpu dev="{gpu}" sm="{node.sm}" rank="{gpu}" gdr="1">'
            yield from _nvlinks(node, used, gpu)
            yield "</gpu>"
        yield "</pci>"


def _nvlinks(node: Node, used: int, gpu: int) -> Iterator[str]:
    if not node.peers:
        yield f'<nvlink target="0000:f0:00.0" count="{node.nvlinks}" tclass="{NVSWITCH}"/>'
    for peer, count in node.peers[gpu] if node.peers else ():
        if peer < used:
            yield f'<nvlink target="0000:{peer + 1:02x}:00.0" count="{count}" tclass="{GPU}"/>'


def _cards(node: Node, switch: int) -> Iterator[str]:
    each = node.cards // (node.switches or min(node.gpus, node.cards))
    for card in range(switch * each, (switch + 1) * each):
        yield _open(node, f"{0x40 + card:02x}:00", CARD) + "<nic>"
        yield (
            f'<net name="net{card}" dev="{card}" speed="{node.mbps}" port="1" gdr="1" '
            f'guid="0x{card + 1:x}" latency="{node.latency_us}" maxconn="131072"/></nic></pci>'
        )


def planned(planner: str, system: str, used: int) -> list[list[str]]:
    """What the planner says of groups of so many GPUs of each node, line by line."""
    nodes = "2,3,4,8,16,64" if used == 1 else "1,2,3,4,8,16,64"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "node.xml"
        file.write_text(xml(NODES[system], used), encoding="utf-8")
        command = [planner, str(file), str(used), nodes, system]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split(",") for line in text.splitlines()]


def choice_rows(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of ``choices.csv``."""
    chosen = [line[1:] for line in lines if line[0] == "C"]
    for key, found in groupby(chosen, key=lambda line: tuple(line[:4])):
        rows = list(found)
        runs = [(way, len(list(same))) for way, same in groupby(f"{r[5]}-{r[6]}" for r in rows)]
        times = " ".join(_short(row[7]) for row in rows)
        yield ",".join([*key, " ".join(f"{way}*{count}" for way, count in runs), times])


def estimate_rows(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of ``estimates.csv``."""
    times: dict[tuple[str, ...], list[str]] = {}
    for line in lines:
        if line[0] == "E":
            times.setdefault((*line[1:5], f"{line[6]}-{line[7]}"), []).append(_short(line[8]))
    for key, found in times.items():
        yield ",".join([*key, *found])


def _short(number: str) -> str:
    return number.rstrip("0").rstrip(".")


def main(arguments: Sequence[str]) -> None:
    """Print the rows of the systems named."""
    named = [text for text in arguments if not text.startswith("--")]
    rows = estimate_rows if "--estimates" in arguments else choice_rows
    for system in named[1:]:
        counts = [count for count in (1, 2, 4, 8, 16) if count <= NODES[system].gpus]
        for used in counts:
            print("\n".join(rows(planned(named[0], system, used))))


if __name__ == "__main__":
    main(sys.argv[1:])
