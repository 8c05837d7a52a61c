"""Fabrics as other tools describe them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.interop.fabrics import read_fabric

GIGA = 10**9
PAIRS = """\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity
GPU0\t X \tNV2\tNV1\tSYS\tPIX\t0-19
GPU1\tNV2\t X \tSYS\tNV1\tPIX\t0-19
GPU2\tNV1\tSYS\t X \tNV2\tSYS\t20-39
GPU3\tSYS\tNV1\tNV2\t X \tSYS\t20-39
mlx5_0\tPIX\tPIX\tSYS\tSYS\t X \t

Legend:
  NV#  = Connection traversing a bonded set of # NVLinks
"""
EVEN = """$ nvidia-smi topo -m
      GPU0  GPU1  GPU2  CPU Affinity  NUMA Affinity
GPU0   X    NV12  NV12  0-23         0
GPU1  NV12   X    NV12  0-23         0
GPU2  NV12  NV12   X    0-23         0
"""
HUB = {
    "msccl_type": "topology",
    "name": "hub",
    "links": [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
    "switches": [[[0], [1, 2], 1, "node_0_out"], [[1, 2], [0], 1, "node_0_in"]],
}


def _written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_uneven_links_are_links(tmp_path: Path) -> None:
    path = _written(tmp_path, "pairs.txt", PAIRS)
    fabric = read_fabric(path, link_bandwidth=Fraction(25 * GIGA))
    rates = {(e.source, e.target): fabric.capacities[e.loads[0]].bandwidth for e in fabric.edges}
    both = {(0, 1): 2, (2, 3): 2, (0, 2): 1, (1, 3): 1}
    assert rates == {**both, **{(b, a): n for (a, b), n in both.items()}}
    assert fabric.unit == 25 * GIGA


def test_even_links_are_a_switch(tmp_path: Path) -> None:
    path = _written(tmp_path, "even.txt", EVEN)
    fabric = read_fabric(path, link_bandwidth=Fraction(25 * GIGA))
    assert fabric.unit == 300 * GIGA
    assert (len(fabric.edges), len(fabric.capacities)) == (6, 6)
    assert all(len(edge.loads) == 2 for edge in fabric.edges)


def test_the_rate_of_a_link_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--link-bandwidth"):
        read_fabric(_written(tmp_path, "even.txt", EVEN))


def test_an_underlined_heading_is_read(tmp_path: Path) -> None:
    """As drivers from 555 on print it; the terminal's codes stay in what is saved."""
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    plain.write_text(EVEN)
    heading = next(line for line in EVEN.split("\n") if "GPU0" in line)
    marked.write_text(EVEN.replace(heading, f"\x1b[4m{heading}\x1b[0m", 1))
    one, other = (read_fabric(str(p), link_bandwidth=Fraction(25e9)) for p in (plain, marked))
    assert one.capacities == other.capacities


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """Of many a small file would make a large matrix."""
    text = EVEN.replace("GPU2  CPU", f"{'GPU2 ' * 1000} CPU", 1)
    with pytest.raises(InputError, match="names a device twice"):
        read_fabric(_written(tmp_path, "even.txt", text), link_bandwidth=Fraction(GIGA))


def test_switches_of_msccl_are_shared_beside_the_links(tmp_path: Path) -> None:
    fabric = read_fabric(_written(tmp_path, "hub.json", json.dumps(HUB)))
    loads = {
        (e.source, e.target): {fabric.capacities[n].name for n in e.loads} for e in fabric.edges
    }
    assert loads[0, 2] == {"node_0_out", "0->2"}
    assert loads[2, 0] == {"node_0_in", "2->0"}
    assert loads[1, 2] == {"1->2"}


def test_links_of_msccl_go_by_target_and_source(tmp_path: Path) -> None:
    data = {**HUB, "links": [[0, 0, 1], [2, 0, 0], [0, 3, 0]], "switches": []}
    fabric = read_fabric(_written(tmp_path, "cycle.json", json.dumps(data)))
    rates = {(e.source, e.target): fabric.capacities[e.loads[0]].bandwidth for e in fabric.edges}
    assert rates == {(2, 0): 1, (0, 1): 2, (1, 2): 3}


@pytest.mark.parametrize(
    "change",
    [
        {"links": [[0, 1], [1]]},
        {"links": [[0, 0, 1], [1, 0, 0], [0, 0, 0]]},
        {"links": [[0, -1], [1, 0]]},
        {"links": [[0, 1.5], [1, 0]]},
        {"links": [[1, 1], [1, 0]]},
        {"links": []},
        {"switches": [[[0], [1], 0, "zero"]]},
        {"switches": [[[0], [9], 1, "out of range"]]},
        {"switches": [[[0], [1], 1]]},
        {"msccl_type": "algorithm"},
    ],
)
def test_bad_topologies_of_msccl_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = _written(tmp_path, "bad.json", json.dumps({**HUB, **change}))
    with pytest.raises(InputError):
        read_fabric(path)


@pytest.mark.parametrize(
    "text",
    [
        PAIRS.replace("NV2", "SYS").replace("NV1", "PIX"),
        PAIRS.replace("GPU1\tNV2", "GPU1\tNV1"),
        "\n".join(PAIRS.splitlines()[:3]),
        "no matrix at all",
    ],
)
def test_bad_matrices_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_fabric(_written(tmp_path, "bad.txt", text), link_bandwidth=Fraction(GIGA))


def test_other_names_are_presets_and_families() -> None:
    assert read_fabric("dgx1:2") == load_fabric("dgx1:2")
    with pytest.raises(InputError, match="is no fabric"):
        read_fabric("dgx9")
