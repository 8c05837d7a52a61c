"""Files of nodes on the command line, alone and with others; presets that look alike."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import Topology
from p2smt.interop.clusters.astra_sim import dimensions_in
from p2smt.interop.clusters.combine import likeness_note, measured_like
from p2smt.interop.clusters.facts import InsideFacts
from tests.cli.tools import cli
from tests.interop.clusters.nodes.test_astra_sim import TEXT
from tests.interop.clusters.nodes.texts import alike, devices, input_file, matrix, switched
from tests.schemas.tools import complaints

pytestmark = pytest.mark.usefixtures("folder")
TREE = "SwitchName=l0 Nodes=h[0-1]\nSwitchName=l1 Nodes=h[2-4]\nSwitchName=s Switches=l[0-1]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files, in the folder where commands run; no tool of a GPU is on the path."""
    for name, text in {
        "topo.txt": matrix(alike(8, "NV12")),
        "dump.xml": switched(),
        "input.xml": input_file(),
        "ranks.txt": devices(["a", "b"], 8),
        "net.yml": TEXT,
        "topology.conf": TREE,
        "latin.txt": "",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.txt").write_bytes(b"GPU0\xff")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("NCCL_TOPO_FILE", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def imported(*arguments: str) -> Topology:
    done = cli("topology", "import", *arguments, "-o", "c.yaml")
    assert done.code == 0, done.err
    return load_topology("c.yaml")


def names(found: Topology) -> list[tuple[str, int]]:
    return [(level.name, level.size) for level in found.levels]


def test_a_node_inside_what_slurm_has_outside() -> None:
    found = imported("topology.conf", "dump.xml", "--uplink", "leaf=100GB/s")
    assert names(found) == [("leaf", 2), ("node", 3), ("gpu", 8)]
    assert (found.installed, found.library_name) == (40, "nccl-2.20")
    assert found.levels[1].link.ports == 8


def test_what_a_matrix_leaves_open_is_told() -> None:
    refused = cli("topology", "import", "topology.conf", "topo.txt")
    assert refused.code == 2
    assert "does not tell" in refused.err or "do not tell" in refused.err
    found = imported("topology.conf", "topo.txt", "--nic", "8x200Gb/s", "--nic-fabric", "roce")
    link = found.levels[1].link
    assert (link.ports, link.nominal_bytes_per_s, link.fabric) == (8, 25e9, "roce")
    more = imported("topo.txt", "--gpu", "h100", "--nic", "50GB/s")
    assert more.levels[1].link.fabric == "nvlink4"


def test_a_node_alone() -> None:
    assert names(imported("dump.xml")) == [("node", 1), ("gpu", 8)]
    done = cli("topology", "import", "topo.txt")
    assert done.code == 0
    assert "the level node is left out, as what leaves a node is not told" in done.err
    assert "name: gpu" in done.out
    assert "name: node" not in done.out
    assert cli("topology", "check", "c.yaml").err == ""


def test_device_lists_give_way_to_files_of_nodes() -> None:
    assert imported("ranks.txt", "--node", "dgx-h100").installed == 16
    found = imported("ranks.txt", "dump.xml")
    assert found.hosts is not None
    assert found.hosts.names == ("a", "b")
    assert found.levels[1].link.fabric == "nvlink3"
    wrong = cli("topology", "import", "ranks.txt", "--node", "dgx2")
    assert wrong.code == 2
    assert "hosts of 8 devices: the node given has 16" in wrong.err


def test_networks_of_astra_sim_go_both_ways(folder: Path) -> None:
    found = imported("net.yml")
    assert (found.sizes, found.library_name) == ((4, 8, 2), "")
    assert cli("topology", "export", "c.yaml", "--to", "astra-sim", "-o", "again.yml").code == 0
    assert dimensions_in((folder / "again.yml").read_text(), "f") == dimensions_in(TEXT, "f")
    done = cli("topology", "export", "dgx-h100:4", "--to", "astra-sim")
    assert "npus_count: [ 8, 4 ]" in done.out
    assert "note: the network file has no library nccl-2.30" in done.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("import", "latin.txt"), "is not UTF-8"),
        (("import", "."), "is a directory"),
        (("import", "none.xml"), "cannot be read"),
        (("import", "input.xml"), "--gpu h100"),
        (("import", "topo.txt", "--gpu", "h1"), "is no model that p2smt knows"),
        (("import", "topo.txt", "--nic", "fast"), "--nic"),
        (("import", "topo.txt", "--nic", "0x1GB/s"), "--nic: ports"),
        (("import", "topo.txt", "--nic", "3x1GB/s"), "must spread evenly"),
        (("import", "topo.txt", "--nic-fabric", "rocey"), "roce"),
        (("import", "topo.txt", "dump.xml"), "both tell of the inside of a node"),
        (("import", "dump.xml", "--node", "dgx-a100"), "both tell of the inside of a node"),
        (("import", "ranks.txt", "--node", "dgx-h100", "--nic", "1GB/s"), "that node is known"),
        (("import", "net.yml", "--gpu", "h100"), "drop --node, --hosts, --uplink, --gpu"),
        (("import", "net.yml", "dump.xml"), "tells of a whole cluster"),
        (("export", "dgx-h100", "--to", "ns3"), "must be one of astra-sim"),
        (("export", "none", "--to", "astra-sim"), "is neither a preset nor a YAML file"),
        (("export", "c.yaml", "--to", "astra-sim", "-o", "c.yaml"), "file that is read|cannot be"),
    ],
)
def test_refused(arguments: tuple[str, ...], what: str) -> None:
    done = cli("topology", *arguments)
    assert done.code == 2
    assert any(part in done.err for part in what.split("|")), done.err
    assert len(done.err.strip().split("\n")) == 1
    assert not os.path.exists("c.yaml")


def test_a_machine_without_gpus_says_what_is_missing() -> None:
    done = cli("topology", "detect")
    assert (done.code, done.out) == (5, "")
    assert "neither nvidia-smi nor rocm-smi is installed here" in done.err


def test_a_machine_with_a_topology_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_TOPO_FILE", "dump.xml")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "h[1-2]")
    done = cli("topology", "detect", "--json")
    assert done.code == 0, done.err
    assert done.json()["hosts"] == ["h1", "h2"]
    assert [level["size"] for level in done.json()["levels"]] == [2, 8]
    assert complaints("topology-import", done.json()) == []
    assert cli("topology", "detect", "-o", "here.yaml").out.endswith("written to here.yaml\n")
    assert load_topology("here.yaml").name == "here"


def inside_of(name: str) -> InsideFacts:
    preset = load_topology(f"{name}:1")
    return InsideFacts(preset.levels[preset.node_level :])


@pytest.mark.parametrize("name", [name for name in preset_names() if not name.startswith("paper-")])
def test_every_preset_looks_like_itself(name: str) -> None:
    assert name in re.findall(r"[\w.-]+", likeness_note(inside_of(name)).partition(",")[0])


def test_what_looks_alike_is_said() -> None:
    assert likeness_note(inside_of("mi300x")) == (
        "looks like mi300x, and has its measured efficiencies"
    )
    found = inside_of("dgx2")
    unknown = InsideFacts(found.levels, link_known=False)
    assert likeness_note(unknown) == (
        "the inside of a node looks like that of dgx2, and has its measured efficiencies: "
        "--node dgx2 also has its network cards"
    )
    outer = replace(found.levels[0], link=replace(found.levels[0].link, fabric="roce", ports=1))
    untold = InsideFacts((outer, *found.levels[1:]), link_known=False)
    assert likeness_note(untold) == likeness_note(unknown)


def test_a_node_like_a_presets_has_its_measured_constants() -> None:
    """Without its efficiencies and its switches' reduction, which no file of a node tells."""
    told = inside_of("dgx-h100")
    bare = tuple(
        replace(level, link=replace(level.link, efficiency=(), in_switch_members=0))
        for level in told.levels
    )
    found, sources = measured_like(InsideFacts(bare))
    assert [level.link for level in found.levels] == [level.link for level in told.levels]
    assert [source.partition(":")[0] for source in sources] == ["node", "gpu"]
    within, (source,) = measured_like(InsideFacts(bare, link_known=False))
    assert within.levels[0] == bare[0]
    assert within.levels[1] == told.levels[1]
    assert source.startswith("gpu: measured efficiencies of aws-p5, azure-ndv5, dgx-h100")
    unlike = InsideFacts((bare[0], replace(bare[1], link=replace(bare[1].link, fabric="nvlink3"))))
    assert measured_like(unlike) == (unlike, ())
    alone = InsideFacts(load_topology("dgx-h100:1").levels[:1])
    assert likeness_note(alone) == ""
