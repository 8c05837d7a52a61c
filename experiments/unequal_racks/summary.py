"""Figures of the study from its measured times; pure functions of plain data, times in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.testbed.written.results import rounded

Data = Mapping[str, Any]
DIGITS = 6


def totals(order: Data) -> list[float]:
    """Both requests of each round together."""
    return [sum(times) for times in zip(*order["times_s"], strict=True)]


def median_s(order: Data) -> float:
    """Of the rounds' totals."""
    return statistics.median(totals(order))


def spread_s(order: Data) -> float:
    """Slowest round less the fastest."""
    found = totals(order)
    return max(found) - min(found)


def of(data: Data, name: str) -> Data:
    """The order of this name."""
    return next(order for order in data["orders"] if order["name"] == name)


def beats(better: Data, worse: Data) -> bool:
    """Whether the medians differ by more than either spread."""
    return median_s(worse) - median_s(better) > max(spread_s(better), spread_s(worse))


def summary(data: Data) -> dict[str, Any]:
    """Of each order the median, the spread and the ratio to the chosen one; whether that wins."""
    chosen = of(data, "chosen")
    return {
        "orders": [_of_order(order, chosen) for order in data["orders"]],
        "chosen_beats_alphabetical": beats(chosen, of(data, "alphabetical")),
    }


def _of_order(order: Data, chosen: Data) -> dict[str, Any]:
    return {
        "name": order["name"],
        "predicted_s": rounded(sum(order["predicted_s"]), DIGITS),
        "median_s": rounded(median_s(order), DIGITS),
        "spread_s": rounded(spread_s(order), DIGITS),
        "over_chosen_predicted": rounded(sum(order["predicted_s"]) / sum(chosen["predicted_s"]), 4),
        "over_chosen_measured": rounded(median_s(order) / median_s(chosen), 4),
    }


def errors(found: Sequence[Data], prefix: str = "") -> list[float]:
    """predicted / measured - 1 of each request of each order."""
    return [
        said / statistics.median(times) - 1
        for order in found
        for said, times in zip(
            order[f"{prefix}predicted_s"], order[f"{prefix}times_s"], strict=True
        )
    ]


def shared(data: Data) -> tuple[list[float], list[float]]:
    """How far off predictions are: where rings share no uplink, and where those of both groups do.

    The first, with the sends, as predicted / measured - 1; the second as measured / predicted - 1.
    Rings share one where their all-reduce is predicted to take longer than each group's alone.
    """
    plain, both = list[float](), list[float]()
    for order in data["orders"]:
        reduced, sent = errors([order])
        plain.append(sent)
        if order["predicted_s"][0] > 1.01 * max(order["alone_predicted_s"]):
            both.append(1 / (1 + reduced) - 1)
        else:
            plain.append(reduced)
    return plain, both
