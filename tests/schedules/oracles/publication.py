"""Packets that publish: the same schedule with a signal beside each packet.

The exhaustive oracle lets writes take effect at once, so a packet tells it more than the memory
rule grants.  What the checker holds against a schedule by that rule alone must be gone when a
signal goes with every packet.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from p2smt.schedules.model import Schedule, Span


def _cells(span: Span) -> list[tuple[int, str, int]]:
    return [(span.rank, span.buffer.value, span.start + k) for k in range(span.count)]


def with_signals(schedule: Schedule) -> Schedule:
    """Every reader of packets also waits for a signal of each step that writes them."""
    writers: dict[tuple[int, str, int], set[int]] = defaultdict(set)
    for number, step in enumerate(schedule.steps):
        for span in step.writes:
            for cell in _cells(span) if span.packet else ():
                writers[cell].add(number)
    steps = list(schedule.steps)
    for number, step in enumerate(schedule.steps):
        read = [cell for span in step.reads if span.packet for cell in _cells(span)]
        for writer in sorted({w for cell in read for w in writers[cell]} - {number}):
            name = (f"beside {writer} for {number}",)
            steps[writer] = replace(steps[writer], posts=(*steps[writer].posts, *name))
            steps[number] = replace(steps[number], awaits=(*steps[number].awaits, *name))
    return replace(schedule, steps=tuple(replace(step, relaxed=False) for step in steps))
