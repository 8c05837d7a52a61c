"""Figures of a measured study, from its entries and cases: accuracy, regret, ratios, speedups.

Pure functions of plain data.  Times are in seconds; a measured time is the median of an entry's
timings.  Pairs that share an entry share its time, and each counts as a pair.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOPS = (1, 5, 10)
MORE_THAN = 10
"""Cases of the headline have more measurements: ten guesses would always find the best."""
GAIN = 1.05
"""A measured program counts as a gain from here on; a modelled one from 1 %."""
_SAME = 1e-6  # predictions, which have six digits, that differ by no more are equal


@dataclass(frozen=True, slots=True)
class Pair:
    """A program on a placement (its number in the case); ``entry`` is what was timed."""

    placement: int
    entry: int
    predicted_s: float
    measured_s: float
    single: bool


@dataclass(frozen=True, slots=True)
class Speedup:
    """A placement's default over its fastest program, and over the model's choice."""

    best: float
    chosen: float
    entries: tuple[int, ...]


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


def placement_ratio(pairs: Sequence[Pair]) -> float:
    """Slowest over fastest placement, each with its single all-reduce."""
    singles = [pair.measured_s for pair in pairs if pair.single]
    return max(singles) / min(singles)


def predicted_ratio(pairs: Sequence[Pair]) -> float:
    """The same as the model has it."""
    singles = [pair.predicted_s for pair in pairs if pair.single]
    return max(singles) / min(singles)


def speedups(pairs: Sequence[Pair]) -> list[Speedup]:
    """One per placement: what programs gain over the single all-reduce on it."""
    found = []
    for number in sorted({pair.placement for pair in pairs}):
        own = [pair for pair in pairs if pair.placement == number]
        default = next(pair.measured_s for pair in own if pair.single)
        best = min(pair.measured_s for pair in own)
        chosen = statistics.fmean(pair.measured_s for pair in first_choices(own))
        entries = tuple(sorted(pair.entry for pair in own))
        found.append(Speedup(default / best, default / chosen, entries))
    return found


def seconds_of(entry: Mapping[str, Any]) -> float:
    """The measured time of an entry: the median over all rounds."""
    samples: list[float] = [s for samples in entry["times_s"] for s in samples]
    return statistics.median(samples)


def case_pairs(case: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """The pairs of a case."""
    return [
        Pair(
            number,
            entry,
            entries[entry]["predicted_s"],
            seconds_of(entries[entry]),
            entries[entry]["single"],
        )
        for number, (_, own) in enumerate(case["placements"])
        for entry in own
    ]


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
        "regret_within_5_percent": statistics.fmean(value <= 0.05 for value in regrets),
    }


def gains(found: Sequence[Speedup]) -> dict[str, Any]:
    """Share, mean and maximum of measured speedups; ``chosen`` is free of the luck of the best."""
    best, chosen = [one.best for one in found], [one.chosen for one in found]
    return {
        "requests": len(found),
        "share_gaining": statistics.fmean(value >= GAIN for value in best),
        "mean": statistics.fmean(best),
        "mean_of_gaining": statistics.fmean([v for v in best if v >= GAIN] or [1.0]),
        "max": max(best),
        "chosen_share_gaining": statistics.fmean(value >= GAIN for value in chosen),
        "chosen_mean": statistics.fmean(chosen),
        "chosen_max": max(chosen),
        "chosen_min": min(chosen),
    }


def distinct(cases: Iterable[Sequence[Pair]]) -> list[Sequence[Pair]]:
    """One case of each set of entries."""
    return list({frozenset(pair.entry for pair in pairs): pairs for pairs in cases}.values())


def _placements(
    cases: Sequence[Mapping[str, Any]], entries: Sequence[Mapping[str, Any]]
) -> list[Sequence[Pair]]:
    """The pairs of each placement whose groups leave nodes, as cases of their own."""
    return [
        [pair for pair in case_pairs(case, entries) if pair.placement == number]
        for case in cases
        for number, (_, own) in enumerate(case["placements"])
        if math.prod(entries[own[0]]["factors"][:-1]) > 1
    ]


def errors(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """abs(predicted / measured - 1), and how far the rounds of an entry differ.

    ``rounds_differ``: mean deviation of the rounds' medians from the entry's time, relative.
    """
    off = [abs(e["predicted_s"] / seconds_of(e) - 1) for e in entries]
    differ = [
        statistics.fmean(abs(statistics.median(r) / seconds_of(e) - 1) for r in e["times_s"])
        for e in entries
        if len(e["times_s"]) > 1
    ]
    return {
        "error_median": statistics.median(off),
        "error_max": max(off),
        "rounds_differ": statistics.median(differ or [0.0]),
    }


def summary(
    entries: Sequence[Mapping[str, Any]], cases: Sequence[Mapping[str, Any]], predicted: bool
) -> dict[str, Any]:
    """All figures; without a calibrated model (``predicted`` false) the placement ratio alone."""
    every = [case_pairs(case, entries) for case in cases]
    widest = max(range(len(every)), key=lambda n: placement_ratio(every[n]))
    found: dict[str, Any] = {
        "pairs": sum(map(len, every)),
        "entries": len(entries),
        "placement_ratio": placement_ratio(every[widest]),
        "placement_ratio_predicted": predicted_ratio(every[widest]),
        "placement_ratio_case": {name: cases[widest][name] for name in ("axes", "reduced")},
    }
    if not predicted:
        return found
    requests = [one for pairs in every for one in speedups(pairs)]
    different = list({one.entries: one for one in requests}.values())
    return {
        **found,
        "accuracy": accuracy(every),
        "accuracy_distinct_cases": accuracy(distinct(every)),
        "accuracy_any_case": accuracy(every, 1),
        "accuracy_one_placement": accuracy(distinct(_placements(cases, entries)), 1),
        "speedup": gains(requests),
        "speedup_distinct_requests": gains(different),
        **errors(entries),
    }
