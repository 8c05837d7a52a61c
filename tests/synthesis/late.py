"""Searches that find nothing when they are begun, as if time were short, and all later."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from p2smt.result import SearchLimits, StopWatch
from p2smt.synthesis.best_rate import RateQuestion, _Improving, best_rate
from p2smt.synthesis.bounds import RateBound
from p2smt.synthesis.setting import Synthesis


@dataclass
class FoundLater:
    """To be asked like :func:`~p2smt.synthesis.best_rate.best_rate`; ``begun``: the steps."""

    begun: list[int] = field(default_factory=list)

    def __call__(
        self,
        question: RateQuestion,
        steps: int,
        bound: RateBound,
        best: Fraction | None,
        watch: StopWatch,
    ) -> Synthesis | None:
        """Asked again, what effort alone finds, however little time there is."""
        if steps in self.begun:
            return best_rate(question, steps, bound, best, StopWatch.start(SearchLimits()))
        self.begun.append(steps)
        question.searches[steps] = _Improving(question, steps, bound.value, best, watch)
        question.searches[steps].through = False
        return None
