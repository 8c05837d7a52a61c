"""Searches that find nothing when they are begun, as if time were short, and all later.

And a clock that goes on by what is said to be done, for searches that end with the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from p2smt.result import SearchLimits, StopWatch
from p2smt.synthesis.best_rate import RateQuestion, _Improving, best_rate
from p2smt.synthesis.bounds import RateBound
from p2smt.synthesis.setting import Synthesis

LOOK_S = 1e-4
"""Between two looks at a :class:`Clock`: what waits for its time comes to an end."""


class Clock:
    """To stand for :mod:`time`: its seconds are those that were told to have gone by, and looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += LOOK_S
        return self.now

    def all_of(self, watch: StopWatch) -> None:
        """As long as a watch has left."""
        self.now += watch.remaining_s() or 0.0


@dataclass
class FoundLater:
    """To be asked like :func:`~p2smt.synthesis.best_rate.best_rate`; ``begun``: the steps, how
    often; ``vain``: so often each is asked in vain, for all the time that it has by a ``clock``.
    """

    vain: int = 1
    clock: Clock | None = None
    begun: Counter[int] = field(default_factory=Counter)

    def __call__(
        self,
        question: RateQuestion,
        steps: int,
        bound: RateBound,
        best: Fraction | None,
        watch: StopWatch,
    ) -> Synthesis | None:
        """Asked again, what effort alone finds, however little time there is."""
        if self.begun[steps] == self.vain:
            return best_rate(question, steps, bound, best, StopWatch.start(SearchLimits()))
        self.begun[steps] += 1
        if self.clock is not None:
            self.clock.all_of(watch)
        if steps not in question.searches:
            question.searches[steps] = _Improving(question, steps, bound.value, best, watch)
        return None
