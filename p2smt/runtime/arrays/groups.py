"""Process groups whose members stand in the order of mesh positions."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from p2smt.errors import BackendError
from p2smt.runtime.arrays.rank_steps import Members
from p2smt.runtime.groups import connect


@dataclass(slots=True)
class ArrayGroups:
    """Groups by their members in order, each made once.

    torch keeps groups alive until ``destroy_process_group``; here they are not, for one that
    outlived it would be freed by the interpreter's end, while its threads run.  So that Gloo closes
    their connections where a job is aborted, none is the default group, which a DeviceMesh keeps.
    Every rank calls ``make`` with the same groups in the same order, those without it too.
    ``new_group`` would sort the members: a mesh whose ranks do not ascend would then get its
    blocks in another order than its positions say.
    """

    known: dict[Members, weakref.ref[dist.ProcessGroup] | None] = field(default_factory=dict)

    def make(self, every: Iterable[Members]) -> None:
        """Make the groups that do not exist yet; single ranks need none.

        That of all ranks comes first: messages between two go through it.
        """
        for members in (tuple(range(dist.get_world_size())), *every):
            if len(members) > 1 and members not in self.known:
                self.known[members] = _made(members)

    def of(self, members: Members) -> dist.ProcessGroup:
        """The group of these ranks, of which the caller is one."""
        kept = self.known.get(members)
        if kept is None:
            raise RuntimeError(f"a rank asked for a group {members} that it is no member of")
        found = kept()
        if found is None:
            raise RuntimeError(f"the group of ranks {members} has been destroyed")
        return found

    @property
    def of_all(self) -> dist.ProcessGroup:
        """The group of all ranks."""
        return self.of(tuple(range(dist.get_world_size())))


def _made(members: Members) -> weakref.ref[dist.ProcessGroup] | None:
    made = _new_group(list(members))
    if not isinstance(made, dist.ProcessGroup):
        return None
    connect(made)
    return weakref.ref(made)


def _new_group(ranks: list[int]) -> object:
    """A group whose members stand in this order; torch 2.11 can only sort them.

    Raises:
        BackendError: this torch cannot do that.
    """
    if ranks == sorted(ranks):
        return dist.new_group(ranks)
    if "sort_ranks" not in inspect.signature(dist.new_group).parameters:
        raise BackendError(
            f"ranks {ranks}: torch {torch.__version__} sorts the ranks of a group, which would mix "
            "up the blocks of this mesh; use torch 2.13, or a mesh whose devices ascend"
        )
    return dist.new_group(ranks, sort_ranks=False)
