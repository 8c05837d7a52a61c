"""The best rate in so many steps: sizes between a bound and what is known, tried in turn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from p2smt.result import StopWatch
from p2smt.search.schedule.bounds.rate import RateBound
from p2smt.search.schedule.synthesis.answer import Synthesis
from p2smt.search.schedule.synthesis.climb import FIRST_SLICE, ScheduleClimb, climb_of
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.search.schedule.synthesis.sizes import sizes
from p2smt.search.schedule.synthesis.state import SynthesisState, Tell
from p2smt.search.schedule.synthesize import answered
from p2smt.solvers.solver import Solver

POINT_EFFORT = 8
"""First slices that searches may spend in vain, where there is no time limit."""


@dataclass(frozen=True, slots=True)
class RateQuestion:
    """Rates of what, up to so many chunks, and how they are sought."""

    setting: SynthesisSetting
    most_chunks: int
    solver: Solver
    tell: Tell


def best_rate(
    question: RateQuestion, steps: int, bound: RateBound, best: Fraction | None, watch: StopWatch
) -> Synthesis | None:
    """The best schedule found that is better than ``best``; without ``sums`` if none was found.

    None: no size was tried.
    """
    search = _Improving(question, steps, bound.value, best, watch)
    search.run()
    if search.found is None:
        return None
    size, climb = search.found
    return replace(
        answered(question.setting, size, bound, climb, watch), interrupted=search.stopped
    )


@dataclass(slots=True)
class _Improving:
    """Rounds of turns over all sizes that are open; ``found``: the best, else the last tried."""

    question: RateQuestion
    steps: int
    bound: Fraction
    best: Fraction | None
    watch: StopWatch
    found: tuple[ScheduleSize, ScheduleClimb] | None = None
    stopped: bool = False
    climbs: dict[ScheduleSize, ScheduleClimb] = field(default_factory=dict)

    def run(self) -> None:
        """Until the bound is met, nothing is open, or the time is over."""
        first, later = sizes(self.steps, self.bound, self.best, self.question.most_chunks)
        self.climbs = {size: self._climb(size) for size in first}
        while not self._ended() and (later or self._open()):
            for size in self._open():
                if not self._ended() and self._useful(size):
                    self._turn(size, self.climbs[size])
            self.climbs |= {size: self._climb(size) for size in later}
            later = ()

    def _climb(self, size: ScheduleSize) -> ScheduleClimb:
        def tell(doing: str) -> None:
            self.question.tell(SynthesisState(size, self.bound, self.best, doing))

        setting, solver = self.question.setting, self.question.solver
        return climb_of(setting, size, solver, tell)

    def _turn(self, size: ScheduleSize, climb: ScheduleClimb) -> None:
        climb.turn(self.watch, self._spent)
        self.stopped = climb.interrupted
        if climb.sums is not None:
            self.found, self.best = (size, climb), size.rate
        elif self.found is None or self.found[1].sums is None:
            self.found = (size, climb)

    def _ended(self) -> bool:
        return self.stopped or self.best == self.bound or self.watch.expired() or self._spent()

    def _spent(self) -> bool:
        """Whether enough was tried, where time does not say so."""
        most = POINT_EFFORT * FIRST_SLICE[self.question.solver]
        unlimited = self.watch.remaining_s() is None
        return unlimited and sum(climb.spent for climb in self.climbs.values()) >= most

    def _open(self) -> list[ScheduleSize]:
        return [s for s, climb in self.climbs.items() if not climb.over and self._useful(s)]

    def _useful(self, size: ScheduleSize) -> bool:
        """Whether it would be better than the best, and no refuted size has fewer chunks."""
        if self.best is not None and size.rate >= self.best:
            return False
        refuted = (one for one, climb in self.climbs.items() if climb.refuted)
        return not any(one.rounds >= size.rounds and one.chunks <= size.chunks for one in refuted)
