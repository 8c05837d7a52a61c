"""Plans that all ranks have alike: a search under a time limit might differ from rank to rank."""

from __future__ import annotations

from collections.abc import Callable

import torch.distributed as dist

from p2smt.errors import InputError
from p2smt.plans.redistribution.plan import RedistributionPlan


def planned_together(make: Callable[[], RedistributionPlan]) -> RedistributionPlan:
    """What rank 0 plans; every rank of the default group calls it.

    Raises:
        InputError: on every rank, where rank 0 finds none.
        RuntimeError: on the other ranks, where rank 0 fails otherwise, with its error's own class.
    """
    found: list[RedistributionPlan | Exception | None] = [None]
    own: Exception | None = None
    if dist.get_rank() == 0:
        try:
            found[0] = make()
        except Exception as error:  # the others wait for a word, whatever it is
            own, found[0] = error, _told(error)
    dist.broadcast_object_list(found, src=0)
    if isinstance(found[0], RedistributionPlan):
        return found[0]
    raise own or found[0] or RuntimeError("rank 0 sent neither a plan nor an error")


def _told(error: Exception) -> Exception:
    """An error as the other ranks get it: not every one survives pickling."""
    if isinstance(error, InputError):
        return error
    return RuntimeError(f"rank 0 failed to plan: {type(error).__name__}: {error}")
