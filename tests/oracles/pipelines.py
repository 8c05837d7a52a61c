"""Megatron-LM's pipeline schedules, run step by step; knows no formula.

The order of forward and backward passes is that of arXiv 2104.04473 section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pass:
    """A chunk of a stage, forward or backward, for a micro-batch."""

    forward: bool
    chunk: int
    micro_batch: int


def order(stage: int, pp: int, vpp: int, micro_batches: int) -> list[Pass]:
    """The passes of a stage: some forward ones, one of each in turn, the other backward ones."""
    total = micro_batches * vpp
    if vpp == 1:
        warm = min(pp - stage - 1, total)
    else:
        warm = min(2 * (pp - stage - 1) + (vpp - 1) * pp, total)
    forwards = [_pass(True, k, pp, vpp) for k in range(total)]
    backwards = [_pass(False, k, pp, vpp) for k in range(total)]
    steady = [one for pair in zip(forwards[warm:], backwards, strict=False) for one in pair]
    return forwards[:warm] + steady + backwards[total - warm :]


def _pass(forward: bool, k: int, pp: int, vpp: int) -> Pass:
    if vpp == 1:
        return Pass(forward, 0, k)
    chunk = k // pp % vpp
    return Pass(forward, chunk if forward else vpp - 1 - chunk, k // (pp * vpp) * pp + k % pp)


def most_held(passes: Sequence[Pass], layers: Sequence[float]) -> float:
    """The most layers (or bytes) that are held at once; ``layers`` of each chunk."""
    held, most = 0.0, 0.0
    for one in passes:
        held += layers[one.chunk] if one.forward else -layers[one.chunk]
        most = max(most, held)
    return most


def makespan(
    pp: int,
    vpp: int,
    micro_batches: int,
    forward_s: Sequence[Sequence[float]],
    backward_s: Sequence[Sequence[float]],
) -> float:
    """When the last pass ends; seconds by stage and chunk, sends take none."""
    orders = [order(stage, pp, vpp, micro_batches) for stage in range(pp)]
    ends: dict[tuple[int, Pass], float] = {}
    at, clock = [0] * pp, [0.0] * pp
    while any(at[stage] < len(orders[stage]) for stage in range(pp)):
        moved = False
        for stage in range(pp):
            while at[stage] < len(orders[stage]):
                one = orders[stage][at[stage]]
                needed = _needs(stage, one, pp, vpp)
                if any(need not in ends for need in needed):
                    break
                times = forward_s if one.forward else backward_s
                start = max([clock[stage], *(ends[need] for need in needed)])
                clock[stage] = ends[stage, one] = start + times[stage][one.chunk]
                at[stage] += 1
                moved = True
        assert moved, "the schedule is stuck"
    return max(clock)


def _needs(stage: int, one: Pass, pp: int, vpp: int) -> list[tuple[int, Pass]]:
    """The pass before it: of the chunk before in the model, or of the chunk after."""
    place = one.chunk * pp + stage
    before = place - 1 if one.forward else place + 1
    if before < 0:
        return []
    if before == pp * vpp:  # the last chunk turns round
        return [(stage, Pass(True, one.chunk, one.micro_batch))]
    return [(before % pp, Pass(one.forward, before // pp, one.micro_batch))]
