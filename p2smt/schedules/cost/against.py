"""Schedules beside what a topology's library runs itself for the same collective, over payloads.

A schedule is priced by the best protocol, and with what a call of the library costs: it is none of
these calls, but no price of its kernel is known that would be less arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Operation, RequestKind, operation_named
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping
from p2smt.schedules.cost.links import level_piece
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.model import Schedule

CLOSE = 1.02
"""Payloads between which something becomes the faster are told apart no closer."""
_WHOLE = "Simple"
"""The protocol that fills a link with data alone."""
LEFT_OUT = (
    "thread blocks and kernels are left out of prices, and nobody ran these schedules: no gain "
    "over a library is claimed"
)


@dataclass(frozen=True, slots=True)
class TimedWay:
    """Seconds of one execution; ``way``: by which algorithm and protocol."""

    seconds: float
    way: str


@dataclass(frozen=True, slots=True)
class LibraryPrices:
    """What a collective over all devices of ``topology`` costs, whose library may be none.

    ``collective``: as contracts name it.
    """

    topology: Topology
    collective: str

    @property
    def name(self) -> str | None:
        """The library that runs the collective; None: it has none such, or there is no library."""
        known = self._operation is not None and self.topology.library is not None
        return self.topology.library_name if known else None

    @property
    def _operation(self) -> Operation | None:
        return operation_named(self.collective)

    def own(self, payload: int) -> TimedWay | None:
        """What the library chooses; None: nothing is known of that."""
        found = self._step(payload)
        if found is None:
            return None
        return TimedWay(found.seconds, f"{found.algorithm} {found.protocol}".strip())

    def call_s(self, payload: int) -> float:
        """Seconds that a call costs before its first message."""
        found = self._step(payload)
        return 0.0 if found is None else found.call_s

    def of(self, schedule: Schedule, payload: int) -> TimedWay:
        """A schedule whose rank r is device r, by the protocol that is best for so many bytes.

        Raises:
            InputError: it has not as many ranks as there are devices, or cannot be priced.
        """
        if schedule.ranks != self.topology.devices:
            given = f"schedule {schedule.name[:60]} of {schedule.ranks} ranks"
            rule = f"must have as many as {self.topology.name[:60]} has devices"
            raise InputError(given, f"{rule}, {self.topology.devices}", "name another topology")
        every = [
            TimedWay(schedule_cost(schedule, self.topology, payload, protocol=name).time_s, name)
            for name in self._protocols()
        ]
        best = min(every, key=lambda one: one.seconds)
        return TimedWay(best.seconds + self.call_s(payload), best.way)

    def _step(self, payload: int) -> StepTime | None:
        operation = self._operation
        if operation is None or operation is RequestKind.SEND or self.topology.library is None:
            return None
        scene = Scene.of(self.topology, Placement((self.topology.sizes,)), (0,))
        return scene.step_time(operation, Grouping(0, scene.hierarchy.depth), payload)

    def _protocols(self) -> tuple[str, ...]:
        """Those of the library's rings, whose steps a schedule's are taken for."""
        library, operation = self.topology.library, self._operation
        if library is None:
            links = [level.link for level in self.topology.levels]
            return tuple(dict.fromkeys(one.name for link in links for one in link.pieces))
        runs = library.runs_of(operation.value) if operation is not None else ()
        rings = [run.protocols for run in runs if run.algorithm is Algorithm.RING]
        return tuple(rings[0]) if rings else (library.protocols[0][0],)


def step_s(topology: Topology) -> float:
    """Seconds of a step: the latency of a message over the slowest level that joins anything.

    By the protocol that has all of a link's bandwidth, as rounds do.
    """
    joined = [j for j, level in enumerate(topology.levels) if level.size > 1]
    return max((level_piece(topology, j, _WHOLE).latency_s for j in joined), default=0.0)


# Which of several is the fastest from which payload on.


@dataclass(frozen=True, slots=True)
class TimedCurve:
    """What takes how long of a payload; each payload is priced once."""

    name: str
    price: Callable[[int], TimedWay]
    known: dict[int, TimedWay] = field(default_factory=dict)

    def at(self, payload: int) -> TimedWay:
        """The time of so many bytes."""
        if payload not in self.known:
            self.known[payload] = self.price(payload)
        return self.known[payload]


@dataclass(frozen=True, slots=True)
class FastestRun:
    """From ``low`` bytes on ``curve`` (its number) is the fastest, up to the next of these."""

    curve: int
    low: int


def fastest_runs(curves: Sequence[TimedCurve], payloads: Sequence[int]) -> tuple[FastestRun, ...]:
    """Which is the fastest where, the first of tied ones.

    Between two payloads one after another at which it is another, where that begins is sought, to
    one part in fifty.
    """
    best = [_fastest(curves, payload) for payload in payloads]
    found = [FastestRun(best[0], payloads[0])]
    for (low, one), (high, other) in pairwise(zip(payloads, best, strict=True)):
        if one != other:
            found.append(FastestRun(other, _from(curves[one], curves[other], low, high)))
    return tuple(found)


def _fastest(curves: Sequence[TimedCurve], payload: int) -> int:
    return min(range(len(curves)), key=lambda number: curves[number].at(payload).seconds)


def _from(before: TimedCurve, after: TimedCurve, low: int, high: int) -> int:
    """The least payload known at which the second is the faster; it is so at the high one."""
    while high > low + 1 and high > CLOSE * low:
        middle = (low + high) // 2
        if after.at(middle).seconds < before.at(middle).seconds:
            high = middle
        else:
            low = middle
    return high
