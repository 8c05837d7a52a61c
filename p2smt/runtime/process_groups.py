"""Process groups of PyTorch, one per set of ranks."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist


@dataclass(slots=True)
class GroupCache:
    """Groups of ranks, made once and shared by steps with the same members.

    Every rank calls ``make`` with the same groups in the same order, those without it too: that
    costs a rank outside a group no communication, only a count that names the next group.
    (``use_local_synchronization`` would spare it even that, but then the name holds how many
    groups a rank has made before, and members with different counts wait for each other for
    ever.)  Members are sorted: ``new_group`` sorts them anyway, so an order of our own would be
    lost silently.
    """

    world: int
    known: dict[tuple[int, ...], dist.ProcessGroup | None] = field(default_factory=dict)

    def make(self, every: Iterable[Sequence[int]]) -> None:
        """Make the groups that do not exist yet; single ranks need none."""
        for members in every:
            key = tuple(sorted(members))
            if len(key) > 1 and key not in self.known:
                self.known[key] = self._made(key)

    def of(self, members: Sequence[int]) -> dist.ProcessGroup:
        """The group of these ranks, of which the caller is one."""
        found = self.known.get(tuple(sorted(members)))
        if found is None:
            raise RuntimeError(f"a rank asked for a group {members} that it is no member of")
        return found

    def _made(self, members: tuple[int, ...]) -> dist.ProcessGroup | None:
        whole = dist.group.WORLD if len(members) == self.world else None
        made = whole or dist.new_group(list(members))
        if not isinstance(made, dist.ProcessGroup):
            return None
        connect(made)
        return made


def connect(group: dist.ProcessGroup) -> None:
    """Let a group's ranks meet: NCCL's do so at their first call, which would then be timed.

    That call must also be one that all members take part in, unlike a send.
    """
    if dist.get_backend(group) == dist.Backend.NCCL:
        dist.barrier(group, device_ids=[torch.cuda.current_device()])


# Where a rank runs, and what it tells while it does.


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
