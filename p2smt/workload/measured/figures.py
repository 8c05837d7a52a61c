"""How well times are predicted: errors, order, and what following a prediction costs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations

from p2smt.errors import InputError


def relative_errors(measured: Sequence[float], predicted: Sequence[float]) -> list[float]:
    """predicted / measured - 1 of each run."""
    _check(measured, predicted)
    return [there / here - 1 for here, there in zip(measured, predicted, strict=True)]


def mean_error(errors: Sequence[float]) -> float:
    """The mean of absolute errors."""
    return statistics.fmean(map(abs, errors))


def median_error(errors: Sequence[float]) -> float:
    """The median of absolute errors."""
    return statistics.median(map(abs, errors))


def kendall_tau(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Kendall's tau-b: 1 where the order is the same, 0 on average where it is chance.

    Pairs that are tied on one side count for neither direction; 0 if all are tied.
    """
    _check(measured, predicted)
    pairs = list(combinations(zip(measured, predicted, strict=True), 2))
    signs = [(_sign(a[0] - b[0]), _sign(a[1] - b[1])) for a, b in pairs]
    untied = [sum(pair[side] != 0 for pair in signs) for side in (0, 1)]
    agreeing = sum(first * second for first, second in signs)
    return agreeing / (untied[0] * untied[1]) ** 0.5 if all(untied) else 0.0


def ranked(scores: Sequence[float]) -> list[int]:
    """Positions by rising score; equal ones in their order."""
    return sorted(range(len(scores)), key=lambda position: scores[position])


def regret(measured: Sequence[float], scores: Sequence[float], first: int = 1) -> float:
    """How much longer than the best run the best one of the ``first`` by score took."""
    _check(measured, scores)
    return min(measured[place] for place in ranked(scores)[:first]) / min(measured) - 1


def place_of_best(measured: Sequence[float], scores: Sequence[float]) -> int:
    """Where the run that was fastest stands by score, from 1."""
    _check(measured, scores)
    return ranked(scores).index(ranked(measured)[0]) + 1


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _check(measured: Sequence[float], predicted: Sequence[float]) -> None:
    if len(measured) != len(predicted) or not measured:
        given = f"{len(measured)} measured times, {len(predicted)} predicted"
        raise InputError(given, "there must be as many of both, and one at least")
    if min(measured) <= 0:
        raise InputError(f"a measured time of {min(measured)} s", "must be more than 0")
