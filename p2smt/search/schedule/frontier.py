"""The frontier of a collective over a fabric: for so many steps, the fewest rounds a chunk.

For steps from the fewest on, a bound says which rate no schedule is below, whatever its chunks.
Sizes that could meet it are tried, and sizes between it and the best rate that is known
(:mod:`.best_rate`).  The chunks of a point are the fewest that were found, which is not claimed to
be the least.  The frontier ends where a rate is met that no number of steps can improve, or at so
many steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.schedule.best_rate import RateQuestion, best_rate
from p2smt.search.schedule.bounds.rate import RateBound
from p2smt.search.schedule.synthesis.answer import Synthesis
from p2smt.search.schedule.synthesis.proved import fewest_steps, least_rate
from p2smt.search.schedule.synthesis.question import SynthesisSetting
from p2smt.search.schedule.synthesis.state import Tell, tell_nobody
from p2smt.solvers.solver import Solver

MORE_STEPS = 4
"""So many steps beyond the fewest are looked at, unless somebody says how many."""
MOST_CHUNKS = 24
"""Per rank, per pair, or from the root."""
BOUND_PART = 4
"""A bound has so small a part of the time of its point."""


class Ending(StrEnum):
    """Why a frontier has no more points."""

    LIMIT = "no number of steps has a better rate (bound)"
    STEPS = "the most steps were reached"
    TIME = "the time limit came"
    STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """So many steps: the bound on their rate, and the best schedule found in them.

    ``found``: None where nothing was found that is better than with fewer steps.
    ``best``: the best rate found in so many steps or fewer; None: none was.
    """

    steps: int
    bound: RateBound
    found: Synthesis | None
    best: Fraction | None

    @property
    def proved(self) -> bool:
        """Whether no schedule in so many steps has a better rate than was found."""
        return self.best is not None and self.best <= self.bound.value

    @property
    def gap(self) -> Fraction | None:
        """How far the bound may lie below what was found, as a part of it; None: nothing was."""
        return None if self.best is None else max(Fraction(0), 1 - self.bound.value / self.best)


@dataclass(frozen=True, slots=True)
class ScheduleFrontier:
    """The points by their steps; ``limit``: the bound for any number of steps."""

    setting: SynthesisSetting
    points: tuple[FrontierPoint, ...]
    limit: RateBound | None
    ending: Ending
    wall_s: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether every point is proved, and none is left out."""
        ended = self.ending in (Ending.LIMIT, Ending.STEPS)
        return ended and all(point.proved for point in self.points)

    @property
    def schedules(self) -> tuple[Synthesis, ...]:
        """The schedules that were found, one for each number of steps that gains by it."""
        return tuple(point.found for point in self.points if point.found is not None)


def frontier(
    setting: SynthesisSetting,
    max_steps: int | None = None,
    max_chunks: int | None = None,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
    tell: Tell = tell_nobody,
) -> ScheduleFrontier:
    """The points, each with its proof or its gap.

    ``max_chunks``: as the collective counts them; None: ``MOST_CHUNKS`` a rank or a pair, so for an
    all-reduce as many times more in all as there are ranks.  On KeyboardInterrupt the points found
    by then.

    Raises:
        InputError: ``max_steps`` are fewer than every schedule has, or ``max_chunks`` none.
        EncodingBug: what a solver found breaks a rule, or is wrong in some interleaving.
    """
    watch = StopWatch.start(limits or SearchLimits())
    question = RateQuestion(setting, _most_chunks(setting, max_chunks), solver, tell)
    points: list[FrontierPoint] = []
    limit, ending = None, Ending.STOPPED
    try:
        every = _steps(setting, max_steps)
        limit = least_rate(setting, None, _part(watch, BOUND_PART), watch)
        ending = Ending.TIME if limit is None else _fill(question, every, limit, watch, points)
    except KeyboardInterrupt:
        pass
    return ScheduleFrontier(setting, tuple(points), limit, ending, watch.elapsed_s())


def _most_chunks(setting: SynthesisSetting, max_chunks: int | None) -> int:
    """The most chunks to try."""
    if max_chunks is None:
        return MOST_CHUNKS * (setting.fabric.ranks if setting.adds else 1)
    if max_chunks < 1:
        raise InputError(
            f"at most {max_chunks} chunks", "every schedule has one", "allow 1 or more"
        )
    return max_chunks


def _steps(setting: SynthesisSetting, max_steps: int | None) -> range:
    """The numbers of steps to look at."""
    least = int(fewest_steps(setting).value)
    most = least + MORE_STEPS if max_steps is None else max_steps
    if most < least:
        remedy = f"allow {least} or more"
        given = f"at most {most} step{'' if most == 1 else 's'}"
        raise InputError(given, f"every schedule has at least {least}", remedy)
    return range(least, most + 1)


def _fill(
    question: RateQuestion,
    every: range,
    limit: RateBound,
    watch: StopWatch,
    points: list[FrontierPoint],
) -> Ending:
    """Adds the points, and says why they end."""
    best: Fraction | None = None
    for steps in every:
        if watch.expired():
            return Ending.TIME
        part = _part(watch, every.stop - steps)
        bound = least_rate(question.setting, steps, _part(part, BOUND_PART), part)
        if bound is None:
            return Ending.TIME
        found = None
        if best is None or best > bound.value:
            found = best_rate(question, steps, bound, best, part)
        best = best if found is None or found.sums is None else found.rate
        points.append(FrontierPoint(steps, bound, _scheduled(found), best))
        if found is not None and found.interrupted:
            return Ending.STOPPED
        if best is not None and best <= limit.value:
            return Ending.LIMIT
    return Ending.TIME if watch.expired() else Ending.STEPS


def _part(watch: StopWatch, parts: int) -> StopWatch:
    """The watch of one of so many parts of the time that is left."""
    remaining = watch.remaining_s()
    if remaining is None:
        return watch
    return watch.ending_at(watch.elapsed_s() + remaining / parts)


def _scheduled(found: Synthesis | None) -> Synthesis | None:
    return None if found is None or found.sums is None else found
