"""Strategies timed with the best reduction programs, sought as far as they matter.

Every price starts as what no program can beat.  The placement that looks best under these has the
programs of its requests sought, which raises its prices; once one that looks best has them all, it
is the best of its strategy.  Programs are shared by all strategies whose requests meet one scene.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import priced_bound_s
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray, ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import RequestAnswer, fixed_answer
from p2smt.result import Status, StopWatch
from p2smt.search.one_request import RequestAnswers
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver
from p2smt.training.pipeline import combine
from p2smt.training.search.bounds_table import BoundsTable, Closed
from p2smt.training.search.branch import Bound
from p2smt.training.search.prices import PlacedCandidates
from p2smt.training.strategy import AXES

_LEAST_S = 0.01
"""A search for a program that gets less than this is not begun."""


def bound_s(scene: Scene, kind: AnyKind, payload_bytes: int) -> float:
    """Seconds that no program can beat on a scene."""
    return priced_bound_s(scene.topology, scene.digits, kind, payload_bytes)


@dataclass(frozen=True, slots=True)
class SceneRequest:
    """A request that is called on a scene, by the scene's number; ``name`` is that of its row."""

    name: str
    number: int
    kind: RequestKind
    axes: tuple[str, ...]
    payload_bytes: int

    @property
    def as_request(self) -> Request:
        """The same as a request of a problem, asked once."""
        return Request(self.kind, self.axes, self.payload_bytes)


Sought = tuple[SceneRequest, Scene]
"""A request with its scene."""


@dataclass(frozen=True, slots=True)
class ProgramCache:
    """The best programs of requests on scenes, each sought once and ``kept``."""

    answers: RequestAnswers
    kept: dict[tuple[int, RequestKind, int], RequestAnswer] = field(default_factory=dict)

    @staticmethod
    def of(topology: Topology) -> ProgramCache:
        """An empty shelf for a topology."""
        axes = tuple(ParallelismAxis(axis, 1) for axis in AXES)
        any_request = (Request(RequestKind.ALL_REDUCE, (AXES[0],), 1),)
        problem = Problem(topology, axes, any_request)
        return ProgramCache(RequestAnswers(problem, Solver.CPSAT, Catalogs()))

    def __len__(self) -> int:
        return len(self.kept)

    def known(self, asked: SceneRequest) -> RequestAnswer | None:
        """The answer of a request, if it was sought."""
        return self.kept.get((asked.number, asked.kind, asked.payload_bytes))

    def turns(self, asked: Sequence[Sought]) -> Iterator[Sought]:
        """Requests with their scenes in the order in which they are best sought."""
        return iter(asked)

    def seek(self, asked: SceneRequest, scene: Scene, watch: StopWatch) -> RequestAnswer:
        """The answer of a request on a scene.

        Raises:
            OutOfTimeError: there is no time to seek it.
        """
        left_s = watch.remaining_s()
        if left_s is not None and left_s < _LEAST_S:
            raise OutOfTimeError
        request = asked.as_request
        if request.kind.has_exchanges:  # strategies are priced with a single all-to-all
            found: RequestAnswer | None = fixed_answer(request, scene)
        else:
            found = self.answers.of(request, scene, watch.left())
        if found is None:
            raise OutOfTimeError
        self.kept[asked.number, asked.kind, asked.payload_bytes] = found
        return found


@dataclass(frozen=True, slots=True)
class ProgramTiming:
    """Each request has the best program: placements are refined until the best one is known.

    ``least``: the same placements at prices that no program beats; those of ``pricing`` start as
    these and grow.
    """

    pricing: PlacedCandidates
    least: PlacedCandidates
    programs: ProgramCache
    together: int = 4
    sampled: bool = False

    @staticmethod
    def of(singles: PlacedCandidates) -> ProgramTiming:
        """Nothing sought so far; the placements are those of single collectives."""
        programs = ProgramCache.of(singles.shared_cache.topology)
        least = singles.shared_cache.at(bound_s)
        return ProgramTiming(singles.at(least.above()), singles.at(least), programs)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each request on the placement that is best for it alone; and all on one placement."""
        return (self.least.least_s, lambda rows: self.least.best(rows)[0])

    def settle(
        self, bounds_table: BoundsTable, rows: IntArray, cutoff_s: float, watch: StopWatch
    ) -> None:
        """As :class:`~p2smt.training.search.branch.StrategyTiming` has it."""
        for row in rows.tolist():
            self._settle(bounds_table, row, cutoff_s, watch)

    def _settle(
        self, bounds_table: BoundsTable, row: int, cutoff_s: float, watch: StopWatch
    ) -> None:
        done: dict[int, float] = {}
        while True:
            low_s = self.pricing.seconds(row)
            bounds_table.low_s[row] = max(bounds_table.low_s[row], float(low_s.min()))
            best_s, best = min(((done[k], k) for k in done), default=(np.inf, -1))
            rest = [k for k in np.argsort(low_s, kind="stable").tolist() if k not in done]
            # of equally fast placements the first one: no matter what is known already
            if not rest or low_s[rest[0]] > cutoff_s or (low_s[rest[0]], rest[0]) >= (best_s, best):
                break
            asked = self.requests(row, rest[0])
            if self._refined(asked, watch):
                done[rest[0]] = self.exact_s(row, asked)
        if done:
            bounds_table.closed[row] = Closed.EVALUATED
        if done and best_s <= bounds_table.time_s[row]:
            bounds_table.place[row], bounds_table.time_s[row] = best, best_s

    def _refined(self, asked: Sequence[SceneRequest], watch: StopWatch) -> bool:
        """Whether all have their programs; if not, they get them, which may change what is best."""
        shared_cache, known = self.pricing.shared_cache, self.programs.known
        unknown = [(one, shared_cache.scene(one.number)) for one in asked if known(one) is None]
        for one, scene in self.programs.turns(unknown):
            answer = self.programs.seek(one, scene, watch)
            proved = answer.status is Status.OPTIMAL
            low_s = answer.seconds if proved else answer.bound_s
            self.pricing.improve(one.number, one.kind, one.payload_bytes, low_s)
        return not unknown

    def learn(self, row: int, place: int, limit_s: float, watch: StopWatch) -> None:
        """Seek the programs of a row on a class of placements, if it may be below a limit."""
        while self.pricing.seconds(row)[place] <= limit_s:
            if self._refined(self.requests(row, place), watch):
                return

    def requests(self, row: int, place: int) -> list[SceneRequest]:
        """The requests that are called by a strategy on a class of placements."""
        mine = self.pricing.candidates
        placed = self.pricing.placed(int(mine.block[row]))
        found = []
        for one in self.pricing.requests:
            column = one.column
            if (column.calls[row] > 0).any():
                number = int(placed.scenes[mine.axis_set(column.axes)].each[place])
                payload_bytes = int(column.payload_bytes[row])
                found.append(
                    SceneRequest(column.name, number, column.kind, column.axes, payload_bytes)
                )
        return found

    def exact_s(self, row: int, asked: Sequence[SceneRequest]) -> float:
        """Seconds of an iteration with the programs found for these requests of a strategy."""
        prices = {name: answer.seconds for name, answer in self._found(asked).items()}
        return float(combine(self.pricing.candidates.work.take(np.array([row])), prices)[0])

    def known_s(self, row: int, place: int) -> float | None:
        """Seconds of an iteration of a row on a class of placements, if all programs are known."""
        asked = self.requests(row, place)
        return self.exact_s(row, asked) if len(self._found(asked)) == len(asked) else None

    def answers(self, row: int, place: int) -> dict[str, RequestAnswer]:
        """The programs of a row on a class of placements; none where some were not sought."""
        asked = self.requests(row, place)
        found = self._found(asked)
        return found if len(found) == len(asked) else {}

    def _found(self, asked: Sequence[SceneRequest]) -> dict[str, RequestAnswer]:
        found = ((one.name, self.programs.known(one)) for one in asked)
        return {name: answer for name, answer in found if answer is not None}
