"""Which GPUs a node has, as lines beside its matrix tell it.

A matrix is mostly pasted with what a tool prints above it: PyTorch's and vLLM's collect_env (``GPU
0: NVIDIA H100 80GB HBM3``), SGLang's check_env (``GPU 0,1,2,3: NVIDIA GB200``), ``nvidia-smi -L``,
nvidia-smi's own table (``|   0  NVIDIA A40 .. On |``), ``--query-gpu=index,name``, or rocm-smi's
``GPU[0] : Card Series: AMD Instinct MI210``.  On ROCm collect_env has one name for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from p2smt.interop.clusters.nodes.gpu_models import model_of_product

_NUMBERS = r"\d{1,3}(?:\s?[,-]\s?\d{1,3}){0,127}"
_LISTED = re.compile(
    rf"(?:^|[\s:'\"])GPU ?#?({_NUMBERS}): ?(?!NVLink|P2P)([A-Z][\w .()/+-]{{1,80}})"
)
_TABLE = re.compile(
    r"\|\s{1,8}(\d{1,3})\s{1,4}([A-Z][\w ./()-]{2,60}?)(?:\.\.\.)?\s+(?:On|Off|N/A) +\|"
)
_QUERIED = re.compile(
    r"\s*(\d{1,3}), ?((?:NVIDIA|Tesla|Quadro|GeForce|AMD)[\w ./()-]{2,60})(?:,.*)?"
)
_ROCM = re.compile(
    r"GPU\[(\d{1,3})\]\s*: (?:Card (?:Series|Model)|Device Name|Product Name):\s*(.{2,80})",
    re.IGNORECASE,
)
_ALL = re.compile(r"GPU models and configuration: (?!GPU ?\d)([A-Z].{2,80})")
_VENDOR = re.compile(r"NVIDIA|AMD|Tesla|Quadro|GeForce|Instinct|Radeon|[RG]TX|0x[0-9a-f]{4}")
_MENTION = re.compile(
    r"(?:NVIDIA|AMD|Tesla|Quadro|GeForce|Instinct|[RG]TX|\b\d{1,3} ?[x*] ?(?=[A-Z]))"
    r"[\w \[\]/().:-]{2,80}"
)
_UUID = re.compile(r"\s*\(UUID.*")


def products_in(text: str, gpus: int) -> dict[int, str]:
    """The product of each GPU that a text names, by number; the first name of each counts.

    Where it names fewer than there are, all by one name, the others have that name as well.
    """
    found: dict[int, str] = {}
    for line in text.split("\n"):
        for number, product in _named(line[:4096], gpus):
            found.setdefault(number, product)
    if found and len(set(found.values())) == 1:
        found = dict.fromkeys(range(gpus), next(iter(found.values())))
    return found if set(found) == set(range(gpus)) else {}


def mentioned_in(text: str) -> str:
    """The product that a text names somewhere, in whatever words; empty if it names several models.

    A line such as ``Device 0: NVIDIA A40, compute capability 8.6``, ``GPU Type: 8x H100``, or of
    lspci; which GPUs are meant it does not say.
    """
    found = {model_of_product(one): one for one in _MENTION.findall(text)}
    found.pop("", None)
    return next(iter(found.values())).strip() if len(found) == 1 else ""


def _named(line: str, gpus: int) -> Iterator[tuple[int, str]]:
    """GPUs by number and product, in one line."""
    whole = (pattern.match(line) for pattern in (_TABLE, _QUERIED, _ROCM))
    found = [(one[1], one[2]) for one in (*_LISTED.finditer(line), *whole) if one]
    if not found and (common := _ALL.search(line)):
        found = [(f"0-{gpus - 1}", common[1])]
    for numbers, name in found:
        product = _UUID.sub("", name).strip()
        if _VENDOR.search(product) or model_of_product(product):
            yield from ((i, product) for i in _numbers(numbers) if i < gpus)


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
