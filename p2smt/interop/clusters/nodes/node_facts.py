"""What a file tells of the inside of one node, before it is levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from p2smt.cluster.topology import Level
from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.gpu_models import model_of_device, model_of_product
from p2smt.interop.clusters.nodes.product_lines import mentioned_in, products_in
from p2smt.interop.nccl_tests.log_lines import without_marks

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
    """A GPU: its name in the source, and its model (of :mod:`..models`; empty: not known).

    ``pcie_bytes_per_s`` is its own PCIe link in each direction, ``uplink_bytes_per_s`` what the
    PCIe switch over it has towards its CPU; None: not told, or there is no switch.  ``called`` is
    what the source says that it is, also where that is no known model; ``chip`` is that of a model
    which was taken by its chip, so that others of the chip may be meant.
    """

    name: str
    model: str = ""
    pcie_bytes_per_s: float | None = None
    uplink_bytes_per_s: float | None = None
    called: str = ""
    chip: str = ""


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
    ``mentioned``: a product that the text names, without saying that these GPUs are such.
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
    mentioned: str = ""

    def of_products(self, products: Mapping[int, str]) -> NodeFacts:
        """The same with GPUs of these products by number (what has none: as it is)."""
        named = (
            replace(
                gpu,
                model=model_of_product(products[i]) or model_of_device(products[i]),
                called=products[i],
                chip="",
            )
            if i in products
            else gpu
            for i, gpu in enumerate(self.gpus)
        )
        return replace(self, gpus=tuple(named))

    def only(self, kept: Sequence[int]) -> NodeFacts:
        """The same with these GPUs alone, in this order."""
        count = len(self.gpus)
        every = [*kept, *range(count, count + len(self.ports))]
        return replace(
            self,
            gpus=tuple(self.gpus[i] for i in kept),
            pairs=tuple(tuple(self.pairs[i][j] for j in kept) for i in kept),
            to_switch=tuple(self.to_switch[i] for i in kept),
            near=tuple(tuple(self.near[i][j] for j in every) for i in every),
        )


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
_HOPS, _ACROSS = "Hops between two GPUs", "3"
_GPU = re.compile(r"GPU\d{1,4}")
_FIRST = re.compile(r"(?<![\w[])GPU0[ \t]+GPU\d")
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
    lines = without_marks([line[:4096] for line in text.split("\n")], _FIRST)
    names, types = _block(lines, _TYPES, source)
    weights = _block(lines, _WEIGHTS, source)[1] if _WEIGHTS in text else []
    hops = _block(lines, _HOPS, source)[1] if _HOPS in text else []
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

    pairs = tuple(tuple(linked(i, j) for j in count) for i in count)
    uncounted = "how many xGMI links a pair of GPUs has is not told: one is counted"
    node = NodeFacts(
        source,
        tuple(Accelerator(name) for name in names),
        (),
        pairs,
        (0,) * len(names),
        tuple(tuple(_near(numa, hops, i, j) for j in count) for i in count),
        amd=True,
        lost=(uncounted,) if any(map(any, pairs)) else (),
    )
    named = node.of_products(products_in("\n".join(lines), len(names)))
    return replace(named, mentioned=mentioned_in(text))


def _near(numa: dict[int, int], hops: list[list[str]], i: int, j: int) -> BusPath | None:
    """By NUMA nodes; without them by hops: over a CPU there are two, over two CPUs three."""
    if i == j:
        return BusPath.PIX
    if i not in numa or j not in numa:
        if not hops:
            return None
        return BusPath.SYS if hops[i][j] == _ACROSS else BusPath.NODE
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
