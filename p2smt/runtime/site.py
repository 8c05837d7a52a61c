"""Where a rank runs, and what it tells while it does."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from p2smt.runtime.groups import GroupCache

Tell = Callable[[str], None]
"""Notes what the rank is about to do, for the message if it never gets further."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a rank runs: its number, the number of ranks, its device and its groups."""

    rank: int
    ranks: int
    device: torch.device
    groups: GroupCache

    def synchronize(self) -> None:
        """Wait until the device has done all that was issued."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def barrier(self) -> None:
        """Wait until every rank is here.

        NCCL's barrier is a collective on a GPU, by default on the one with the rank's number,
        which is another one where ranks share GPUs.
        """
        nccl = dist.get_backend() == dist.Backend.NCCL
        dist.barrier(device_ids=[self.device.index] if nccl else None)


def machine(site: Site) -> dict[str, str]:
    """What the rank runs on."""
    found = {
        "host": platform.node(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": str(os.cpu_count()),
        "device": str(site.device),
    }
    if site.device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(site.device)
    if site.device.type == "cuda" and dist.is_nccl_available():
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    return found
