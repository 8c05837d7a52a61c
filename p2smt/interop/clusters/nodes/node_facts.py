"""What a file tells of the inside of one node, before it is levels."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from p2smt.cluster.topology import Level
from p2smt.errors import InputError

MAX_GPUS = 128
MAX_CARDS = 256


class BusPath(IntEnum):
    """What lies between two devices of a node, as nvidia-smi names it: the nearest first.

    At most one PCIe bridge, several, the host bridge of a CPU, several of one NUMA node, and what
    joins NUMA nodes.
    """

    PIX = 1
    PXB = 2
    PHB = 3
    NODE = 4
    SYS = 5


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A GPU: its name in the source, and its model (of :mod:`..models`; empty: not told).

    ``pcie_bytes_per_s`` is its own PCIe link in each direction, ``uplink_bytes_per_s`` what the
    PCIe switch over it has towards its CPU; None: not told, or there is no switch.
    """

    name: str
    model: str = ""
    pcie_bytes_per_s: float | None = None
    uplink_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class CardPort:
    """A port of a network card, as the network sees it.

    ``card`` is the same for ports of one card, which share its PCIe link; rates are in each
    direction (None: not told), ``fabric`` is empty where it is not told.
    """

    name: str
    card: str
    bytes_per_s: float | None = None
    fabric: str = ""
    pcie_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The inside of a node.

    ``pairs[i][j]`` are the NVLinks (``amd``: xGMI links) that GPUs i and j have between them,
    directly or through switches; ``to_switch[i]`` those of GPU i to NVSwitches, where the source
    tells them apart.  ``linked``: whether the source tells of such links at all.  ``near[i][j]`` is
    what lies between devices i and j, GPUs before ports; None where a source tells the links of a
    pair instead.  ``socket_bytes_per_s`` is what joins its CPUs; None: not told.  ``lost`` are
    sentences on what was left out or filled in.  ``cpu``: whose its CPUs are, where it is told.
    """

    source: str
    gpus: tuple[Accelerator, ...]
    ports: tuple[CardPort, ...]
    pairs: tuple[tuple[int, ...], ...]
    to_switch: tuple[int, ...]
    near: tuple[tuple[BusPath | None, ...], ...]
    linked: bool = True
    amd: bool = False
    socket_bytes_per_s: float | None = None
    lost: tuple[str, ...] = ()
    cpu: str = ""

    def of_models(self, models: tuple[str, ...]) -> NodeFacts:
        """The same with GPUs of these models, one each (empty: as it is)."""
        pairs = zip(self.gpus, models, strict=True)
        return replace(self, gpus=tuple(replace(gpu, model=m or gpu.model) for gpu, m in pairs))


@dataclass(frozen=True, slots=True)
class Told:
    """What is said beside a file that files of nodes may not tell; empty, None: it is not said.

    ``gpu`` is a model by name, ``nic_ports`` how many ports of network cards a node has,
    ``nic_bytes_per_s`` the rate of each in each direction, ``nic_fabric`` the hardware that joins
    nodes.
    """

    gpu: str = ""
    nic_ports: int | None = None
    nic_bytes_per_s: float | None = None
    nic_fabric: str = ""


@dataclass(frozen=True, slots=True)
class InnerLevels:
    """Levels inside a node, outermost first, and what was left out or filled in to make them."""

    levels: tuple[Level, ...]
    lost: tuple[str, ...] = ()


# Reads what ``rocm-smi --showtopo`` prints: types of links, weights and NUMA nodes.
# A link of type XGMI joins two GPUs directly where its weight is 15, or no weights are printed;
# larger weights are of ways over other GPUs (ROCm/rocm-systems, amd-smi: each xGMI hop adds 15).


NAME = "rocm-smi --showtopo"
_TYPES, _WEIGHTS = "Link Type between two GPUs", "Weight between two GPUs"
_GPU = re.compile(r"GPU\d{1,4}")
_NUMA = re.compile(r"GPU ?\[?(\d{1,4})\]?\s*: \(Topology\) Numa Node: (\d{1,4})\s*")
_DIRECT = "15"
_KINDS = ("XGMI", "PCIE")


def is_rocm_matrix(text: str) -> bool:
    """Whether a text looks like one."""
    return _TYPES in text


def parse_rocm_matrix(text: str, source: str) -> NodeFacts:
    """The node in what ``rocm-smi --showtopo`` printed.

    Raises:
        InputError: a row or a cell of the types is missing, unknown, or differs from its mirror.
    """
    lines = [line[:4096] for line in text.split("\n")]
    names, types = _block(lines, _TYPES, source)
    weights = _block(lines, _WEIGHTS, source)[1] if _WEIGHTS in text else []
    numa = {int(f[1]): int(f[2]) for f in map(_NUMA.fullmatch, map(str.strip, lines)) if f}
    count = range(len(names))
    for i in count:
        for j in range(i):
            if types[i][j] not in _KINDS or types[i][j] != types[j][i]:
                given = f"{source}: {names[i]} to {names[j]}"
                rule = f"is {types[i][j][:20]}, and {types[j][i][:20]} the other way"
                raise InputError(given, rule, f"must be one of {', '.join(_KINDS)}, both ways")

    def linked(i: int, j: int) -> int:
        far = bool(weights) and weights[i][j] != _DIRECT
        return int(i != j and types[i][j] == "XGMI" and not far)

    return NodeFacts(
        source,
        tuple(Accelerator(name) for name in names),
        (),
        tuple(tuple(linked(i, j) for j in count) for i in count),
        (0,) * len(names),
        tuple(tuple(_near(numa, i, j) for j in count) for i in count),
        amd=True,
        lost=("how many xGMI links a pair of GPUs has is not told: one is counted",),
    )


def _near(numa: dict[int, int], i: int, j: int) -> BusPath | None:
    if i == j:
        return BusPath.PIX
    if i not in numa or j not in numa:
        return None
    return BusPath.NODE if numa[i] == numa[j] else BusPath.SYS


def _block(lines: list[str], title: str, source: str) -> tuple[tuple[str, ...], list[list[str]]]:
    """The names and the cells of the matrix under a title."""
    start = next((n for n, line in enumerate(lines) if title in line), len(lines))
    names = tuple(lines[start + 1].split()) if start + 1 < len(lines) else ()
    where = f"{source}, line {start + 2}"
    gpus = [name for name in names if _GPU.fullmatch(name)]
    if not 0 < len(names) <= MAX_GPUS or len(set(gpus)) != len(names):
        rule = f"must name 1 to {MAX_GPUS} GPUs, as GPU0, GPU1, .."
        raise InputError(where, rule, "give all that rocm-smi --showtopo prints")
    rows = [line.split() for line in lines[start + 2 : start + 2 + len(names)]]
    for number, name in enumerate(names):
        row = rows[number] if number < len(rows) else []
        if row[:1] != [name] or len(row) != len(names) + 1:
            given = f"{source}, line {start + 3 + number}: row {name}"
            rule = f"has {max(0, len(row) - 1)} cells for {len(names)} columns"
            raise InputError(given, rule, "give all that rocm-smi --showtopo prints")
    return names, [row[1:] for row in rows]
