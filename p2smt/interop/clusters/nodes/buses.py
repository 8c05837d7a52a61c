"""Levels of what PCIe joins: NUMA nodes, PCIe switches, and GPUs or groups of linked GPUs.

A level is kept where its entities hold equally many GPUs, numbered one after the other; any other
grouping is left out, and said to be.
"""

from __future__ import annotations

from itertools import pairwise

from p2smt.cluster.topology import Level, Link, LinkKind, Piece
from p2smt.interop.clusters.nodes.facts import BusPath, InnerLevels, NodeFacts

LATENCY_S = 5.7e-6
"""Of a step, as NCCL has it for rings over PCIe (src/graph/tuning.cc)."""
SOCKET_BYTES_PER_S = 16e9
"""Between NUMA nodes where nothing is told: what NCCL takes for AMD's CPUs (src/graph/topo.h)."""
_PCIE = "pcie"


def bus_levels(node: NodeFacts, each: int, pcie_bytes_per_s: float) -> InnerLevels:
    """The levels over units of ``each`` GPUs, the units themselves included.

    ``pcie_bytes_per_s``: of a GPU's own link.
    """
    units = len(node.gpus) // each
    near = [[_near(node, a, b, each) for b in range(units)] for a in range(units)]
    lost: list[str] = []
    numa = _grouped(near, BusPath.NODE, "NUMA nodes", lost)
    switch = _grouped(near, BusPath.PXB, "PCIe switches", lost)
    if numa and switch and numa % switch:
        lost.append("PCIe switches span NUMA nodes: the level of the switches is left out")
        switch = 0
    levels = []
    if numa:
        levels.append(_level("numa", units // numa, _socket(node, lost)))
    if switch and switch != numa:
        over = (numa or units) // switch
        levels.append(_level("switch", over, _uplink(node, pcie_bytes_per_s)))
    name = "gpu" if each == 1 else "island"
    inner = switch or numa or units
    if inner > 1:
        levels.append(_level(name, inner, pcie_bytes_per_s, each))
    return InnerLevels(tuple(level for level in levels if level.size > 1), tuple(lost))


def _level(name: str, size: int, rate: float, ports: int = 1) -> Level:
    pieces = (Piece("simple", LATENCY_S, rate),)
    return Level(name, size, Link(LinkKind.SWITCH, pieces, ports=ports, fabric=_PCIE))


def _near(node: NodeFacts, one: int, other: int, each: int) -> BusPath | None:
    """The most that lies between GPUs of two units; None: the source does not tell."""
    found = [
        node.near[i][j]
        for i in range(one * each, (one + 1) * each)
        for j in range(other * each, (other + 1) * each)
    ]
    told = [near for near in found if near is not None]
    return max(told) if told else None


def _grouped(near: list[list[BusPath | None]], most: BusPath, what: str, lost: list[str]) -> int:
    """Units in each group within which no more than ``most`` lies; 0: they are no level."""
    units = len(near)
    groups = [
        frozenset(j for j in range(units) if j == i or _within(row[j], most))
        for i, row in enumerate(near)
    ]
    distinct = list(dict.fromkeys(groups))
    sizes = sorted({len(group) for group in distinct})
    if len(distinct) == 1 or sizes[-1] == 1:
        return 0
    one_after_another = [unit for group in distinct for unit in sorted(group)]
    if sum(map(len, distinct)) != units or one_after_another != list(range(units)):
        lost.append(f"GPUs are not numbered by their {what}: that level is left out")
        return 0
    if any(a != b for a, b in pairwise(sizes)):
        shown = ", ".join(str(len(group)) for group in distinct[:8])
        lost.append(f"{what} hold {shown} GPUs: that level is left out, as they must be alike")
        return 0
    return sizes[0]


def _within(near: BusPath | None, most: BusPath) -> bool:
    return near is None or near <= most


def _socket(node: NodeFacts, lost: list[str]) -> float:
    rate = node.socket_bytes_per_s
    how = "as NCCL takes it to be for such CPUs" if rate else "NCCL's for AMD's CPUs"
    rate = rate or SOCKET_BYTES_PER_S
    lost.append(f"what joins NUMA nodes is not told: {rate / 1e9:g} GB/s, {how}")
    return rate


def _uplink(node: NodeFacts, pcie_bytes_per_s: float) -> float:
    """What a PCIe switch has towards its CPU; as much as a GPU where that is not told."""
    told = [gpu.uplink_bytes_per_s for gpu in node.gpus]
    return min((rate for rate in told if rate is not None), default=pcie_bytes_per_s)
