"""The steps of a rank cut into chains that run side by side.

A chain is a sequence of steps each of which may only start when the one before it is complete:
running a chain in order waits for nothing that the schedule does not wait for.  A thread block in
program order is one chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.runtime.schedules.rows import OrderInRanks
from p2smt.schedules.model import Schedule


@dataclass(frozen=True, slots=True)
class Chain:
    """``waits``: for each step, the steps of other chains that must be complete before it.

    ``foreground``: how many of the steps it takes until only background steps are left.
    """

    steps: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    foreground: int


def chains_of(schedule: Schedule, order: OrderInRanks, rank: int) -> list[Chain]:
    """The chains of a rank; every step is in one."""
    chains: list[list[int]] = []
    ends: dict[int, int] = {}
    for number, step in enumerate(schedule.steps):
        if step.rank != rank:
            continue
        own = [p for p in order.before[number] if p in ends]
        own.sort(key=lambda p: (schedule.steps[p].block != step.block, p))
        if own:
            place = ends.pop(own[0])
            chains[place].append(number)
        else:
            place = len(chains)
            chains.append([number])
        ends[number] = place
    return [_chain(schedule, order, steps) for steps in chains]


def _chain(schedule: Schedule, order: OrderInRanks, steps: Sequence[int]) -> Chain:
    members = {number: place for place, number in enumerate(steps)}
    waits = tuple(
        tuple(p for p in order.before[number] if members.get(p, len(steps)) >= place)
        for place, number in enumerate(steps)
    )
    last = (place for place, n in enumerate(steps, start=1) if not schedule.steps[n].background)
    return Chain(tuple(steps), waits, max(last, default=0))
