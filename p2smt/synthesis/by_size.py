"""The best schedules of a range of payloads, and how far from the least time they are.

A schedule of S steps, R rounds and C chunks takes alpha S + beta n R/C seconds for n bytes.  So the
question is which numbers of steps are worth a search: always the one whose bound, priced, lies
furthest below the best time that is known, at the payload where it does.  One whose bound lies
below nowhere is never searched, and so the search ends.  Forests in pieces, which may have more
steps than are searched, are offered to it at last (:meth:`SizeSearch.offer`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from p2smt.errors import InputError
from p2smt.result import StopWatch
from p2smt.synthesis.best_rate import SEEDS_PART, RateQuestion, best_rate, make_seeds
from p2smt.synthesis.bounds import RateBound, bounded
from p2smt.synthesis.certificate.sizes import (
    EnvelopePiece,
    SizeCertificate,
    SizeCorner,
    SizeTriple,
    SteppedBound,
    TimeLine,
    byte_s,
    corners_of,
    lower_envelope,
)
from p2smt.synthesis.forests.pieces import ForestSeed, forest_seeds
from p2smt.synthesis.frontier import BOUND_PART, Ending
from p2smt.synthesis.seeds import Seed
from p2smt.synthesis.setting import Synthesis, SynthesisSetting, fewest_steps, least_rate
from p2smt.synthesis.synthesize import seeded

MOST_FORESTS, LEAST_GAIN = 4, Fraction(101, 100)
"""So many forests are offered after a search, each of which gains as much at some payload."""
FORESTS_PART = 4
"""They have so small a part of the time."""


@dataclass(frozen=True, slots=True)
class RoundPrices:
    """``alpha_s``: seconds of a step; ``beta_s``: of a byte of the payload where R/C is 1."""

    alpha_s: Fraction
    beta_s: Fraction

    @staticmethod
    def of(setting: SynthesisSetting, alpha_s: Fraction) -> RoundPrices:
        """Those of a fabric: a round carries a chunk over a unit of bandwidth.

        Raises:
            InputError: its bandwidths have no unit, so no payload has a time.
        """
        fabric = setting.fabric
        if fabric.unit is None:
            rule = "has bandwidths without a unit, so no payload has a time"
            raise InputError(f"fabric {fabric.name[:60]}", rule, "name one whose links have rates")
        collective = bounded(setting.collective)
        return RoundPrices(alpha_s, byte_s(collective, fabric.ranks, fabric.unit))

    def line(self, number: int, steps: int, rate: Fraction) -> TimeLine:
        """The times of so many steps at a rate."""
        return TimeLine(number, self.alpha_s * steps, self.beta_s * rate)


class SizesEnding(StrEnum):
    """Why nothing more is searched."""

    SEARCHED = "every number of steps that could be better was searched"
    STEPS = Ending.STEPS.value
    TIME = Ending.TIME.value
    STOPPED = Ending.STOPPED.value


@dataclass(frozen=True, slots=True)
class SizedPiece:
    """The schedule that takes least from ``low`` to ``high`` bytes, both of them in the piece."""

    low: int
    high: int
    found: Synthesis

    @property
    def meant(self) -> Synthesis:
        """The same, its schedule said to be meant for these payloads."""
        schedule = self.found.schedule
        if schedule is None:
            return self.found
        return replace(self.found, schedule=replace(schedule, payloads=(self.low, self.high)))


@dataclass(frozen=True, slots=True)
class SizedSchedules:
    """The schedules found for payloads of ``low`` to ``high`` bytes, fewest steps first.

    ``least``: how many steps every schedule has.  ``bounds`` on the rate by steps, from these on,
    that of any number (None) last; empty: the time came before it.
    """

    setting: SynthesisSetting
    prices: RoundPrices
    low: int
    high: int
    least: RateBound
    bounds: tuple[tuple[int | None, RateBound], ...]
    schedules: tuple[Synthesis, ...]
    ending: SizesEnding
    wall_s: float = 0.0

    @property
    def certificate(self) -> SizeCertificate | None:
        """What is proved; None: there is no schedule, or no bound."""
        if not self.schedules or not self.bounds:
            return None
        claim = SizeCertificate(
            *(self.prices.alpha_s, self.prices.beta_s, self.low, self.high),
            tuple(_triple(one) for one in self.schedules),
            self.least.certificate,
            tuple(SteppedBound(steps, bound.certificate) for steps, bound in self.bounds),
        )
        corners = corners_of(claim.times(), claim.least_times())
        return claim.proving(corners)

    @property
    def pieces(self) -> tuple[SizedPiece, ...]:
        """Which schedule is for which payloads: every whole number of bytes is in one of them."""
        if not self.schedules:
            return ()
        lines = [
            self.prices.line(at, one.size.steps, one.rate) for at, one in enumerate(self.schedules)
        ]
        found, start = [], self.low
        for one in lower_envelope(lines, Fraction(self.low), Fraction(self.high)):
            if start <= (end := math.floor(one.high)):
                found.append(SizedPiece(start, end, self.schedules[one.line.number]))
                start = end + 1
        return tuple(found)

    def piece_of(self, payload: int) -> SizedPiece:
        """The piece that holds a payload of the range."""
        return next(one for one in self.pieces if one.low <= payload <= one.high)

    @property
    def proved(self) -> bool:
        """Whether no schedule takes less time of any payload in the range."""
        claim = self.certificate
        return claim is not None and claim.ratio == 1


def _triple(one: Synthesis) -> SizeTriple:
    return one.size.steps, one.size.rounds, one.size.chunks


@dataclass(frozen=True, slots=True)
class ProvedSpan:
    """Payloads for which ``ratio`` is the largest of time and bound; 1: nothing takes less."""

    low: Fraction
    high: Fraction
    ratio: Fraction


def proved_spans(corners: tuple[SizeCorner, ...]) -> tuple[ProvedSpan, ...]:
    """Where schedules meet the bound, and where they do not: spans of payloads, one after another.

    Between two corners both times are linear, so that they are equal where they are at both.
    """
    if len(corners) == 1:
        return (ProvedSpan(corners[0].payload, corners[0].payload, corners[0].ratio),)
    found: list[ProvedSpan] = []
    for one, other in pairwise(corners):
        ratio = max(one.ratio, other.ratio)
        if found and (found[-1].ratio == 1) == (ratio == 1):
            ratio = max(ratio, found[-1].ratio)
            found[-1] = ProvedSpan(found[-1].low, other.payload, ratio)
        else:
            found.append(ProvedSpan(one.payload, other.payload, ratio))
    return tuple(found)


@dataclass(slots=True)
class SizeSearch:
    """The search for payloads of ``low`` to ``high`` bytes, in at most ``most_steps`` steps."""

    question: RateQuestion
    prices: RoundPrices
    low: int
    high: int
    most_steps: int
    watch: StopWatch
    least: RateBound = field(init=False)
    limit: RateBound | None = None
    bounds: dict[int, RateBound] = field(default_factory=dict)
    found: dict[int, Synthesis] = field(default_factory=dict)
    searched: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """The fewest steps are known at once."""
        self.least = fewest_steps(self.question.setting)

    def offer(self, one: Synthesis) -> None:
        """A schedule of any source: kept where it is better than all of as many steps or fewer."""
        best = self._best(one.size.steps)
        if one.schedule is not None and (best is None or one.rate < best):
            self.found[one.size.steps] = one

    def run(self) -> SizedSchedules:
        """Searches until nothing can be better, or time or steps are over.

        On KeyboardInterrupt what was found by then, and of what needs no search what gains most.

        Raises:
            EncodingBug: what a solver found breaks a rule, or is wrong in some interleaving.
        """
        ending = SizesEnding.STOPPED
        try:
            part = self.watch.part(1 / BOUND_PART)
            self.limit = least_rate(self.question.setting, None, part, self.watch)
            if self.limit is not None:
                make_seeds(self.question, self.most_steps, self.watch.part(1 / SEEDS_PART))
                whole, self.watch = self.watch, self.watch.part(1 - 1 / FORESTS_PART)
                found = self._improve(self.limit)
                self.watch = whole
                if found is not SizesEnding.STOPPED and not self._answer(found).proved:
                    grown = forest_seeds(self.question.setting, self.watch.left())
                    self._offer_made(self.limit, grown)
                    found = self._improve(self.limit) if found is SizesEnding.TIME else found
            ending = SizesEnding.TIME if self.limit is None else found
        except KeyboardInterrupt:
            pass
        with suppress(KeyboardInterrupt):
            if ending is SizesEnding.STOPPED and self.limit is not None:
                self._offer_made(self.limit, ())
        return self._answer(ending)

    def _answer(self, ending: SizesEnding) -> SizedSchedules:
        bounds: list[tuple[int | None, RateBound]] = []
        if self.limit is not None:
            bounds = [*sorted(self.bounds.items()), (None, self.limit)]
        schedules = tuple(one for steps, one in sorted(self.found.items()) if self._gained(steps))
        return SizedSchedules(
            *(self.question.setting, self.prices, self.low, self.high, self.least, tuple(bounds)),
            *(schedules, ending, self.watch.elapsed_s()),
        )

    def _offer_made(self, limit: RateBound, grown: Iterable[ForestSeed]) -> None:
        """What gains most over the best times, one after the other, a few: forests in pieces, and
        the seeds of steps that were not searched; without time the first alone.
        """
        made: list[Seed | ForestSeed] = [*self.question.seeds.values(), *grown]
        lines = [self.prices.line(n, one.size.steps, one.size.rate) for n, one in enumerate(made)]
        for offered in range(MOST_FORESTS):
            late = offered > 0 and self.watch.expired()
            gains = self._gains(lines, self._lines())
            ratio, number = max(gains, default=(Fraction(0), 0))
            if not ratio or (self.found and (ratio < LEAST_GAIN or late)):
                return
            one = made[-number]
            seed = one if isinstance(one, Seed) else one.seed
            self.offer(seeded(self.question.setting, seed, limit, self.watch))

    def _improve(self, limit: RateBound) -> SizesEnding:
        while not self.watch.expired():
            steps = self._next(limit)
            if steps is None or steps > self.most_steps:
                if self._again():
                    continue
                return SizesEnding.SEARCHED if steps is None else SizesEnding.STEPS
            part = self._part(limit)
            if steps not in self.bounds:
                short = part.part(1 / BOUND_PART)
                bound = least_rate(self.question.setting, steps, short, self.watch)
                if bound is None:
                    return SizesEnding.TIME
                self.bounds[steps] = bound
            elif self._search(steps, part):
                return SizesEnding.STOPPED
        return SizesEnding.TIME

    def _again(self) -> bool:
        """Whether searches that are open have time to go on."""
        waiting = {n for n in self.searched if self._could_gain(n, self.bounds[n])}
        waiting = {n for n in waiting if not self.question.searches[n].through}
        self.searched -= waiting
        return bool(waiting)

    def _search(self, steps: int, watch: StopWatch) -> bool:
        """Searches schedules of so many steps; whether it was stopped."""
        self.searched.add(steps)
        one = best_rate(self.question, steps, self.bounds[steps], self._best(steps), watch)
        if one is not None:
            self.offer(one)
        return self.question.searches[steps].stopped

    def _next(self, limit: RateBound) -> int | None:
        """The number of steps that could gain most; None: none could; one beyond: too many."""
        lines = self._waiting(limit)
        within = [one for one in lines if one.number <= self.most_steps]
        best = self._lines()
        gains = max(self._gains(within, best), default=None)
        if gains is None:
            gains = max(self._gains(lines, best), default=None)
        return None if gains is None else -gains[1]

    def _part(self, limit: RateBound) -> StopWatch:
        """The time of one number of steps: shared by those that could gain on all that is known."""
        known, line = self.question.seeds.values(), self.prices.line
        best = [*self._lines(), *(line(0, one.size.steps, one.size.rate) for one in known)]

        def gains(one: TimeLine) -> bool:
            return any(True for _ in self._gains([one], best))

        first, *rest = self._waiting(limit)
        beyond = range(first.number, self.most_steps + 1)
        more = bisect_left(beyond, True, key=lambda n: not gains(line(n, n, limit.value)))
        return self.watch.part(1 / max(1, more + sum(map(gains, rest))))

    def _waiting(self, limit: RateBound) -> list[TimeLine]:
        """The least times of steps that may be searched.

        First of those whose bound is not known: the fewest, which could have the limit's rate.
        """
        beyond = max(self.bounds, default=int(self.least.value) - 1) + 1
        waits = ((n, one) for n, one in self.bounds.items() if n not in self.searched)
        open_ = [(beyond, limit), *(one for one in waits if self._could_gain(*one))]
        return [self.prices.line(n, n, one.value) for n, one in open_]

    def _could_gain(self, steps: int, bound: RateBound) -> bool:
        best = self._best(steps)
        return best is None or bound.value < best

    def _gains(
        self, lines: Iterable[TimeLine], best: Sequence[TimeLine]
    ) -> Iterator[tuple[Fraction, int]]:
        """Of each line that lies below the best time anywhere how often it goes into it there.

        The best time is concave, so that a line which is below it anywhere is so at a corner.
        """
        low, high = Fraction(self.low), Fraction(self.high)
        pieces: tuple[EnvelopePiece, ...] = lower_envelope(best, low, high) if best else ()
        for line in lines:
            if not pieces:
                yield 1 / line.at(low), -line.number
            for one in pieces:
                for payload in (one.low, one.high):
                    if line.at(payload) < one.line.at(payload):
                        yield one.line.at(payload) / line.at(payload), -line.number

    def _lines(self) -> list[TimeLine]:
        """The times of what was found."""
        return [self.prices.line(n, n, one.rate) for n, one in sorted(self.found.items())]

    def _gained(self, steps: int) -> bool:
        """Whether nothing of fewer steps has the rate."""
        before = self._best(steps - 1)
        return before is None or self.found[steps].rate < before

    def _best(self, steps: int) -> Fraction | None:
        """The best rate known in so many steps or fewer."""
        return min((one.rate for n, one in self.found.items() if n <= steps), default=None)
