"""A search over cubes as a discrete-event simulation: one coordinator, any number of workers.

Cubes go out in their order, each to a worker that is free, as ``p2smt.parallel_search.coordinate``
does it; while more wait than there are workers, also to the one that will be free first, where the
engine lets workers have their next cube at hand (and take what waits at another one). The
coordinator handles one message after another; a message takes a time on its way.  A worker's first
cube takes longer: its tables are empty.  A cube above its budget comes back and is replaced by its
children.  A cube is dropped without work if its bound is not below the incumbent that the
coordinator knows when it would hand it out: later than it was found, by a message.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MeasuredCube:
    """How many seconds it takes a worker to close a cube to its end, without any incumbent.

    ``first_s``: a worker that has closed none before, whose tables are empty.  ``children``: the
    same of its parts; none where it is not split.  ``bound`` is by formula, ``value`` that of its
    best member, None without one.
    """

    seconds: float
    first_s: float
    bound: int = 0
    value: int | None = None
    children: tuple[MeasuredCube, ...] = ()


@dataclass(frozen=True, slots=True)
class Delays:
    """What a search costs beside its cubes, in seconds.

    message_s: on the way from the coordinator to a worker, and back.  handling_s: the coordinator
    spends on a cube, from what came back to the next one.  split_s: it spends on a child.
    worker_s: a worker spends on a cube beside closing it.  ahead: cubes that a worker has at hand.
    """

    message_s: float = 0.0
    handling_s: float = 0.0
    split_s: float = 0.0
    worker_s: float = 0.0
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """When all cubes were closed, and how many seconds all workers together were busy until then.

    ``closed`` by a worker, ``split`` and ``dropped`` are numbers of cubes.
    """

    makespan_s: float
    busy_s: float
    closed: int
    split: int
    dropped: int

    def efficiency(self, work_s: float, workers: int) -> float:
        """The part of the workers' time that one worker without any delay would have needed."""
        return work_s / (workers * self.makespan_s) if self.makespan_s else 1.0


def work_of(cubes: Sequence[MeasuredCube]) -> float:
    """Seconds that one worker takes for all cubes, unsplit and without any delay."""
    return sum(cube.seconds for cube in cubes)


def simulate(
    cubes: Sequence[MeasuredCube],
    workers: int,
    delays: Delays = Delays(),
    budget_s: float | None = None,
    prunes: bool = False,
) -> SimulatedRun:
    """Run a search; ``prunes``: of an optimisation for one best member, else all cubes are closed.

    A cube is split at most as far as its children were measured; from there on it has no budget.
    """
    run = _Run(deque(cubes), workers, delays, budget_s, prunes)
    while run.step():
        pass
    return run.result()


@dataclass(slots=True)
class _Run:
    waiting: deque[MeasuredCube]
    workers: int
    delays: Delays
    budget_s: float | None
    prunes: bool
    until: list[float] = field(init=False)  # when each worker is through with what it has, a heap
    now_s: float = 0.0
    busy_s: float = 0.0
    incumbent: int | None = None
    arrivals: list[tuple[float, int, MeasuredCube]] = field(default_factory=list)
    sent: int = 0
    closed: int = 0
    splits: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.until = [0.0] * self.workers

    def step(self) -> bool:
        """Hand out what there is for workers that are free, then take what comes back first."""
        while self.waiting and len(self.arrivals) < self._places():
            self._hand_out(self.waiting.popleft())
        if not self.arrivals:
            return False
        at_s, _, cube = heapq.heappop(self.arrivals)
        self.now_s = max(self.now_s, at_s)
        self._take(cube)
        return True

    def _places(self) -> int:
        """How many cubes may be out."""
        many = len(self.waiting) > self.workers
        return self.workers * (1 + (self.delays.ahead if many else 0))

    def _hand_out(self, cube: MeasuredCube) -> None:
        if self.prunes and self.incumbent is not None and cube.bound >= self.incumbent:
            self.dropped += 1
            return
        self.now_s += self.delays.handling_s
        seconds = cube.first_s if self.sent < self.workers else cube.seconds
        if self.budget_s is not None and self._splits(cube):
            seconds = min(seconds, self.budget_s)
        self.busy_s += seconds
        self.sent += 1
        begun_s = max(self.now_s + self.delays.message_s, self.until[0])
        done_s = begun_s + self.delays.worker_s + seconds
        heapq.heapreplace(self.until, done_s)
        heapq.heappush(self.arrivals, (done_s + self.delays.message_s, self.sent, cube))

    def _take(self, cube: MeasuredCube) -> None:
        if self._splits(cube):
            self.splits += 1
            self.now_s += self.delays.split_s * len(cube.children)
            self.waiting.extend(cube.children)
            return
        self.closed += 1
        if cube.value is not None:
            known = self.incumbent
            self.incumbent = cube.value if known is None else min(known, cube.value)

    def _splits(self, cube: MeasuredCube) -> bool:
        return self.budget_s is not None and bool(cube.children) and cube.seconds > self.budget_s

    def result(self) -> SimulatedRun:
        return SimulatedRun(self.now_s, self.busy_s, self.closed, self.splits, self.dropped)
