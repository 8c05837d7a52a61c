"""Tells without torch that there are too few GPUs, from what the system shows of them.

What is counted is an upper bound: a rank may see fewer than the machine has, and then torch says
so when the rank starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from p2smt.errors import BackendError, ExecutionError
from p2smt.runtime.options import RunOptions
from p2smt.runtime.ranks.place import Place

_ROOT = Path("/")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"
_OTHER_WAYS = ("dev/dxg", "dev/kfd", "dev/nvmap", "dev/nvhost-gpu")
"""Signs of GPUs that are not found as others are: of WSL, of AMD, of Tegra."""


def check_gpus(options: RunOptions, place: Place | None, ranks: int) -> None:
    """Refuse to start ranks, or to be one, where GPUs are surely missing.

    A launcher may show each rank a GPU of its own, so of ranks that exist (``place``) only those
    that can see none at all are refused.

    Raises:
        BackendError: there is no GPU.
        ExecutionError: there are fewer than the ranks need.
    """
    count = most_gpus() if options.device == "cuda" else None
    if count == 0:
        raise no_gpus(options)
    if count is not None and place is None and (ranks - 1) // options.ranks_per_gpu >= count:
        raise too_few_gpus(count * options.ranks_per_gpu, count, count)


def no_gpus(options: RunOptions) -> BackendError:
    """The error where the system shows no GPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    why = "" if hidden is None else f" (CUDA_VISIBLE_DEVICES={hidden[:40]})"
    return BackendError(
        f"{_asked(options)}: this machine shows no CUDA GPU{why}; run on a machine with GPUs, "
        "or use --backend gloo --device cpu"
    )


def no_cuda(options: RunOptions) -> BackendError:
    """The error where torch cannot use a GPU."""
    also = ", or has no NCCL" if options.backend == "nccl" else ""
    return BackendError(
        f"{_asked(options)}: this torch finds no CUDA GPU{also}; install a CUDA build of torch "
        "on a machine with GPUs, or use --backend gloo --device cpu"
    )


def _asked(options: RunOptions) -> str:
    return "backend nccl" if options.backend == "nccl" else "device cuda"


def too_few_gpus(rank: int, gpu: int, count: int) -> ExecutionError:
    """The error of a rank that has no GPU."""
    return ExecutionError(
        f"rank {rank}: needs GPU {gpu}, but this machine has {count}; start fewer ranks, "
        "or put several on a GPU with --ranks-per-gpu (a check of results, not of times)"
    )


def most_gpus(environment: Mapping[str, str] = os.environ, root: Path = _ROOT) -> int | None:
    """GPUs that CUDA can find here at most; None: that cannot be known without asking it."""
    if not (root / "sys/bus/pci").exists() or any((root / way).exists() for way in _OTHER_WAYS):
        return None
    nodes = len(list((root / "dev").glob("nvidia[0-9]*")))
    drivers = len(list((root / "proc/driver/nvidia/gpus").glob("*")))
    present = max(nodes, drivers, sum(map(_is_gpu, (root / "sys/bus/pci/devices").glob("*"))))
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    return present if visible is None else min(present, _named(visible))


def _named(visible: str) -> int:
    """How many devices CUDA_VISIBLE_DEVICES names: those before the first that is none."""
    names = (name.strip() for name in visible.split(","))
    return sum(1 for _ in takewhile(lambda name: name not in ("", "-1"), names))


def _is_gpu(device: Path) -> bool:
    try:
        vendor, kind = (device / "vendor").read_text(), (device / "class").read_text()
    except OSError:
        return False
    return vendor.strip() == _NVIDIA and kind.startswith(_DISPLAY)
