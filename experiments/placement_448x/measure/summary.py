"""Figures of a measured study, from its entries and cases: accuracy, ratios, speedups, errors.

Pure functions of plain data.  Times are in seconds; a measured time is the median of an entry's
timings.  Pairs that share an entry share its time, and each counts as a pair.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.placement_448x.measure.accuracy import Pair, accuracy, first_choices

GAIN = 1.05
"""A measured program counts as a gain from here on; a modelled one from 1 %."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """A placement's default over its fastest program, and over the model's choice.

    ``predicted``: the latter as the model has it.
    """

    best: float
    chosen: float
    predicted: float
    entries: tuple[int, ...]


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
        single_s = next(pair.predicted_s for pair in own if pair.single)
        said = single_s / min(pair.predicted_s for pair in own)
        entries = tuple(sorted(pair.entry for pair in own))
        found.append(Speedup(default / best, default / chosen, said, entries))
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
            max(statistics.median(samples) for samples in entries[entry]["times_s"]),
        )
        for number, (_, own) in enumerate(case["placements"])
        for entry in own
    ]


def gains(found: Sequence[Speedup]) -> dict[str, Any]:
    """Share, mean and maximum of measured speedups; ``chosen`` is free of the luck of the best."""
    best, chosen = [one.best for one in found], [one.chosen for one in found]
    said = [one.predicted for one in found]
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
        "predicted_share_gaining": statistics.fmean(value >= GAIN for value in said),
        "predicted_mean": statistics.fmean(said),
        "predicted_max": max(said),
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
        if leaves_nodes(entries[own[0]])
    ]


def leaves_nodes(entry: Mapping[str, Any]) -> bool:
    """Whether the groups of an entry span several nodes."""
    nodes: int = math.prod(entry["factors"][:-1])
    return nodes > 1


def _error(entry: Mapping[str, Any]) -> float:
    predicted_s: float = entry["predicted_s"]
    return abs(predicted_s / seconds_of(entry) - 1)


def errors(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """abs(predicted / measured - 1), and how far the rounds of an entry differ.

    ``rounds_differ``: mean deviation of the rounds' medians from the entry's time, relative.
    """
    off = [_error(e) for e in entries]
    across = [_error(e) for e in entries if leaves_nodes(e)]
    differ = [
        statistics.fmean(abs(statistics.median(r) / seconds_of(e) - 1) for r in e["times_s"])
        for e in entries
        if len(e["times_s"]) > 1
    ]
    return {
        "error_median": statistics.median(off),
        "error_max": max(off),
        "error_across_median": statistics.median(across),
        "error_across_max": max(across),
        "short_most": max(seconds_of(e) / e["predicted_s"] for e in entries),
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
