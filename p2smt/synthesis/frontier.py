"""The frontier of a collective over a fabric: for so many steps, the fewest rounds a chunk.

For steps from the fewest on, a bound says which rate no schedule is below, whatever its chunks.
Sizes that could meet it are tried, and sizes between it and the best rate that is known
(:mod:`.best_rate`).  The chunks of a point are the fewest that were found, which is not claimed to
be the least.  The frontier ends where a rate is met that no number of steps can improve, or at so
many steps.  Where there is a time limit, points that are still open then have the rest of it.  One
that ends early has of more steps only what is known without a search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from operator import attrgetter

from p2smt.errors import InputError
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.best_rate import (
    MOST_CHUNKS,
    SEEDS_PART,
    RateQuestion,
    best_rate,
    make_seeds,
)
from p2smt.synthesis.bounds import RateBound
from p2smt.synthesis.seeds import Seed
from p2smt.synthesis.setting import (
    Synthesis,
    SynthesisSetting,
    SynthesisState,
    Tell,
    fewest_steps,
    least_rate,
    tell_nobody,
)
from p2smt.synthesis.synthesize import seeded

MORE_STEPS = 4
"""So many steps beyond the fewest are looked at, unless somebody says how many."""
BOUND_PART = 4
"""A bound has so small a part of the time of its point, unless it needs more to be one at all."""
KEPT = 2
"""A point has so small a part of its share of the time; what is left then goes to open ones."""


class Ending(StrEnum):
    """Why a frontier has no more points."""

    LIMIT = "no number of steps has a better rate (bound)"
    STEPS = "the most steps were reached"
    TIME = "the time limit came"
    STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """So many steps: a bound on their rate (if not searched, that of any number), the best found.

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
    """The points by their steps; ``limit``: the bound for any number of steps.

    ``waits``: of a frontier that ended, whether more time may find better schedules.
    """

    setting: SynthesisSetting
    points: tuple[FrontierPoint, ...]
    limit: RateBound | None
    ending: Ending
    wall_s: float = 0.0
    waits: bool = False

    @property
    def ended(self) -> bool:
        """Whether no point is left out."""
        return self.ending in (Ending.LIMIT, Ending.STEPS)

    @property
    def proved(self) -> bool:
        """Whether every point is proved, and none is left out."""
        return self.ended and all(point.proved for point in self.points)

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
    by then, and what is known of more steps.

    Raises:
        InputError: ``max_steps`` are fewer than every schedule has, or ``max_chunks`` none.
        EncodingBug: what a solver found breaks a rule, or is wrong in some interleaving.
    """
    watch = StopWatch.start(limits or SearchLimits())
    most = most_chunks_of(setting, max_chunks)
    question = RateQuestion(setting, most, solver, tell, groups_watch=watch)
    points: list[FrontierPoint] = []
    limit, ending, waits = None, Ending.STOPPED, False
    try:
        every = steps_of(setting, max_steps)
        limit = least_rate(setting, None, watch.part(1 / BOUND_PART), watch)
        if limit is None:
            ending = Ending.TIME
        else:
            make_seeds(question, every[-1], watch.part(1 / SEEDS_PART))
            filled = _fill(question, every, limit, watch, points)
            if filled is not Ending.STOPPED:
                ending = _fill_on(question, filled, limit, watch, points)
            waits = bool(_waiting(question, points))
    except KeyboardInterrupt:
        pass
    try:
        if limit is not None:
            _add_known(question, limit, watch, points)
    except KeyboardInterrupt:
        ending = Ending.STOPPED
    return ScheduleFrontier(setting, tuple(points), limit, ending, watch.elapsed_s(), waits)


def most_chunks_of(setting: SynthesisSetting, max_chunks: int | None) -> int:
    """The most chunks to try."""
    if max_chunks is None:
        return MOST_CHUNKS * (setting.fabric.ranks if setting.adds else 1)
    if max_chunks < 1:
        raise InputError(
            f"at most {max_chunks} chunks", "every schedule has one", "allow 1 or more"
        )
    return max_chunks


def steps_of(setting: SynthesisSetting, max_steps: int | None) -> range:
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
    """Adds the points, and says why they end; some time is kept for those that stay open."""
    for steps in every:
        if watch.expired():
            return Ending.TIME
        left = every.stop - steps
        bound = least_rate(question.setting, steps, watch.part(1 / (BOUND_PART * left)), watch)
        if bound is None:
            return Ending.TIME
        points.append(FrontierPoint(steps, bound, None, points[-1].best if points else None))
        if _improved(question, points, len(points) - 1, watch.part(1 / (KEPT * left))):
            return Ending.STOPPED
        if _met(limit, points[-1]):
            return Ending.LIMIT
    return Ending.STEPS


def _fill_on(
    question: RateQuestion,
    ending: Ending,
    limit: RateBound,
    watch: StopWatch,
    points: list[FrontierPoint],
) -> Ending:
    """Shares what time is left between the points that are open, and says why they end.

    However it ends, none stays after the first that no number of steps improves.
    """
    try:
        while not watch.expired() and (waiting := _waiting(question, points)):
            for done, at in enumerate(waiting):
                if _improved(question, points, at, watch.part(1 / (len(waiting) - done))):
                    return Ending.STOPPED
    finally:
        ends = [n for n, one in enumerate(points, 1) if _met(limit, one)]
        del points[ends[0] if ends else len(points) :]
    return Ending.LIMIT if ends else ending


def _add_known(
    question: RateQuestion, limit: RateBound, watch: StopWatch, points: list[FrontierPoint]
) -> None:
    """Seeds of more steps than the points before a stop or the time limit: the best one at least.

    And of the last point, should it have come while that was being checked.
    """
    last = points[-1] if points else FrontierPoint(0, limit, None, None)
    best, gains = last.best, list[Seed]()
    for steps, seed in sorted(question.seeds.items()):
        if steps >= last.steps and (best is None or seed.size.rate < best):
            best = seed.size.rate
            gains.append(seed)
    for seed in reversed(gains):
        if seed is gains[-1] or not watch.expired():
            question.tell(SynthesisState(seed.size, limit.value, best, "checking"))
            bound = last.bound if seed.size.steps == last.steps else limit
            found = seeded(question.setting, seed, bound, watch)
            points[:] = [one for one in points if one.steps != seed.size.steps]
            points.append(FrontierPoint(seed.size.steps, bound, found, seed.size.rate))
            points.sort(key=attrgetter("steps"))


def _waiting(question: RateQuestion, points: list[FrontierPoint]) -> list[int]:
    """The points that more time may improve."""
    every = enumerate(points)
    return [n for n, one in every if not (one.proved or question.searches[one.steps].through)]


def _met(limit: RateBound, point: FrontierPoint) -> bool:
    return point.best is not None and point.best <= limit.value


def _improved(
    question: RateQuestion, points: list[FrontierPoint], at: int, watch: StopWatch
) -> bool:
    """Searches better schedules of a point, which are so for more steps, too; whether stopped."""
    point = points[at]
    if point.proved:
        return False
    found = best_rate(question, point.steps, point.bound, point.best, watch)
    if found is not None and found.sums is not None:
        points[at] = replace(point, found=found, best=found.rate)
        for n, one in enumerate(points[at + 1 :], at + 1):
            if one.best is None or one.best >= found.rate:
                points[n] = replace(one, found=None, best=found.rate)
    return question.searches[point.steps].stopped
