"""A simulator of chunks that go through the steps of a program; knows no formula.

Time moves from event to event.  A step takes one chunk at a time, in order.  It first waits for
its latency, which occupies nothing, then transfers.  A transfer that is alone runs at full
speed and then uses the share ``wire / longest wire`` of each level.  Transfers that meet on a
full level run at one speed there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

_REST = 1e-12


@dataclass(frozen=True)
class SimStep:
    """A step for one chunk: latency, and wire seconds on each level."""

    latency_s: float
    wire_s: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Its time if it is alone."""
        return self.latency_s + max(self.wire_s)


@dataclass
class _Running:
    chunk: int
    step: int
    latency_left: float
    wire_left: float  # seconds at full speed
    shares: dict[int, float] = field(default_factory=dict)


def _speeds(running: Sequence[_Running]) -> list[float]:
    """Fractions of full speed: all grow alike until a level is full, which stops those on it."""
    speeds = [1.0] * len(running)
    open_ = {n for n, one in enumerate(running) if one.latency_left == 0 and one.shares}
    free: dict[int, float] = defaultdict(lambda: 1.0)
    while open_:
        wanted: dict[int, float] = defaultdict(float)
        for n in open_:
            for level, share in running[n].shares.items():
                wanted[level] += share
        full, speed = min(
            ((level, free[level] / share) for level, share in wanted.items()),
            key=lambda found: found[1],
        )
        if speed >= 1:
            break
        stopped = {n for n in open_ if full in running[n].shares}
        for n in stopped:
            speeds[n] = speed
            for level, share in running[n].shares.items():
                free[level] -= speed * share
        open_ -= stopped
    return speeds


def _start(steps: Sequence[SimStep], chunk: int, number: int) -> _Running:
    step, longest = steps[number], max(steps[number].wire_s)
    shares = {j: w / longest for j, w in enumerate(step.wire_s) if w > 0}
    return _Running(chunk, number, step.latency_s, longest, shares)


def simulated_s(steps: Sequence[SimStep], chunks: int) -> float:
    """When the last chunk leaves the last step."""
    scale = sum(step.seconds for step in steps)
    waiting: list[list[int]] = [list(range(chunks)), *([] for _ in steps[1:])]
    busy: dict[int, _Running] = {}
    now, done = 0.0, 0
    while done < chunks:
        for number, queue in enumerate(waiting):
            if queue and number not in busy:
                busy[number] = _start(steps, queue.pop(0), number)
        active = list(busy.values())
        speeds = _speeds(active)
        left = [one.latency_left if one.latency_left > 0 else one.wire_left for one in active]
        passed = min(rest / speed for rest, speed in zip(left, speeds, strict=True))
        now += passed
        for one, speed in zip(active, speeds, strict=True):
            if one.latency_left > 0:
                rest = one.latency_left - passed
                one.latency_left = rest if rest > _REST * scale else 0.0
            else:
                one.wire_left -= passed * speed
            if one.latency_left == 0 and one.wire_left <= _REST * scale:
                del busy[one.step]
                if one.step + 1 < len(steps):
                    waiting[one.step + 1].append(one.chunk)
                else:
                    done += 1
    return now
