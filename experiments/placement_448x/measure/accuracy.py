"""How well a model ranks pairs: top-k accuracy and regret.

Pure functions of plain data; times are in seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

TOPS = (1, 5, 10)
MORE_THAN = 10
"""Cases of the headline have more measurements: ten guesses would always find the best."""
_SAME = 1e-6  # predictions, which have six digits, that differ by no more are equal


@dataclass(frozen=True, slots=True)
class Pair:
    """A program on a placement (its number in the case); ``entry`` is what was timed.

    ``slowest_s``: the largest median of a round (0: that of all).
    """

    placement: int
    entry: int
    predicted_s: float
    measured_s: float
    single: bool
    slowest_s: float = 0.0


def different(pairs: Iterable[Pair]) -> list[Pair]:
    """One pair of each entry: the others are the same groups and steps, timed once for all."""
    return list({pair.entry: pair for pair in reversed(list(pairs))}.values())[::-1]


def first_choices(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of least predicted time, all that are tied."""
    least = min(pair.predicted_s for pair in pairs)
    return [pair for pair in pairs if pair.predicted_s <= least * (1 + _SAME)]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the measured best is in the model's order: ``before`` it, and ``tied`` with it."""

    before: int
    tied: int

    def within(self, k: int) -> bool:
        """Whether it is among the k first, tied pairs sharing a place."""
        return self.before < k

    def chance_within(self, k: int) -> float:
        """The same if tied pairs come in random order: the probability."""
        return min(1.0, max(0, k - self.before) / self.tied)


def place_of_best(pairs: Sequence[Pair]) -> Place:
    """The place of the measured best among different pairs."""
    best = min(pairs, key=lambda pair: pair.measured_s).predicted_s
    before = sum(pair.predicted_s < best * (1 - _SAME) for pair in pairs)
    return Place(before, sum(pair.predicted_s <= best * (1 + _SAME) for pair in pairs) - before)


def regret(pairs: Sequence[Pair]) -> float:
    """Measured time of the model's first choice (mean of tied ones) over the best, minus one."""
    chosen = statistics.fmean(pair.measured_s for pair in first_choices(pairs))
    return chosen / min(pair.measured_s for pair in pairs) - 1


def within_spread(pairs: Sequence[Pair]) -> bool:
    """Whether the model's first choice takes no longer than the best did in its slowest round."""
    best = min(pairs, key=lambda pair: pair.measured_s)
    chosen = statistics.fmean(pair.measured_s for pair in first_choices(pairs))
    return chosen <= max(best.measured_s, best.slowest_s)


def accuracy(cases: Iterable[Sequence[Pair]], more_than: int = MORE_THAN) -> dict[str, Any]:
    """Top-k accuracy and regret over the cases with more measurements than so many.

    ``chance_k``: what guessing would reach.  ``random_ties_k``: see :meth:`Place.chance_within`.
    """
    counted = [own for pairs in cases if len(own := different(pairs)) > more_than]
    if not counted:
        return {"cases": 0}
    places, regrets = [place_of_best(p) for p in counted], [regret(p) for p in counted]
    return {
        "cases": len(counted),
        "measurements_median": statistics.median(map(len, counted)),
        **{f"top_{k}": statistics.fmean(p.within(k) for p in places) for k in TOPS},
        **{f"random_ties_{k}": statistics.fmean(p.chance_within(k) for p in places) for k in TOPS},
        **{f"chance_{k}": statistics.fmean(min(1.0, k / len(p)) for p in counted) for k in TOPS},
        "worst_place": max(place.before + 1 for place in places),
        "regret_mean": statistics.fmean(regrets),
        "regret_max": max(regrets),
        "within_spread": statistics.fmean(within_spread(p) for p in counted),
        "regret_within_5_percent": statistics.fmean(value <= 0.05 for value in regrets),
    }
