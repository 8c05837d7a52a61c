"""What nvidia-smi topo -m prints: what is read, and what is refused."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.node_facts import Told
from p2smt.interop.clusters.nodes.topo_matrix import is_topo_matrix, parse_topo_matrix
from tests.interop.clusters.nodes.reading import inner, levels, lost
from tests.interop.clusters.nodes.texts import CUBE, alike, cells_of, matrix, with_cards

A100 = matrix(alike(8, "NV12"))
NEAR = [["PXB" if i // 2 == c // 2 else "SYS" for i in range(8)] for c in range(8)]
STORAGE = [["SYS"] * 8] * 2
CARDS = with_cards(alike(8, "NV12"), NEAR + STORAGE)
NAMES = [f"NIC{c}" for c in range(10)]
WITH_CARDS = matrix(CARDS, NAMES) + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n"


def test_all_pairs_alike_are_nvswitches() -> None:
    assert inner(A100) == [("gpu", 8, "switch", 1, 300.0, "nvlink3")]
    assert "by its links a100 is assumed, 25 GB/s a link; --gpu names another" in lost(A100)


@pytest.mark.parametrize(
    ("gpus", "cell", "level"),
    [
        (8, "NV18", ("gpu", 8, "switch", 1, 450.0, "nvlink4")),
        (16, "NV6", ("gpu", 16, "switch", 1, 150.0, "nvlink2")),
        (4, "NV4", ("gpu", 4, "full-mesh", 1, 100.0, "nvlink3")),  # 12 links shared by 3
        (4, "NV2", ("gpu", 4, "full-mesh", 1, 50.0, "nvlink2")),
        (2, "NV12", ("gpu", 2, "switch", 1, 300.0, "nvlink3")),
    ],
)
def test_a_number_of_links_that_only_one_board_has(
    gpus: int, cell: str, level: tuple[object, ...]
) -> None:
    assert inner(matrix(alike(gpus, cell))) == [level]


def test_what_has_as_many_links_is_said() -> None:
    assert "h100 is assumed, 25 GB/s a link (b200, b300, gb200, gb300: as many links" in lost(
        matrix(alike(8, "NV18"))
    )
    assert inner(matrix(alike(8, "NV18")), Told("b200")) == [
        ("gpu", 8, "switch", 1, 900.0, "nvlink5")
    ]


@pytest.mark.parametrize(("gpus", "cell"), [(8, "NV8"), (2, "NV4"), (4, "NV6"), (8, "NV1")])
def test_other_numbers_must_be_told(gpus: int, cell: str) -> None:
    with pytest.raises(InputError, match=r"does not tell which GPUs, so not how fast .* --gpu"):
        inner(matrix(alike(gpus, cell)))
    assert inner(matrix(alike(gpus, cell)), Told("h100"))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"GPU 'h1000': is no model that p2smt knows.*h100"):
        inner(A100, Told("h1000"))


def test_more_links_than_the_gpu_has_are_refused() -> None:
    with pytest.raises(InputError, match="a GPU: has 12 links to another, and v100 has 6"):
        inner(A100, Told("v100"))
    with pytest.raises(InputError, match="and l4 has none"):
        inner(A100, Told("l4"))


def test_a_hybrid_cube_mesh() -> None:
    text = matrix(cells_of(CUBE))
    assert inner(text) == [
        ("half", 2, "switch", 4, 37.5, "nvlink2"),
        ("gpu", 4, "switch", 1, 100.0, "nvlink2"),
    ]
    for sentence in (
        "v100 is assumed",
        "pairs of GPUs have 0 to 2 links: modelled as 2 parts of 4 GPUs; between parts a GPU has "
        "1.5 links to any other, also where there is none",
        "inside a part a pair may use all 4 links of a GPU",
        "GPUs have 4 to 5 links inside their part: all are given the fewest",
        "GPUs have 1 to 2 links to other parts: their mean is counted",
    ):
        assert sentence in lost(text)


def test_a_mesh_without_equal_parts_is_a_switch() -> None:
    ring = [[2 if abs(i - j) in (1, 4) else 0 for j in range(5)] for i in range(5)]
    text = matrix(cells_of(ring))
    assert inner(text, Told("v100")) == [("gpu", 5, "switch", 1, 100.0, "nvlink2")]
    assert "modelled as a switch with the 4 links of each GPU" in lost(text, Told("v100"))


def test_pairs_joined_by_bridges() -> None:
    cells = [
        [
            "X" if i == j else "NV12" if i // 2 == j // 2 else "NODE" if i // 4 == j // 4 else "SYS"
            for j in range(8)
        ]
        for i in range(8)
    ]
    text = matrix(cells)
    assert inner(text, Told("a100-pcie")) == [
        ("numa", 2, "switch", 1, 16.0, "pcie"),
        ("island", 2, "switch", 2, 31.508, "pcie"),
        ("gpu", 2, "switch", 1, 300.0, "nvlink3"),
    ]
    assert "PCIe is not told: 31.5 GB/s, that of a100-pcie" in lost(text, Told("a100-pcie"))


def test_a_gpu_that_lost_its_links_is_left_out() -> None:
    cells = alike(8, "NV18")
    for j in range(8):
        if j != 2:
            cells[2][j] = cells[j][2] = "NODE"
    assert inner(matrix(cells), Told("b200")) == [("gpu", 7, "switch", 1, 900.0, "nvlink5")]
    said = "GPU2 is not linked as most are: left out; CUDA_VISIBLE_DEVICES=0,1,3,4,5,6,7"
    assert said in lost(matrix(cells), Told("b200"))


def test_pcie_alone() -> None:
    cells = [
        ["X" if i == j else "PIX" if i // 2 == j // 2 else "SYS" for j in range(4)]
        for i in range(4)
    ]
    with pytest.raises(InputError, match="not how fast their PCIe is"):
        inner(matrix(cells))
    assert inner(matrix(cells), Told("a10")) == [
        ("numa", 2, "switch", 1, 16.0, "pcie"),
        ("gpu", 2, "switch", 1, 31.508, "pcie"),
    ]


def test_cards_by_name_or_with_a_legend() -> None:
    found = parse_topo_matrix(WITH_CARDS, "f")
    assert [port.name for port in found.ports][:3] == ["mlx5_0", "mlx5_bond_1", "NIC2"]
    told = Told(nic_bytes_per_s=25e9)
    assert levels(WITH_CARDS, told)[0] == ("node", 1, "switch", 8, 25.0, "infiniband")
    assert "far from all GPUs are left out: NIC8, NIC9" in lost(WITH_CARDS)
    assert "the rate of 8 network card ports is not told; --nic 400Gb/s" in lost(WITH_CARDS)


def test_cards_that_do_not_spread_evenly() -> None:
    text = matrix(with_cards(alike(8, "NV12"), [["PIX"] * 8] * 5), [f"mlx5_{c}" for c in range(5)])
    assert levels(text)[0][3] == 4
    assert "5 network card ports do not spread evenly over 8 GPUs: 4 are counted" in lost(text)


@pytest.mark.parametrize(
    "text",
    [
        A100.replace("\t", "   "),
        A100.replace("\tGPU0", "\t\x1b[4mGPU0").replace("NUMA ID\n", "NUMA ID\x1b[0m\n"),
        "$ nvidia-smi topo -m\n" + A100,
        "    topo = '''" + A100.rstrip() + "'''\n",
        A100.replace("\n", "\r\n"),
        A100.replace("\t0-23\t0\t\tN/A", ""),
        A100.replace("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", ""),
        "GPU names\n\n" + A100[: A100.index("Legend")],
        matrix(alike(8, "NV12"), tail="\t\t1\t\tN/A"),
    ],
)
def test_however_it_was_copied(text: str) -> None:
    assert is_topo_matrix(text)
    assert inner(text) == inner(A100)


def test_one_gpu() -> None:
    assert inner(matrix([["X"]])) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("\n".join(A100.split("\n")[:6]), "has no row GPU5: the matrix is cut off"),
        (A100.replace("GPU3\tNV12", "GPU3", 1), "row GPU3: has 7 cells for 8 columns"),
        (A100.replace("GPU3\tNV12\tNV12", "GPU3\tNV12\t", 1), "row GPU3: has 7 cells"),
        (A100.replace("GPU3\tNV12", "GPU3\tNV12\tNV12", 1), "row GPU3: has more cells than 8"),
        (A100.replace("GPU3\tNV12", "GPU3\tSYS", 1), "GPU3 to GPU0: is SYS, and NV12 from GPU0"),
        (A100.replace("GPU3\tNV12", "GPU3\tN/A", 1), "has 0 cells for 8 columns .'N/A' is none"),
        (A100.replace("GPU3\tNV12", "GPU3\tNV0", 1), "'NV0' is none"),
        (A100.replace("GPU3\tNV12", "GPU3\tX", 1), "row GPU3: has X in column GPU0"),
        (A100.replace("\nGPU3", "\nGPU2"), "row GPU2: is there twice"),
        (A100.replace("\tGPU3", "\tGPU2", 1), "names a device twice"),
        (A100.replace("GPU7", "GPU7:MIG0"), "lists slices of GPUs"),
        (A100.replace("GPU7", "mlx5_0"), "mlx5_0 to GPU0: is NV12: only GPUs have NVLinks"),
        (A100.replace("GPU3", "mlx5_0"), "must name GPUs before network cards"),
        (matrix(alike(129, "NV1")), "at most 128 GPUs"),
        ("GPU0", "has no row GPU0"),
    ],
)
def test_malformed(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        parse_topo_matrix(text, "f")
    assert str(caught.value).startswith("f")


def test_other_texts_are_not_taken_for_one() -> None:
    for text in ("", "GPU0: NVIDIA H100", "SwitchName=s0 Nodes=GPU0", "GPU0 X NV12\nGPU1 NV12 X"):
        assert not is_topo_matrix(text)
    with pytest.raises(InputError, match="has no heading of GPUs"):
        parse_topo_matrix("nothing", "f")
