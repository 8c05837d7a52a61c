"""What a machine tells of itself: stand-ins for its tools print what they would."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.errors import BackendError, InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import Facts
from p2smt.interop.clusters.nodes.node_facts import Told
from p2smt.interop.clusters.nodes.topo_matrix import facts_of_machine
from tests.interop.clusters.nodes.reading import short
from tests.interop.clusters.nodes.texts import alike, input_file, matrix, rocm, with_cards

NOTHING = Told()
MATRIX = matrix(alike(8, "NV18"))
CARDS = (
    matrix(
        with_cards(
            alike(8, "NV18"), [["PIX" if g == c else "SYS" for g in range(8)] for c in range(8)]
        ),
        [f"NIC{c}" for c in range(8)],
    )
    + "\nNIC Legend:\n\n"
    + "".join(f"  NIC{c}: mlx5_{c}\n" for c in range(8))
)


def tool(folder: Path, name: str, printed: str, product: str = "", code: int = 0) -> None:
    """A program that prints a text, or the product of each GPU where it is asked for names."""
    (folder / f"{name}.txt").write_text(printed)
    (folder / f"{name}.names").write_text(f"{product}\n" * 8)
    script = folder / name
    script.write_text(
        f'#!/bin/sh\ncase "$1" in --query*) cat {folder}/{name}.names ;; '
        f"*) cat {folder}/{name}.txt ;; esac\nexit {code}\n"
    )
    script.chmod(0o755)


def detect(folder: Path, told: Told = NOTHING, **environment: str) -> list[Facts]:
    path = f"{folder}:/usr/bin:/bin"
    return facts_of_machine({"PATH": path, **environment}, told, str(folder / "cards"))


def rates(folder: Path, rate: str, layer: str = "InfiniBand", count: int = 8) -> None:
    for c in range(count):
        port = folder / "cards" / f"mlx5_{c}" / "ports" / "1"
        port.mkdir(parents=True)
        (port / "rate").write_text(rate)
        (port / "link_layer").write_text(layer + "\n")


def levels(found: list[Facts]) -> list[object]:
    (inside,) = (facts.inside for facts in found if facts.inside)
    return [short(level) for level in inside.levels]


def test_a_machine_without_gpus(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"neither nvidia-smi nor rocm-smi is installed here"):
        facts_of_machine({"PATH": str(tmp_path)}, NOTHING)
    with pytest.raises(BackendError, match=r"NCCL_TOPO_FILE is not set; run this on a node"):
        facts_of_machine({"PATH": str(tmp_path), "SLURM_JOB_NODELIST": "n[1-4]"}, NOTHING)


def test_the_tool_names_the_gpus(tmp_path: Path) -> None:
    tool(tmp_path, "nvidia-smi", MATRIX, "NVIDIA B200")
    assert levels(detect(tmp_path))[1] == ("gpu", 8, "switch", 1, 900.0, "nvlink5")
    tool(tmp_path, "nvidia-smi", MATRIX, "NVIDIA Unheard-of")
    assert levels(detect(tmp_path))[1] == ("gpu", 8, "switch", 1, 450.0, "nvlink4")


@pytest.mark.parametrize(("layer", "fabric"), [("InfiniBand", "infiniband"), ("Ethernet", "roce")])
def test_the_kernel_tells_rates(tmp_path: Path, layer: str, fabric: str) -> None:
    tool(tmp_path, "nvidia-smi", CARDS, "NVIDIA H100 80GB HBM3")
    rates(tmp_path, "400 Gb/sec (4X NDR)\n", layer)
    found = detect(tmp_path)
    assert levels(found)[0] == ("node", 1, "switch", 8, 50.0, fabric)
    topology, lost = combined(found, ImportOptions(name="here"))
    assert (topology.name, topology.sizes, topology.library_name) == ("here", (1, 8), "nccl-2.30")
    (like,) = (line for line in lost if "looks like" in line)
    assert ("dgx-h100" in like) == (layer == "InfiniBand")


def test_hosts_of_the_job(tmp_path: Path) -> None:
    tool(tmp_path, "nvidia-smi", CARDS, "NVIDIA H100 80GB HBM3")
    rates(tmp_path, "400 Gb/sec (4X NDR)\n")
    found, _ = combined(detect(tmp_path, SLURM_JOB_NODELIST="n[1-3,7]"), ImportOptions())
    assert found.hosts is not None
    assert found.hosts.names == ("n1", "n2", "n3", "n7")
    assert found.devices == 32


def test_a_topology_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(input_file(device="0x2330"))
    assert levels(detect(tmp_path, NCCL_TOPO_FILE=str(file)))[1][4] == 450.0  # type: ignore[index]
    with pytest.raises(InputError, match=r"NCCL_TOPO_FILE .* cannot be read"):
        detect(tmp_path, NCCL_TOPO_FILE=str(tmp_path / "none.xml"))
    with pytest.raises(InputError, match="is a directory"):
        detect(tmp_path, NCCL_TOPO_FILE=str(tmp_path))


def test_a_topology_file_adds_cards_and_pcie(tmp_path: Path) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(input_file())
    tool(tmp_path, "nvidia-smi", MATRIX, "NVIDIA H100 80GB HBM3")
    found = detect(tmp_path, Told(nic_bytes_per_s=25e9), NCCL_TOPO_FILE=str(file))
    assert levels(found) == [
        ("node", 1, "switch", 8, 25.0, "infiniband"),
        ("gpu", 8, "switch", 1, 450.0, "nvlink4"),
    ]
    tool(tmp_path, "nvidia-smi", matrix(alike(8, "NODE")), "NVIDIA L4")
    assert levels(detect(tmp_path, NCCL_TOPO_FILE=str(file)))[1][4] == 31.508  # type: ignore[index]
    tool(tmp_path, "nvidia-smi", matrix(alike(4, "NV4")))
    (other,) = detect(tmp_path, NCCL_TOPO_FILE=str(file))
    assert "topo.xml has 8 GPUs, not 4: it is left out" in " ".join(other.lost)


def test_amd(tmp_path: Path) -> None:
    tool(
        tmp_path,
        "rocm-smi",
        rocm([["0" if i == j else "XGMI" for j in range(8)] for i in range(8)]),
    )
    assert levels(detect(tmp_path, Told("mi300x")))[1] == ("gpu", 8, "full-mesh", 1, 64.0, "xgmi")


def test_a_tool_that_fails(tmp_path: Path) -> None:
    tool(
        tmp_path, "nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", code=9
    )
    with pytest.raises(
        BackendError, match=r"nvidia-smi topo -m failed with exit code 9: Failed to"
    ):
        detect(tmp_path)
    tool(tmp_path, "nvidia-smi", "No devices were found")
    with pytest.raises(InputError, match="nvidia-smi topo -m: has no heading of GPUs"):
        detect(tmp_path)
