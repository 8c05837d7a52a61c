"""GPUs by name: their links to each other, and their PCIe.

Rates are in each direction.  Sources: NVIDIA's data sheets (NVLink in total counts both
directions) and https://www.nvidia.com/en-us/data-center/nvlink/ for links and generations, AMD's
data sheets for Infinity Fabric, https://pci-ids.ucw.cz for device numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from p2smt.cluster.file import load_topology
from p2smt.cluster.link import Device
from p2smt.errors import InputError, did_you_mean

PCIE_GENERATIONS = {1: 4e9, 2: 8e9, 3: 15.754e9, 4: 31.508e9, 5: 63.015e9, 6: 121e9}
"""Bytes per second in each direction of 16 lanes, without the line code: 8b/10b, from generation 3
on 128b/130b, of 6 what its flits carry."""


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A model: ``links`` leave it for other GPUs, each of ``link_bytes_per_s`` on ``fabric``.

    ``on_board``: it comes on boards whose GPUs all are joined by these links; otherwise bridges may
    join a few.  ``words`` is what its product names hold, ``devices`` are its PCI device numbers,
    ``library`` is what presets of such GPUs run.
    """

    name: str
    fabric: str
    links: int
    link_bytes_per_s: float
    pcie: int
    library: str
    on_board: bool = True
    words: str = ""
    devices: tuple[str, ...] = ()

    @property
    def pcie_bytes_per_s(self) -> float:
        """Its PCIe link, of 16 lanes."""
        return PCIE_GENERATIONS[self.pcie]


MODELS: tuple[GpuModel, ...] = (
    GpuModel("gb300", "nvlink5", 18, 50e9, 6, "nccl-2.30", words=r"GB300"),
    GpuModel("gb200", "nvlink5", 18, 50e9, 5, "nccl-2.30", words=r"GB200", devices=("0x2941",)),
    GpuModel("b300", "nvlink5", 18, 50e9, 6, "nccl-2.30", words=r"\bB300"),
    GpuModel("b200", "nvlink5", 18, 50e9, 5, "nccl-2.30", words=r"\bB200", devices=("0x2901",)),
    GpuModel(
        "h100-pcie",
        *("nvlink4", 12, 25e9, 5, "nccl-2.30", False),
        words=r"\bH[12]00 (PCIe|NVL)",
        devices=("0x2331", "0x2321"),
    ),
    GpuModel("h200", "nvlink4", 18, 25e9, 5, "nccl-2.30", words=r"\bH200\b", devices=("0x2335",)),
    GpuModel("h100", "nvlink4", 18, 25e9, 5, "nccl-2.30", words=r"\bH100\b", devices=("0x2330",)),
    GpuModel("h800", "nvlink4", 8, 25e9, 5, "nccl-2.30", words=r"\bH800\b", devices=("0x2324",)),
    GpuModel("h20", "nvlink4", 18, 25e9, 5, "nccl-2.30", words=r"\bH20\b", devices=("0x2329",)),
    GpuModel("a800", "nvlink3", 8, 25e9, 4, "nccl-2.20", words=r"A800-SXM", devices=("0x20f3",)),
    GpuModel(
        "a100-pcie",
        *("nvlink3", 12, 25e9, 4, "nccl-2.20", False),
        words=r"A100[ -](80GB )?PCIE?",
        devices=("0x20f1", "0x20b5"),
    ),
    GpuModel(
        "a100",
        *("nvlink3", 12, 25e9, 4, "nccl-2.20"),
        words=r"A100-SXM",
        devices=("0x20b0", "0x20b2"),
    ),
    GpuModel("a30", "nvlink3", 4, 25e9, 4, "nccl-2.20", False, r"\bA30\b"),
    GpuModel("a40", "nvlink3", 4, 14.0625e9, 4, "nccl-2.20", False, r"\bA40\b"),
    GpuModel("a6000", "nvlink3", 4, 14.0625e9, 4, "nccl-2.20", False, r"RTX A6000"),
    GpuModel("a10", "", 0, 0, 4, "nccl-2.20", False, r"\bA10G?\b"),
    GpuModel("l4", "", 0, 0, 4, "nccl-2.30", False, r"\bL4\b"),
    GpuModel("l40s", "", 0, 0, 4, "nccl-2.30", False, r"\bL40S?\b"),
    GpuModel("rtx3090", "nvlink3", 4, 14.0625e9, 4, "nccl-2.20", False, r"RTX 3090"),
    GpuModel("rtx4090", "", 0, 0, 4, "nccl-2.30", False, r"RTX 4090"),
    GpuModel("t4", "", 0, 0, 3, "nccl-2.20", False, r"\bT4\b"),
    GpuModel(
        "v100",
        *("nvlink2", 6, 25e9, 3, "nccl-2.12"),
        words=r"V100-SXM",
        devices=("0x1db1", "0x1db5", "0x1db8"),
    ),
    GpuModel("v100-pcie", "", 0, 0, 3, "nccl-2.12", False, r"V100S?-PCIE", ("0x1db4", "0x1db6")),
    GpuModel("p100", "nvlink1", 4, 20e9, 3, "nccl-2.12", True, r"P100-SXM", ("0x15f9",)),
    GpuModel("mi300x", "xgmi", 7, 64e9, 5, "rccl", True, r"MI300X\b", ("0x74a1", "0x74b5")),
    GpuModel("mi250x", "xgmi", 8, 50e9, 4, "rccl", True, r"MI250X?\b", ("0x740c", "0x740f")),
)
_BY_NAME = {model.name: model for model in MODELS}
_OF_SM = {60: "p100", 70: "v100", 80: "a100", 90: "h100", 100: "b200", 103: "b300"}
_OF_COUNT = ("p100", "v100", "a100", "h100")
"""Boards whose NVLinks tell them, the oldest of each number first: it is what is assumed."""


_PRESETS = {
    "b200": "dgx-b200",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
    "h100": "dgx-h100",
    "h200": "gcp-a3-ultra",
    "mi300x": "mi300x",
}
"""A preset with GPUs of the model, for models that are sold with one size of memory alone."""


def device_of(model: GpuModel) -> Device | None:
    """What a GPU of the model can do by itself; None where no preset has it, or sizes differ."""
    preset = _PRESETS.get(model.name)
    return None if preset is None else load_topology(preset).device


def gpu_model(name: str) -> GpuModel:
    """The model of that name.

    Raises:
        InputError: there is none.
    """
    if name.lower() not in _BY_NAME:
        known = tuple(_BY_NAME)
        remedy = did_you_mean(name.lower(), known) or f"known are {', '.join(known)}"
        raise InputError(f"GPU {name[:40]!r}", "is no model that p2smt knows", remedy)
    return _BY_NAME[name.lower()]


def model_of_product(product: str) -> str:
    """The model of a product name such as NVIDIA H100 80GB HBM3; empty: not known."""
    return next((m.name for m in MODELS if re.search(m.words, product, re.I)), "")


def model_of_device(device: str) -> str:
    """The model of a PCI device number such as 0x2330; empty: not known."""
    return next((m.name for m in MODELS if device.lower() in m.devices), "")


def model_of_capability(sm: int) -> str:
    """The model on a board of CUDA's compute capability, as links of that generation; or empty."""
    return _OF_SM.get(sm, "")


def model_of_links(count: int, gpus: int) -> str:
    """The board on which each of so many GPUs has ``count`` NVLinks to each other; or empty.

    By switches all its links lead to every other; without, they are shared out among the others.
    Only one number of links may fit.
    """
    fits = [
        name
        for name in _OF_COUNT
        if (count == _BY_NAME[name].links and name != "p100")
        or (gpus > 2 and count * (gpus - 1) == _BY_NAME[name].links)
    ]
    return fits[0] if len(fits) == 1 else ""


def same_count(name: str) -> tuple[str, ...]:
    """Other boards with as many links of another rate."""
    own = _BY_NAME[name]
    rates = {m.name: m.link_bytes_per_s for m in MODELS if m.on_board and m.links == own.links}
    return tuple(other for other, rate in reversed(rates.items()) if rate != own.link_bytes_per_s)
