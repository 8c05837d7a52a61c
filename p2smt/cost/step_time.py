"""The time of one step as a function of its payload: the ways to run it, and which is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np

from p2smt.parallelism.placement import FloatArray
from p2smt.result import ROUNDING


class Chooser(Protocol):
    """A library's rule of choice for one collective on groups of one shape."""

    def pick(self, payload: float) -> int:
        """Index of the way that the library takes for a payload of so many bytes per device."""
        ...

    def behind(self, algorithm: str, payload: float) -> float | None:
        """How much longer than that the library estimates an algorithm; None: it does not."""
        ...


@dataclass(frozen=True, slots=True)
class StepTime:
    """Predicted time of one step, in seconds.

    ``level`` is the index of the bottleneck level (None: nothing is sent), ``load_bytes``
    what its worst link (port) carries in one direction, ``wire_s`` that load over bandwidth.
    ``level_s_per_byte`` holds the same for the worst link of each level, per byte of payload;
    ``call_s`` what the call costs whatever it sends.
    """

    seconds: float
    wire_s: float
    algorithm: str
    protocol: str
    level: int | None
    load_bytes: float
    payload_bytes: float
    level_s_per_byte: tuple[float, ...]
    call_s: float = 0.0

    @property
    def level_wire_s(self) -> tuple[float, ...]:
        """Wire seconds on the worst link of each level: how long the step occupies it."""
        return tuple(rate * self.payload_bytes for rate in self.level_s_per_byte)


@dataclass(frozen=True, slots=True)
class Way:
    """One algorithm with one protocol: seconds per payload byte, and latency.

    ``seconds_per_byte`` is the largest of ``level_s_per_byte``, that of ``level``.  ``passes`` > 0
    marks a two-tree pipeline of the textbook, ``stage_s`` > 0 a library's pipeline, whose chunks
    spend so long in each of its stages: ``filling`` pass before its links are busy, and at most
    ``in_flight`` are under way.
    """

    algorithm: str
    protocol: str
    passes: int
    latency_s: float
    seconds_per_byte: float
    level: int | None
    load_per_byte: float
    level_s_per_byte: tuple[float, ...]
    call_s: float = 0.0
    stage_s: float = 0.0
    filling: int = 2
    in_flight: float = math.inf

    def seconds(self, payload: float) -> float:
        """Time for a payload in bytes."""
        return self.seconds_at(payload, self.seconds_per_byte)

    def seconds_at(self, payload: float, seconds_per_byte: float) -> float:
        """The same where the worst level takes so long of a byte."""
        wire = seconds_per_byte * payload
        if not self.passes:
            return self.call_s + wire + self.latency_s + self._fill_s(wire)
        latency = self.latency_s / self.passes  # one pass: w + 2A + sqrt(8 w A)
        one = wire / self.passes
        return self.passes * (one + 2 * latency + math.sqrt(8 * one * latency))

    def _fill_s(self, wire_s: float) -> float:
        """What filling the pipeline takes: c of k chunks are waited for, and A each is paid.

        c w / k + k A is sqrt(4 c w A) with the best k; with ever more chunks it is A for those in
        flight.
        """
        if not self.stage_s:
            return 0.0
        best = math.sqrt(4 * self.filling * wire_s * self.stage_s)
        return min(best, self.in_flight * self.stage_s)


class PricedWays(Sequence[Way]):
    """Ways that are priced when they are first looked at: a library takes few of those it has."""

    __slots__ = ("_price", "_priced")

    def __init__(self, count: int, price: Callable[[int], Way]) -> None:
        self._priced: list[Way | None] = [None] * count
        self._price = price

    def __len__(self) -> int:
        return len(self._priced)

    @overload
    def __getitem__(self, index: int) -> Way: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Way, ...]: ...
    def __getitem__(self, index: int | slice) -> Way | tuple[Way, ...]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def _at(self, place: int) -> Way:
        found = self._priced[place]
        if found is None:
            found = self._priced[place] = self._price(place)
        return found


@dataclass(frozen=True, slots=True)
class StepCostModel:
    """Everything about a step but its payload: the ways to run it, and who chooses among them.

    ``chooser`` is the rule of a library; without one the fastest way is taken.
    """

    ways: Sequence[Way]
    chooser: Chooser | None = None

    def time(self, payload: float) -> StepTime:
        """The chosen way for a payload of so many bytes per device, and its time."""
        if self.chooser is not None:
            way = self.ways[self.chooser.pick(payload)]
            seconds = way.seconds(payload)
        else:
            seconds, way = min(((w.seconds(payload), w) for w in self.ways), key=lambda x: x[0])
        wire = way.seconds_per_byte * payload
        load = way.load_per_byte * payload
        return StepTime(
            seconds,
            wire,
            way.algorithm,
            way.protocol,
            way.level,
            load,
            payload,
            way.level_s_per_byte,
            way.call_s,
        )


# Pipelined programs: the payload in equal chunks that follow each other through the steps.
# A step works on one chunk at a time; steps of different chunks overlap.  With t_s the time of
# step s for one chunk and w_{s,l} its wire time on the worst link of level l, M chunks take
#
#     T(M) = sum_s t_s + (M - 1) * max(max_s t_s, max_l sum_s w_{s,l})
#
# The first chunk needs sum_s t_s.  After it one chunk can be finished per period, the second
# factor: a step needs t_s for each chunk, and each chunk occupies the worst link of a level for
# the wire times of all steps together.  T(1) is the sum of the step times.
#
# T(M) never falls below what the links allow (:mod:`p2smt.cost.bounds`).  With a_s = t_s minus the
# largest w_{s,l}, the part of a step that is latency, sum_s t_s >= sum_s a_s + max_l sum_s w_{s,l},
# so T(M) >= sum_s a_s + M * max_l sum_s w_{s,l}.  The first term pays the latencies of one chunk,
# and the second the bytes of all M, which is what the bound adds up.
#
# A program of one step stays whole: M chunks of it follow each other and take M * t(n/M).  Where
# the fastest way is taken, t(0) >= 0 and t is concave in the payload (a minimum of concave
# functions), so that is never less than t(n).  A library's choice is not always the fastest way,
# and right behind a size at which it changes to a slower one, two calls of half the size can be
# faster than one; they are two calls, and no answer here.  Each chunk pays for the call of each
# step.


CHUNK_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The chunk counts that ``auto`` chooses from.  From 2 on each is at most 1.5 times the one
before: between them the time changes little, as it falls like 1/M or grows like M."""


def pipelined_s(step_s: FloatArray, level_wire_s: FloatArray, chunks: int) -> FloatArray:
    """T(M) in seconds from the step times of one chunk.

    Shapes: ``step_s`` (steps, ...), ``level_wire_s`` (steps, levels, ...), the rest standing
    for many programs at once.
    """
    period = np.maximum(step_s.max(axis=0), level_wire_s.sum(axis=0).max(axis=0))
    return np.asarray(step_s.sum(axis=0) + (chunks - 1) * period)


def program_s(steps: Sequence[StepTime], chunks: int) -> float:
    """Time of a program or fixed step; ``steps`` are those of one chunk.  No steps take 0 s."""
    if chunks == 1 or not steps:
        return sum(step.seconds for step in steps)
    step_s = np.array([step.seconds for step in steps])
    return float(pipelined_s(step_s, np.array([step.level_wire_s for step in steps]), chunks))


def chunk_counts(pipeline: int | None, steps: int) -> tuple[int, ...]:
    """The chunk counts to choose from for a program of so many steps (None: ``auto``)."""
    if steps <= 1:
        return (1,)
    return CHUNK_COUNTS if pipeline is None else (pipeline,)


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A program's time in so many chunks; ``steps`` are those of one chunk."""

    chunks: int
    seconds: float
    steps: tuple[StepTime, ...]


def best_chunks(
    counts: Sequence[int], steps_of: Callable[[int], tuple[StepTime, ...]]
) -> Pipelined:
    """The chunk count of least time, the smallest of tied ones.

    ``steps_of(m)`` gives the steps of one of m chunks.
    """
    tried = [
        Pipelined(m, program_s(steps, m), steps) for m in sorted(counts) for steps in [steps_of(m)]
    ]
    limit = min(one.seconds for one in tried) * (1 + ROUNDING)
    return next(one for one in tried if one.seconds <= limit)
