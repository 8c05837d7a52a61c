"""By how much more tokens a second one run trains on than another."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cost.accuracy import PriceRange
from p2smt.training.iteration import estimate_range
from p2smt.training.prediction import RunEstimate


@dataclass(frozen=True, slots=True)
class RateGain:
    """By how much more tokens a second are trained on, as a part of what is now.

    ``low`` and ``high``: links being as fast, or as slow, as they may be, alike in both.
    """

    gain: float
    low: float
    high: float


def rate_gain(now: RunEstimate, then: RunEstimate) -> RateGain:
    """The gain in tokens a second, with its range by what is known of links."""
    tokens = then.prediction.tokens / now.prediction.tokens
    gains = [
        tokens * before_s / after_s - 1
        for before_s, after_s in zip(_ends(now), _ends(then), strict=True)
    ]
    return RateGain(gains[0], min(gains), max(gains))


def _ends(found: RunEstimate) -> tuple[float, float, float]:
    """Seconds of an iteration as said, and with links as fast and as slow as they may be."""
    within: PriceRange | None = estimate_range(found).iteration
    seconds = found.iteration_s
    return (seconds, seconds, seconds) if within is None else (seconds, within.low_s, within.high_s)
