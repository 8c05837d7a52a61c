"""A planned redistribution, ready to be carried out again and again on this process's rank."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _abort_process_group

from p2smt.arrays.frame import Frame
from p2smt.arrays.steps import ArrayStep
from p2smt.errors import InputError
from p2smt.runtime.arrays.groups import ArrayGroups
from p2smt.runtime.arrays.moves import run_steps
from p2smt.runtime.arrays.rank_steps import RankStep, rank_steps

_SHARED: list[tuple[weakref.ref[dist.ProcessGroup], ArrayGroups]] = []
"""The default group of this process, and the groups that were made under it; at most one entry."""


@dataclass(frozen=True, slots=True)
class ArrayMover:
    """The steps of a plan as this rank sees them, and their groups."""

    steps: tuple[RankStep, ...]
    groups: ArrayGroups

    def __call__(self, local: torch.Tensor) -> torch.Tensor:
        """The rank's block of the destination; ``local`` keeps its values.

        Every rank calls it.  Without steps the result is ``local`` itself.

        Raises:
            InputError: ``local`` is not contiguous, or of another shape than the plan's source.
        """
        return run_steps(local, self.steps, self.groups)


@contextmanager
def ending_the_job() -> Iterator[None]:
    """Abort all process groups on an error, and raise it: who waits for this rank gets one too.

    Gloo closes the connections of a group once nobody holds it, and the frames of an error that
    is caught somewhere would.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        if dist.is_initialized():
            _abort_process_group()
        raise


def array_mover(
    frame: Frame, steps: Sequence[ArrayStep], sources: Sequence[Sequence[int]]
) -> ArrayMover:
    """The mover of these steps; every rank of the default group calls it, in the same order.

    Raises:
        InputError: the default group has another number of ranks than the frame has devices.
    """
    world = dist.get_world_size()
    if world != frame.devices:
        rule = f"the plan is for {frame.devices} devices"
        raise InputError(f"{world} ranks", rule, "start as many, or plan for these")
    groups = _shared_groups()
    for step in steps:
        groups.make(step.groups(frame))
    return ArrayMover(rank_steps(frame, steps, sources, dist.get_rank()), groups)


def _shared_groups() -> ArrayGroups:
    """Groups that all movers of this process share, anew when the default group is."""
    world = dist.group.WORLD
    if isinstance(world, dist.ProcessGroup) and not (_SHARED and _SHARED[0][0]() is world):
        _SHARED[:] = [(weakref.ref(world), ArrayGroups())]
    return _SHARED[0][1]
