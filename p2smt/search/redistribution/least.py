"""The least caps that some plan meets, for a question whose own cap is met by none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit, peak_step_bytes
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.redistribution.exact.best import best_path
from p2smt.search.redistribution.exact.least import least_limit
from p2smt.search.redistribution.path import PathResult

LEAST_S = 5.0
"""Wall seconds that may be spent on the least cap of plans of few steps."""
_ANY_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class LeastCaps:
    """Bytes on a device; None: not known.

    ``limit_bytes`` is of states or of steps, as the question's cap; ``memory_bytes`` of steps: what
    to give as ``--memory``.  ``too_few_steps``: no plan of so few steps exists, whatever the cap.
    """

    limit_bytes: int | None = None
    memory_bytes: int | None = None
    too_few_steps: bool = False


def least_caps(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    max_steps: int | None,
    limits: SearchLimits,
) -> LeastCaps:
    """What plans need at least; of at most ``max_steps`` steps, if that is limited."""
    of_steps = replace(memory, limit_bytes=_ANY_BYTES, of_steps=True)
    if max_steps is not None:
        return _of_few_steps(ends, prices, of_steps, max_steps, limits, memory.of_steps)
    watch = StopWatch.start(limits)
    least = least_limit(ends, prices, memory, watch)
    if memory.of_steps:
        return LeastCaps(least, least)
    return LeastCaps(least, least_limit(ends, prices, of_steps, watch))


def _of_few_steps(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    max_steps: int,
    limits: SearchLimits,
    asked: bool,
) -> LeastCaps:
    """A plan under any cap, then again and again one that needs less, until there is none."""
    left_s = limits.time_limit_s
    share_s = LEAST_S if left_s is None else min(LEAST_S, left_s)
    watch, least = StopWatch.start(replace(limits, time_limit_s=share_s)), None
    while True:
        found = best_path(ends, prices, memory, watch.left(), max_steps=max_steps)
        if found.seconds is None:
            break
        least = _needed(ends[found.ends], found, memory)
        memory = replace(memory, limit_bytes=least - 1)
    if found.status is not Status.INFEASIBLE:
        return LeastCaps()
    return LeastCaps(least if asked else None, least, too_few_steps=least is None)


def _needed(ends: Ends, found: PathResult, memory: MemoryLimit) -> int:
    steps = peak_step_bytes(ends.frame, found.steps, memory.keep_source)
    return max(steps, ends.frame.local_bytes(ends.source))
