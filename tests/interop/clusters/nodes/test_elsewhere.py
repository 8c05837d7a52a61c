"""What a text says beside the matrix, or at another place of the tree, is read."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.node_facts import Told
from tests.interop.clusters.nodes.reading import inner, levels, lost
from tests.interop.clusters.nodes.texts import (
    alike,
    bus,
    cpu,
    gpu,
    link,
    matrix,
    net,
    pci,
    rocm,
    system,
)

MATRIX = matrix(alike(4, "NV18"))
ROCM = rocm([["0" if i == j else "XGMI" for j in range(4)] for i in range(4)])


def four(line: str) -> str:
    return "".join(line.format(i) for i in range(4))


@pytest.mark.parametrize(
    "above",
    [
        "GPU 0,1,2,3: NVIDIA GB200\n",
        "CUDA available: True\nGPU 0, 1, 2, 3: NVIDIA GB200\nGPU 0 Compute Capability: 10.0\n",
        four("GPU {}: NVIDIA GB200\n"),
        "GPU models and configuration: GPU 0: NVIDIA GB200\n" + four("GPU {}: NVIDIA GB200\n")[24:],
        "GPU models and configuration: \n"
        + four("GPU {}: NVIDIA GB200\n")
        + "\nNvidia driver: 1\n",
        four("GPU {}: NVIDIA GB200 (UUID: GPU-0f-12-ab)\n"),
        four("|   {}  NVIDIA GB200                   On  |   00000008:01:00.0 Off |  0 |\n"),
        four("{}, NVIDIA GB200\n"),
        "index, name\n" + four("{}, NVIDIA GB200, 189471 MiB\n"),
        "GPU 0-3: NVIDIA GB200\n",
        "GPU 0: NVIDIA GB200\n",
    ],
)
def test_lines_over_a_matrix_name_the_gpus(above: str) -> None:
    for text in (above + MATRIX, MATRIX + above):
        assert inner(text) == [("gpu", 4, "switch", 1, 900.0, "nvlink5")]
        assert "not told: by its links" not in lost(text)
        with pytest.raises(InputError, match=r"says NVIDIA GB200 .*contradict"):
            inner(text, Told("h100"))


PAIR = matrix(alike(2, "NV4"))
A6000 = [("gpu", 2, "switch", 1, 56.25, "nvlink3")]


@pytest.mark.parametrize(
    "beside",
    [
        "Device 0: NVIDIA RTX A6000, compute capability 8.6, VMM: yes\n",
        "name\nNVIDIA RTX A6000\nNVIDIA RTX A6000\n",
        "CUDA:0 (NVIDIA RTX A6000, 48685MiB)\n",
        "GPUs: 2x RTX A6000\n",
        "Hardware: 2 x NVIDIA RTX A6000 48GB, AMD EPYC 7763, NVIDIA ConnectX-6\n",
        "[0] NVIDIA RTX A6000 | 30 C,   0 % | 1 / 49140 MB\n",
        "01:00.0 VGA compatible controller: NVIDIA Corporation GA102GL [RTX A6000] (rev a1)\n",
    ],
)
def test_a_product_in_any_words_is_taken_and_said(beside: str) -> None:
    """It does not say that these GPUs are such, so --gpu goes before it."""
    for text in (beside + PAIR, PAIR + beside):
        assert inner(text) == A6000
        assert "RTX A6000" in lost(text)
        assert ": a6000 is taken; --gpu names another" in lost(text)
        assert inner(text, Told("rtx3090")) == inner(PAIR, Told("rtx3090"))


def test_products_of_several_models_tell_none() -> None:
    text = "Device 0: NVIDIA RTX A6000, 8.6\nDevice 1: NVIDIA RTX A5000, 8.6\n" + PAIR
    with pytest.raises(InputError, match="does not tell which GPUs"):
        inner(text)


def test_a_name_that_is_not_known_is_said() -> None:
    text = "GPU 0,1,2,3: NVIDIA Graphics Device\n" + MATRIX
    assert inner(text) == inner(MATRIX)
    assert "NVIDIA Graphics Device is no GPU that p2smt knows: by its links h100" in lost(text)
    assert "not told: by" not in lost(text)
    assert "which GPU it is is not told: by its links h100" in lost(MATRIX)


def test_lines_of_other_things_name_none() -> None:
    for line in (
        "GPU 0: Driver 5.1\n",
        "GPU0: X\n",
        "GPU models and configuration: Could not collect\n",
    ):
        assert lost(line + MATRIX) == lost(MATRIX)


def test_gpus_of_two_models_are_told_apart() -> None:
    text = "GPU 0: NVIDIA RTX A6000\nGPU 1: NVIDIA RTX A6000\nGPU 2: NVIDIA T1000\n"
    cells = [["X", "NV4", "SYS"], ["NV4", "X", "SYS"], ["SYS", "SYS", "X"]]
    assert inner(text + matrix(cells)) == [("gpu", 2, "switch", 1, 56.25, "nvlink3")]
    assert "GPU2 is NVIDIA T1000, unlike most: left out" in lost(text + matrix(cells))


@pytest.mark.parametrize(
    "line",
    [
        "GPU[{}]\t\t: Card Series: \t\tAMD Instinct MI210\n",
        "GPU[{}]\t\t: Card series: \t\tInstinct MI210\n",
        "GPU[{}]\t\t: Card series: \t\t0x740f\n",
        "GPU {}: AMD Instinct MI210\n",
    ],
)
def test_names_beside_what_rocm_prints(line: str) -> None:
    assert inner(four(line) + ROCM) == [("gpu", 4, "full-mesh", 1, 50.0, "xgmi")]


def test_one_name_for_all_on_rocm() -> None:
    text = "GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)\n" + ROCM
    assert inner(text) == [("gpu", 4, "full-mesh", 1, 64.0, "xgmi")]


def test_hops_tell_sockets_where_numa_nodes_are_not() -> None:
    """As in a virtual machine, whose NUMA nodes are -1."""
    kinds = [["0", "PCIE"], ["PCIE", "0"]]
    plain = rocm(kinds).partition("==== Numa")[0]
    hops = "==== Hops between two GPUs ====\n  GPU0 GPU1\nGPU0 0 {0}\nGPU1 {0} 0\n\n"
    assert inner(hops.format(3) + plain, Told("mi100"))[0][:5:4] == ("numa", 16.0)
    assert inner(hops.format(2) + plain, Told("mi100"))[0][:5:4] == ("gpu", 31.508)
    assert "on how many sockets GPUs are is not told" in lost(plain, Told("mi100"))
    assert "on how many sockets" not in lost(hops.format(2) + plain, Told("mi100"))


NIC = '<nic><net name="{}" dev="0" speed="100000" port="0"/></nic>\n'


def nodes(inside: str, nic: str, over: str = "") -> str:
    gpus = "".join(pci(bus(i), "0x030200", device="0x20b5") for i in range(2))
    return system(cpu(0, gpus + inside + nic)).replace("</system>", f"{over}</system>")


@pytest.mark.parametrize(
    "text",
    [
        nodes("", NIC.format("eth0")),
        nodes("", "", NIC.format("eth0")),
        nodes(pci(bus(9), "0x060400", pci(bus(8), "0x020000", NIC.format("eth0"))), ""),
        nodes(pci(bus(9), "0x060400", NIC.format("eth0")), ""),
    ],
)
def test_a_card_anywhere_in_the_tree(text: str) -> None:
    assert levels(text)[0][1:5] == (1, "switch", 1, 12.5)
    assert "network cards are not told" not in lost(text)


def test_what_a_card_off_pcie_speaks() -> None:
    assert levels(nodes("", NIC.format("eth0")))[0][5] == "ethernet"
    assert "the network of its cards is not told" in lost(nodes("", NIC.format("mlx5_0")))


def test_cards_near_gpus_go_before_one_off_pcie() -> None:
    near = pci(
        bus(9),
        "0x060400",
        pci(bus(7), "0x030200", device="0x20b5") + pci(bus(8), "0x020700", net(0)),
    )
    text = nodes(near, NIC.format("eth0")).replace(pci(bus(1), "0x030200", device="0x20b5"), "")
    assert levels(text)[0] == ("node", 1, "switch", 1, 25.0, "infiniband")
    assert "network cards far from all GPUs are left out: eth0" in lost(text)


def test_links_that_lead_to_no_other_gpu_are_said() -> None:
    own = [pci(bus(i), "0x030200", gpu(i, link(bus(i), 12, "0x030200"))) for i in range(2)]
    text = system(cpu(0, "".join(own)))
    assert "24 links lead from GPUs to themselves, or to what is no GPU: left out" in lost(text)
    assert inner(text)[0][5] == "pcie"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Told(nic_ports=2, nic_bytes_per_s=50e9), "has 1 network card port of 12.5 GB/s: those of"),
        (
            Told(nic_bytes_per_s=50e9),
            "12.5 GB/s: those of --nic are taken",
        ),
        (Told(nic_ports=1, nic_bytes_per_s=12.5e9), ""),
        (Told(nic_bytes_per_s=12.5e9), ""),
        (Told(), ""),
    ],
)
def test_other_cards_than_the_file_has_are_said(told: Told, said: str) -> None:
    text = nodes("", NIC.format("eth0"))
    assert ("those of --nic are taken" in lost(text, told)) == bool(said)
    assert said in lost(text, told)
