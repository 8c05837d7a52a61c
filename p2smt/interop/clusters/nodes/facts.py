"""What a file tells of the inside of one node, before it is levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from p2smt.cluster.topology import Level

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
    sentences on what was left out or filled in.
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
