"""What joins NUMA nodes has one rate, whatever else joins the GPUs on either side."""

from __future__ import annotations

import pytest

from p2smt.interop.clusters.nodes.node_facts import Told
from tests.interop.clusters.nodes.reading import inner, lost
from tests.interop.clusters.nodes.texts import (
    alike,
    bus,
    cpu,
    gpu,
    link,
    matrix,
    pci,
    rocm,
    system,
)

SOCKET = "what joins NUMA nodes is not told: 16 GB/s, NCCL's for AMD's CPUs"


def halves(size: int, inside: str, across: str = "SYS") -> list[list[str]]:
    """Two groups of so many GPUs."""
    return [
        ["X" if i == j else inside if i // size == j // size else across for j in range(2 * size)]
        for i in range(2 * size)
    ]


@pytest.mark.parametrize("inside", ["NV4", "NV2", "NODE", "PHB", "PXB", "PIX"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_rate_between_sockets_is_that_of_the_socket(size: int, inside: str) -> None:
    text = matrix(halves(size, inside))
    assert inner(text, Told("a100"))[0] == ("numa", 2, "switch", 1, 16.0, "pcie")
    assert SOCKET in lost(text, Told("a100"))


def test_hives_of_rocm() -> None:
    kinds = [["0" if c == "X" else c for c in row] for row in halves(4, "XGMI", "PCIE")]
    levels = inner(rocm(kinds), Told("mi210"))
    assert [one[:5] for one in levels] == [
        ("numa", 2, "switch", 1, 16.0),
        ("gpu", 4, "full-mesh", 1, 50.0),
    ]
    assert SOCKET in lost(rocm(kinds), Told("mi210"))


def test_of_an_intel_cpu_in_xml() -> None:
    """6 GB/s, as NCCL takes Haswell's; pairs of GPUs under each."""
    cpus = [
        cpu(
            c,
            "".join(
                pci(
                    bus(2 * c + i),
                    "0x030200",
                    gpu(2 * c + i, link(bus(2 * c + 1 - i), 4, "0x030200")),
                )
                for i in range(2)
            ),
            vendor="GenuineIntel",
            familyid="6",
            modelid="63",
        )
        for c in range(2)
    ]
    assert inner(system(*cpus))[0] == ("numa", 2, "switch", 1, 6.0, "pcie")


def test_no_more_than_what_lies_below_can_send() -> None:
    """A T4's PCIe of generation 3 is slower than the socket's link."""
    assert inner(matrix(halves(1, "PHB")), Told("t4"))[0][4] == 15.754


def test_groups_that_span_sockets_meet_inside_each() -> None:
    """GPUs 0, 2 on one socket and 1, 3 on the other, linked 0-1 and 2-3: each meets its like."""
    cells = [
        ["X", "NV4", "NODE", "SYS"],
        ["NV4", "X", "SYS", "NODE"],
        ["NODE", "SYS", "X", "NV4"],
        ["SYS", "NODE", "NV4", "X"],
    ]
    assert inner(matrix(cells), Told("a100"))[0] == ("island", 2, "switch", 2, 31.508, "pcie")


def test_one_socket_has_no_such_level() -> None:
    text = matrix(alike(4, "NODE"))
    assert inner(text, Told("a100")) == [("gpu", 4, "switch", 1, 31.508, "pcie")]
    assert "NUMA" not in lost(text, Told("a100"))


def ring_of(links: list[tuple[int, int]]) -> list[list[str]]:
    """Two groups of four GPUs, some of their pairs linked."""
    cells = halves(4, "PHB")
    for i, j in links:
        cells[i][j] = cells[j][i] = "NV2"
    return cells


@pytest.mark.parametrize(
    "second",
    [
        [(4, 5), (5, 6), (6, 7), (7, 4)],
        [(4, 5), (5, 7), (7, 6), (6, 4)],
        [(4, 6), (6, 5), (5, 7), (7, 4)],
    ],
)
def test_groups_may_be_numbered_unlike_each_other(second: list[tuple[int, int]]) -> None:
    """Rings of four over the GPUs in any order are alike."""
    text = matrix(ring_of([(0, 1), (1, 2), (2, 3), (3, 0), *second]))
    assert [one[:4] for one in inner(text, Told("a100"))] == [
        ("numa", 2, "switch", 1),
        ("half", 2, "switch", 2),
        ("gpu", 2, "full-mesh", 1),
    ]


def test_a_group_on_one_pcie_switch_leaves_by_its_uplink() -> None:
    """As GPUs without links do: a switch of 16 lanes over pairs, both on one CPU."""

    def pair(c: int, linked: bool) -> str:
        gpus = "".join(
            pci(
                bus(2 * c + i),
                "0x030200",
                gpu(2 * c + i, link(bus(2 * c + 1 - i), 4, "0x030200") if linked else ""),
            )
            for i in range(2)
        )
        return pci(bus(90 + c), "0x060400", gpus)

    for linked in (True, False):
        text = system(cpu(0, pair(0, linked) + pair(1, linked)))
        assert inner(text)[0] == ("switch", 2, "switch", 1, 31.508, "pcie")


@pytest.mark.parametrize(
    ("near", "ports"), [([0], 1), ([0, 1], 2), ([0, 1, 2], 2), ([0, 1, 2, 3], 4)]
)
def test_as_many_ports_face_another_group_as_share_its_socket(near: list[int], ports: int) -> None:
    """Two groups of four: these GPUs of each are on a socket with their like of the other."""
    cells = halves(4, "NV4")
    for i in near:
        cells[i][i + 4] = cells[i + 4][i] = "NODE"
    level = ("island", 2, "switch", ports, 31.508, "pcie")
    assert inner(matrix(cells), Told("a100"))[0] == level


def test_groups_of_which_nothing_tells_the_socket_are_on_one_each() -> None:
    """The slower of both is taken; GPUs without links are on one."""
    kinds = [["0" if c == "X" else c for c in row] for row in halves(4, "XGMI", "PCIE")]
    text = rocm(kinds).partition("==== Numa")[0]
    assert inner(text, Told("mi100"))[0] == ("numa", 2, "switch", 1, 16.0, "pcie")
    assert "each group of linked ones is taken to be on its own" in lost(text, Told("mi100"))
    plain = text.replace("XGMI", "PCIE")
    assert inner(plain, Told("mi100")) == [("gpu", 8, "switch", 1, 31.508, "pcie")]
