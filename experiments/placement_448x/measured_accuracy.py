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
"""Cases with at most so many different pairs do not count: ten guesses always find the best."""
GAIN = 1.05
"""A program counts as a gain from here on: clearly more than repetitions differ."""
_SAME = 1e-9  # predictions that differ relatively by no more are equal


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


def first_choice(pairs: Sequence[Pair]) -> Pair:
    """The pair of least predicted time; of equal ones the first, whatever was measured."""
    return min(pairs, key=lambda pair: pair.predicted_s)


def rank_of_best(pairs: Sequence[Pair]) -> int:
    """Place of the measured best in the model's order: 1 + the pairs predicted to be faster.

    Pairs of one entry do the same, so they take one place.
    """
    least = min(pair.measured_s for pair in pairs)
    predicted = min(pair.predicted_s for pair in pairs if pair.measured_s == least)
    return 1 + len({p.entry for p in pairs if p.predicted_s < predicted * (1 - _SAME)})


def regret(pairs: Sequence[Pair]) -> float:
    """Measured time of the model's first choice over the measured best, minus one."""
    return first_choice(pairs).measured_s / min(pair.measured_s for pair in pairs) - 1


def placement_ratio(pairs: Sequence[Pair]) -> float:
    """Slowest over fastest placement, each with its single all-reduce."""
    singles = [pair.measured_s for pair in pairs if pair.single]
    return max(singles) / min(singles)


def speedups(pairs: Sequence[Pair]) -> list[Speedup]:
    """One per placement: what programs gain over the single all-reduce on it."""
    found = []
    for number in sorted({pair.placement for pair in pairs}):
        own = [pair for pair in pairs if pair.placement == number]
        default = next(pair.measured_s for pair in own if pair.single)
        best, chosen = min(pair.measured_s for pair in own), first_choice(own).measured_s
        entries = tuple(sorted(pair.entry for pair in own))
        found.append(Speedup(default / best, default / chosen, entries))
    return found


def case_pairs(case: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """The pairs of a case."""
    return [
        Pair(
            number,
            entry,
            entries[entry]["predicted_s"],
            statistics.median(entries[entry]["times_s"]),
            entries[entry]["single"],
        )
        for number, (_, own) in enumerate(case["placements"])
        for entry in own
    ]


def accuracy(cases: Iterable[Sequence[Pair]]) -> dict[str, Any]:
    """Top-k accuracy and regret over the cases with enough pairs."""
    counted = [pairs for pairs in cases if len({pair.entry for pair in pairs}) > MORE_THAN]
    ranks, regrets = [rank_of_best(p) for p in counted], [regret(p) for p in counted]
    if not counted:
        return {"cases": 0}
    return {
        "cases": len(counted),
        **{f"top_{k}": statistics.fmean(rank <= k for rank in ranks) for k in TOPS},
        "worst_rank": max(ranks),
        "regret_mean": statistics.fmean(regrets),
        "regret_max": max(regrets),
        "regret_within_2_percent": statistics.fmean(value <= 0.02 for value in regrets),
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


def _leaves_nodes(case: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no placement keeps the groups of a case inside nodes."""
    return all(math.prod(entries[own[0]]["factors"][:-1]) > 1 for _, own in case["placements"])


def errors(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """abs(predicted / measured - 1), and how far the repetitions of an entry lie apart."""
    off = [abs(e["predicted_s"] / statistics.median(e["times_s"]) - 1) for e in entries]
    apart = [
        (max(e["times_s"]) - min(e["times_s"])) / statistics.median(e["times_s"])
        for e in entries
        if len(e["times_s"]) > 1
    ]
    return {
        "error_median": statistics.median(off),
        "error_max": max(off),
        "repetitions_apart_median": statistics.median(apart or [0.0]),
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
        "placement_ratio_case": {name: cases[widest][name] for name in ("axes", "reduced")},
    }
    if not predicted:
        return found
    requests = [one for pairs in every for one in speedups(pairs)]
    different = list({one.entries: one for one in requests}.values())
    across = [
        pairs for case, pairs in zip(cases, every, strict=True) if _leaves_nodes(case, entries)
    ]
    return {
        **found,
        "accuracy": accuracy(every),
        "accuracy_distinct_cases": accuracy(distinct(every)),
        "accuracy_across_nodes": accuracy(across),
        "speedup": gains(requests),
        "speedup_distinct_requests": gains(different),
        **errors(entries),
    }
