"""Process groups of PyTorch, one per set of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch.distributed as dist


@dataclass(slots=True)
class Groups:
    """The groups that a rank belongs to, made once and shared by steps with the same members.

    All ranks must ask for their groups in the same order.  Members are sorted: ``new_group``
    sorts them anyway by default, so an order of our own would be lost silently.  A group is
    made by its members alone (``use_local_synchronization``); otherwise every rank would take
    part in making every group, which is what does not scale.  With NCCL that needs a default
    group without a bound device: with one, torch makes groups by splitting it, for which all
    ranks would be needed again.
    """

    world: int
    known: dict[tuple[int, ...], dist.ProcessGroup] = field(default_factory=dict)

    def of(self, members: Sequence[int]) -> dist.ProcessGroup:
        """The group of these ranks, of which the caller is one."""
        key = tuple(sorted(members))
        if key not in self.known:
            self.known[key] = self._make(key)
        return self.known[key]

    def _make(self, members: tuple[int, ...]) -> dist.ProcessGroup:
        whole = dist.group.WORLD
        if len(members) == self.world and whole is not None:
            return whole
        made = dist.new_group(list(members), use_local_synchronization=True)
        if not isinstance(made, dist.ProcessGroup):
            raise RuntimeError(f"a rank asked for a group {members} that it is no member of")
        return made
