"""GPUs by name: their links to each other, and their PCIe.

Rates are in each direction.  Sources: NVIDIA's data sheets (NVLink in total counts both
directions) and https://www.nvidia.com/en-us/data-center/nvlink/ for links and generations, AMD's
data sheets for Infinity Fabric, https://pci-ids.ucw.cz for device numbers, CUDA's programming guide
and ROCm's list of GPUs for chips.
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
class GpuChip:
    """What models of one chip share: their links, generation of PCIe, and library of presets."""

    fabric: str
    link_bytes_per_s: float
    pcie: int
    library: str


CHIPS = {
    "sm_60": GpuChip("nvlink1", 20e9, 3, "nccl-2.12"),
    "sm_61": GpuChip("", 0, 3, "nccl-2.12"),
    "sm_70": GpuChip("nvlink2", 25e9, 3, "nccl-2.12"),
    "sm_75": GpuChip("nvlink2", 25e9, 3, "nccl-2.20"),
    "sm_80": GpuChip("nvlink3", 25e9, 4, "nccl-2.20"),
    "sm_86": GpuChip("nvlink3", 14.0625e9, 4, "nccl-2.20"),
    "sm_89": GpuChip("", 0, 4, "nccl-2.30"),
    "sm_90": GpuChip("nvlink4", 25e9, 5, "nccl-2.30"),
    "sm_100": GpuChip("nvlink5", 50e9, 5, "nccl-2.30"),
    "sm_103": GpuChip("nvlink5", 50e9, 6, "nccl-2.30"),
    "sm_120": GpuChip("", 0, 5, "nccl-2.30"),
    "sm_121": GpuChip("", 0, 5, "nccl-2.30"),
    "gfx906": GpuChip("xgmi", 46e9, 4, "rccl"),
    "gfx908": GpuChip("xgmi", 46e9, 4, "rccl"),
    "gfx90a": GpuChip("xgmi", 50e9, 4, "rccl"),
    "gfx942": GpuChip("xgmi", 64e9, 5, "rccl"),
    "gfx950": GpuChip("xgmi", 76.8e9, 5, "rccl"),
}
"""By CUDA's compute capability, or by AMD's name."""
_ALONE = range(0)
_WHOLE = range(5, 9)
"""Boards of 8 that others of fewer GPUs, without switches, stand beside."""
_ANY = range(2, 9)


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A model: ``links`` leave it for other GPUs.

    ``on_board``: it comes on boards whose GPUs all are joined by these links; otherwise bridges may
    join a few.  ``boards``: how many of them in a node are surely on a board that joins all alike,
    over switches, or for xGMI one by one (four H100 may be half of such a board, or all of one
    without switches).  ``words`` is what its product names hold, ``devices`` are its PCI device
    numbers.
    """

    name: str
    chip: str
    links: int = 0
    on_board: bool = False
    boards: range = _ALONE
    words: str = ""
    devices: tuple[str, ...] = ()

    @property
    def fabric(self) -> str:
        """The hardware of its links; empty without."""
        return CHIPS[self.chip].fabric if self.links else ""

    @property
    def link_bytes_per_s(self) -> float:
        """A link of it, in each direction."""
        return CHIPS[self.chip].link_bytes_per_s if self.links else 0.0

    @property
    def pcie_bytes_per_s(self) -> float:
        """Its PCIe link, of 16 lanes."""
        return PCIE_GENERATIONS[CHIPS[self.chip].pcie]

    @property
    def library(self) -> str:
        """What presets of such GPUs run."""
        return CHIPS[self.chip].library


MODELS: tuple[GpuModel, ...] = (
    GpuModel("gb300", "sm_103", 18, True, range(2, 73), r"GB300"),
    GpuModel("gb200", "sm_100", 18, True, range(2, 73), r"GB200", ("0x2941",)),
    GpuModel("b300", "sm_103", 18, True, _ANY, r"\bB300"),
    GpuModel("b200", "sm_100", 18, True, _ANY, r"\bB200", ("0x2901", "0x2909")),
    GpuModel("gh200", "sm_90", 18, True, _ALONE, r"GH200", ("0x2342", "0x2348")),
    GpuModel("h200-nvl", "sm_90", 18, words=r"\bH200 NVL", devices=("0x233b",)),
    GpuModel("h200", "sm_90", 18, True, _WHOLE, r"\bH200\b", ("0x2335",)),
    GpuModel("h100-nvl", "sm_90", 12, words=r"\bH100 NVL|\bH100L\b", devices=("0x2321",)),
    GpuModel("h100-pcie", "sm_90", 12, words=r"\bH100 PCIe", devices=("0x2331",)),
    GpuModel(
        "h100", "sm_90", 18, True, _WHOLE, r"\bH100\b", ("0x2330", "0x2337", "0x2338", "0x2339")
    ),
    GpuModel("h800-pcie", "sm_90", 8, words=r"\bH800 PCIe"),
    GpuModel("h800", "sm_90", 8, True, _WHOLE, r"\bH800\b", ("0x2324",)),
    GpuModel("h20", "sm_90", 18, True, _WHOLE, r"\bH20\b", ("0x2329", "0x232c")),
    GpuModel("a800-pcie", "sm_80", 8, words=r"A800 ([48]0GB )?PCIE?"),
    GpuModel("a800", "sm_80", 8, True, _WHOLE, r"A800 SXM", ("0x20f3", "0x20bd")),
    GpuModel("a100-pcie", "sm_80", 12, False, _ALONE, r"A100 (80GB )?PCIE?", ("0x20f1", "0x20b5")),
    GpuModel(
        "a100", "sm_80", 12, True, range(5, 17), r"A100 (SXM|PG509)", ("0x20b0", "0x20b2", "0x20b3")
    ),
    GpuModel("a30", "sm_80", 4, words=r"\bA30\b", devices=("0x20b7",)),
    GpuModel("a40", "sm_86", 4, words=r"\bA40\b", devices=("0x2235",)),
    GpuModel("a6000", "sm_86", 4, words=r"RTX A6000", devices=("0x2230",)),
    GpuModel("a5000", "sm_86", 4, words=r"RTX A5000", devices=("0x2231",)),
    GpuModel("a4500", "sm_86", 4, words=r"RTX A4500"),
    GpuModel("a4000", "sm_86", words=r"RTX A4000"),
    GpuModel("a10", "sm_86", words=r"\bA10G?\b", devices=("0x2236", "0x2237")),
    GpuModel("rtx3090", "sm_86", 4, words=r"RTX 3090", devices=("0x2204", "0x2203")),
    GpuModel("rtx3080", "sm_86", words=r"RTX 3080"),
    GpuModel("rtx3070", "sm_86", words=r"RTX 3070"),
    GpuModel("rtx6000-ada", "sm_89", words=r"RTX 6000 Ada", devices=("0x26b1",)),
    GpuModel("rtx5000-ada", "sm_89", words=r"RTX 5000 Ada"),
    GpuModel("l20", "sm_89", words=r"\bL20\b"),
    GpuModel("l40s", "sm_89", words=r"\bL40S?\b", devices=("0x26b9", "0x26b5")),
    GpuModel("l4", "sm_89", words=r"\bL4\b", devices=("0x27b8",)),
    GpuModel("rtx4090", "sm_89", words=r"RTX 4090", devices=("0x2684", "0x2685")),
    GpuModel("rtx4080", "sm_89", words=r"RTX 4080"),
    GpuModel("rtx5080", "sm_120", words=r"RTX 5080"),
    GpuModel("rtx5090", "sm_120", words=r"RTX 5090", devices=("0x2b85", "0x2b87")),
    GpuModel(
        "rtx-pro-6000", "sm_120", words=r"RTX PRO 6000", devices=("0x2bb1", "0x2bb4", "0x2bb5")
    ),
    GpuModel("gb10", "sm_121", words=r"\bGB10\b"),
    GpuModel("titan-rtx", "sm_75", 2, words=r"TITAN RTX"),
    GpuModel("rtx2080ti", "sm_75", 2, words=r"RTX 2080 Ti", devices=("0x1e04", "0x1e07")),
    GpuModel("rtx8000", "sm_75", 2, words=r"Quadro RTX [68]000", devices=("0x1e30", "0x1e78")),
    GpuModel("t4", "sm_75", words=r"\bT4\b", devices=("0x1eb8",)),
    GpuModel(
        "v100",
        "sm_70",
        6,
        True,
        range(9, 17),
        r"V100 (SXM|DGXS)",
        ("0x1db1", "0x1db5", "0x1db8", "0x1df5"),
    ),
    GpuModel(
        "v100-pcie", "sm_70", words=r"V100S? (PCIE|FHHL)", devices=("0x1db4", "0x1db6", "0x1df6")
    ),
    GpuModel("p100", "sm_60", 4, True, _ALONE, r"P100 SXM", ("0x15f9",)),
    GpuModel("p100-pcie", "sm_60", words=r"P100 PCIE", devices=("0x15f7", "0x15f8")),
    GpuModel("p40", "sm_61", words=r"\bP40\b"),
    GpuModel("gtx1080ti", "sm_61", words=r"GTX 1080 Ti", devices=("0x1b06",)),
    GpuModel("mi355x", "gfx950", 7, True, _ANY, r"MI355X\b", ("0x75a3",)),
    GpuModel("mi350x", "gfx950", 7, True, _ANY, r"MI350X\b", ("0x75a0",)),
    GpuModel("mi325x", "gfx942", 7, True, _ANY, r"MI325X\b", ("0x74a5", "0x74b9")),
    GpuModel(
        "mi300x", "gfx942", 7, True, _ANY, r"MI300X\b", ("0x74a1", "0x74b5", "0x74a9", "0x74bd")
    ),
    GpuModel("mi308x", "gfx942", 7, True, _ANY, r"MI308X\b", ("0x74a2", "0x74b6")),
    GpuModel("mi300a", "gfx942", 6, True, _ALONE, r"MI300A\b", ("0x74a0",)),
    GpuModel("mi250x", "gfx90a", 8, True, _ALONE, r"MI250X?\b", ("0x7408", "0x740c")),
    GpuModel("mi210", "gfx90a", 3, words=r"MI210\b", devices=("0x740f",)),
    GpuModel("mi100", "gfx908", 3, words=r"MI100\b", devices=("0x738c", "0x738e")),
    GpuModel("mi50", "gfx906", 2, words=r"MI[56]0\b|Radeon Pro VII", devices=("0x66a1",)),
)
_BY_NAME = {model.name: model for model in MODELS}
_OF_CHIP = {
    "sm_60": "p100",
    "sm_70": "v100",
    "sm_80": "a100",
    "sm_90": "h100",
    "sm_100": "b200",
    "sm_103": "b300",
    "sm_61": "gtx1080ti",
    "gfx906": "mi50",
    "gfx908": "mi100",
    "gfx90a": "mi250x",
    "gfx942": "mi300x",
    "gfx950": "mi355x",
}
"""What is taken of a chip where nothing names the model: what large nodes are made of."""
_GCN = {"910": "90a", "940": "942", "941": "942"}
"""Numbers of AMD's chips that RCCL's older files write otherwise."""
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


_MAKERS = re.compile(r"nvidia|amd|instinct|geforce|tesla|quadro|[\s_-]|sxm\d?$|(sxm\d)?\d\d+gb$")
_ALIASES = {
    "a6000ada": "rtx6000-ada",
    "l40": "l40s",
    "a10g": "a10",
    "mi250": "mi250x",
    "mi60": "mi50",
    "v100s": "v100-pcie",
    "rtx3090ti": "rtx3090",
    "6000ada": "rtx6000-ada",
    "rtx6000blackwell": "rtx-pro-6000",
    "rtx6000pro": "rtx-pro-6000",
    "gracehopper": "gh200",
    "1080ti": "gtx1080ti",
}


def gpu_model(name: str) -> GpuModel:
    """The model of that name, whoever's word for it stands before, or of a product's.

    Raises:
        InputError: there is none.
    """
    by_plain = {_plain(known): known for known in _BY_NAME} | _ALIASES
    plain = _plain(name)
    spellings = (plain, f"rtx{plain}", plain.removeprefix("rtx"))
    found = next((by_plain[one] for one in spellings if one in by_plain), model_of_product(name))
    if found:
        return _BY_NAME[found]
    known = tuple(_BY_NAME)
    alike = [one for one in known if _parts(one) <= _parts(plain) or _parts(plain) <= _parts(one)]
    if chip := models_of_chip(name.lower().partition(":")[0]):
        alike = []
        known = chip
    remedy = did_you_mean(name.lower(), alike) or f"known are {', '.join(known)}"
    raise InputError(f"GPU {name[:40]!r}", "is no model that p2smt knows", remedy)


def _plain(name: str) -> str:
    return _MAKERS.sub("", name.lower())


def _parts(name: str) -> set[str]:
    """Its words and numbers."""
    return set(re.findall(r"\d+|[a-z]+", name))


def model_of_product(product: str) -> str:
    """The model of a product name such as NVIDIA H100 80GB HBM3; empty: not known."""
    spaced = re.sub(r"[_-]+", " ", product)  # as labels of Kubernetes have it
    return next((m.name for m in MODELS if re.search(m.words, spaced, re.I)), "")


def model_of_device(device: str) -> str:
    """The model of a PCI device number such as 0x2330; empty: not known."""
    return next((m.name for m in MODELS if device.lower() in m.devices), "")


def chip_of_gcn(gcn: str) -> str:
    """AMD's chip in a word such as gfx90a:sramecc+, 908 or RCCL's 910; empty without one."""
    bare = gcn.removeprefix("gfx").partition(":")[0]
    return f"gfx{_GCN.get(bare, bare)}" if bare else ""


def model_of_chip(chip: str) -> str:
    """The model that is taken where only the chip is told (see ``chip``); or empty."""
    return _OF_CHIP.get(chip, "")


def models_of_chip(chip: str) -> tuple[str, ...]:
    """All models of a chip."""
    return tuple(m.name for m in MODELS if m.chip == chip)


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
    return tuple(
        m.name
        for m in reversed(MODELS)
        if m.on_board and m.links == own.links and m.fabric.startswith("nvlink")
        if m.link_bytes_per_s != own.link_bytes_per_s
    )
