"""The best rate in so many steps: sizes between a bound and what is known, tried in turn.

Where nothing is known, one chunk comes first.  Then sizes that could meet the bound have a slice,
and the rates between the bound and the best are halved: each time the size of fewest chunks in the
middle half is tried, and what is found, or not found in its slice, is an end of the next half.
Then both again, with longer slices.  Where there is a time limit, both are done without symmetries
before all else, rates first, and no size has more than a part of the time that is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from p2smt.result import StopWatch
from p2smt.search.schedule.bounds.rate import RateBound
from p2smt.search.schedule.groups.ladder import LadderMemory
from p2smt.search.schedule.synthesis.answer import Synthesis
from p2smt.search.schedule.synthesis.climb import FIRST_SLICE, ScheduleClimb, climb_of
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.search.schedule.synthesis.sizes import easy, halfway, meeting
from p2smt.search.schedule.synthesis.state import SynthesisState, Tell
from p2smt.search.schedule.synthesize import answered
from p2smt.solvers.solver import Solver

POINT_EFFORT = 8
"""First slices that searches may spend in vain on the bound, where there is no time limit."""
BETWEEN_EFFORT = 2
"""And on the rates above it."""
VAIN_PART = 4
"""A size without a schedule counts as so small a part of a slice, however soon it is known."""
CLOSE = Fraction(1, 100)
"""Rates that are no further apart, as a part of the larger, are not halved."""
PARTS = 2
"""A size has so small a part of the time that is left .."""
LEAST_S = 1.0
""".. but so many seconds, as long as there are any."""


@dataclass(frozen=True, slots=True)
class RateQuestion:
    """Rates of what, up to so many chunks, and how they are sought.

    ``memory``: of the groups, which are those of every size and number of steps.
    """

    setting: SynthesisSetting
    most_chunks: int
    solver: Solver
    tell: Tell
    memory: LadderMemory = field(default_factory=LadderMemory)


def best_rate(
    question: RateQuestion, steps: int, bound: RateBound, best: Fraction | None, watch: StopWatch
) -> Synthesis | None:
    """The best schedule found that is better than ``best``; without ``sums`` if none was found.

    None: no size was tried.
    """
    search = _Improving(question, steps, bound.value, best, watch)
    try:
        search.run()
    except KeyboardInterrupt:
        search.stopped = True
    if search.found is None:
        return None
    size, climb = search.found
    return replace(
        answered(question.setting, size, bound, climb, watch), interrupted=search.stopped
    )


@dataclass(slots=True)
class _Climbs:
    """The climbs of some sizes, and the first slices that they may spend in vain together."""

    setting: SynthesisSetting
    slices: int
    of: dict[ScheduleSize, ScheduleClimb] = field(default_factory=dict)

    def spent(self, first_slice: int) -> bool:
        """Whether that was spent."""
        spent = sum(climb.spent for climb in self.of.values())
        vain = sum(climb.over and climb.sums is None for climb in self.of.values())
        return spent + vain * first_slice // VAIN_PART >= self.slices * first_slice


@dataclass(slots=True)
class _Improving:
    """Sizes one after the other; ``found``: the best, else the last tried."""

    question: RateQuestion
    steps: int
    bound: Fraction
    best: Fraction | None
    watch: StopWatch
    found: tuple[ScheduleSize, ScheduleClimb] | None = None
    stopped: bool = False
    known: list[_Climbs] = field(default_factory=list)

    def run(self) -> None:
        """Until the bound is met, nothing is open, or the time is over."""
        setting, most = self.question.setting, self.question.most_chunks
        plain = self._climbs(replace(setting, symmetry=False), BETWEEN_EFFORT)
        exact = self._climbs(setting, POINT_EFFORT)
        between = self._climbs(setting, BETWEEN_EFFORT)
        if self.best is None:
            self._each(plain, easy(self.steps, self.bound))
        sizes = tuple(meeting(self.steps, self.bound, most))
        tried = sizes[:1]
        if self.watch.remaining_s() is not None:
            self._halve(plain, _part(self.watch))
            self._each(plain, tried)
        again = True
        while again and not self._ended():
            again = self._each(exact, tried)
            again |= self._halve(between, self.watch)
            again |= tried != sizes
            tried = sizes

    def _climbs(self, setting: SynthesisSetting, slices: int) -> _Climbs:
        self.known.append(_Climbs(setting, slices))
        return self.known[-1]

    def _each(self, climbs: _Climbs, sizes: Iterable[ScheduleSize]) -> bool:
        """A slice for each size that would be better than the best; whether there was one."""
        tried = False
        for size in sizes:
            if not self._ended() and not self._enough(climbs) and self._open(climbs, size):
                self._try(climbs, size, self.watch)
                tried = True
        return tried

    def _halve(self, climbs: _Climbs, watch: StopWatch) -> bool:
        """Halves the rates between bound and best; whether there was a size to try."""
        low, tried = self.bound, False
        while not (self._ended() or watch.expired() or self._enough(climbs)):
            high = self.best or easy(self.steps, self.bound)[-1].rate
            if high - low <= CLOSE * high:
                break
            size = halfway(
                *(self.steps, low, high, self.question.most_chunks),
                lambda one: self._open(climbs, one),
            )
            if size is None:
                break
            tried = True
            if not self._try(climbs, size, watch):
                low = size.rate
        return tried

    def _try(self, climbs: _Climbs, size: ScheduleSize, watch: StopWatch) -> bool:
        """Turns until one spent something in vain; whether it found a schedule."""
        part = _part(watch)
        climb = climbs.of.setdefault(size, self._climb(climbs.setting, size))
        before = climb.spent
        while True:
            climb.turn(part, lambda: self._enough(climbs))
            if climb.over or climb.spent > before or part.expired() or self._enough(climbs):
                break
        self.stopped = climb.interrupted
        if climb.sums is not None:
            self.found, self.best = (size, climb), size.rate
        elif self.found is None or self.found[1].sums is None:
            self.found = (size, climb)
        return climb.sums is not None

    def _climb(self, setting: SynthesisSetting, size: ScheduleSize) -> ScheduleClimb:
        def tell(doing: str) -> None:
            self.question.tell(SynthesisState(size, self.bound, self.best, doing))

        asked = self.question
        return climb_of(setting, size, asked.solver, tell, self.watch, asked.memory)

    def _ended(self) -> bool:
        return self.stopped or self.best == self.bound or self.watch.expired()

    def _enough(self, climbs: _Climbs) -> bool:
        """Whether enough was tried, where time does not say so."""
        unlimited = self.watch.remaining_s() is None
        return unlimited and climbs.spent(FIRST_SLICE[self.question.solver])

    def _open(self, climbs: _Climbs, size: ScheduleSize) -> bool:
        """Whether it is open, better than the best, and no refuted size has fewer chunks."""
        if size in climbs.of and climbs.of[size].over:
            return False
        if self.best is not None and size.rate >= self.best:
            return False
        every = (pair for one in self.known for pair in one.of.items())
        refuted = (one for one, climb in every if climb.refuted)
        return not any(one.rounds >= size.rounds and one.chunks <= size.chunks for one in refuted)


def _part(watch: StopWatch) -> StopWatch:
    """The watch of one size: a part of what is left."""
    left = watch.remaining_s()
    if left is None:
        return watch
    return watch.ending_at(watch.elapsed_s() + min(left, max(left / PARTS, LEAST_S)))
