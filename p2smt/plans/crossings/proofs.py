"""Refutations recomputed: that a cost is nowhere less than others, by fractions and no solver.

Let the candidate be f, the others g_1 .. g_m.  In each case every maximum of the others is taken at
one unknown, which makes lines h_s of them.  Multipliers are weights w_s >= 0 of sum 1 and shares of
the maxima of f, each of sum 1, with which the coefficients of f are at least those of sum w_s h_s.
Then f >= sum w_s h_s >= min h_s wherever no unknown is negative.  At any point the g_s are the
lines of some case, that of their largest parts; so f is at least the least of them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from p2smt.problems.crossing import (
    Case,
    CaseMultipliers,
    Coefficients,
    Refutation,
    SumOfMaxima,
    cases,
)


def broken(
    candidate: SumOfMaxima, others: Sequence[SumOfMaxima], refutation: Refutation
) -> str | None:
    """What is wrong with a refutation of ``candidate`` by some of the others; None: it holds."""
    if not refutation.by or not all(0 <= s < len(others) for s in refutation.by):
        return "it rests on costs that are not there"
    against = [others[s] for s in refutation.by]
    every = list(cases(against))
    if len(every) != len(refutation.cases):
        return f"there are {len(every)} cases, and multipliers for {len(refutation.cases)}"
    for number, (case, found) in enumerate(zip(every, refutation.cases, strict=True), start=1):
        if fault := _fault(candidate, against, case, found):
            return f"case {number}: {fault}"
    return None


def _fault(
    candidate: SumOfMaxima, against: Sequence[SumOfMaxima], case: Case, found: CaseMultipliers
) -> str | None:
    unknowns = len(candidate.fixed)
    sizes = [len(found.weights) == len(against), len(found.shares) == len(candidate.maxima)]
    if not all(sizes) or any(len(part) != unknowns for part in found.shares):
        return "a multiplier is missing"
    if not all(map(_parts_of_one, (found.weights, *found.shares))):
        return "multipliers do not add up to 1, or one is negative"
    own = list(candidate.fixed)
    for term, part in zip(candidate.maxima, found.shares, strict=True):
        own = [a + share * b for a, share, b in zip(own, part, term, strict=True)]
    mixed = [Fraction(0)] * unknowns
    for weight, line in zip(found.weights, _case_lines(against, case), strict=True):
        mixed = [a + weight * b for a, b in zip(mixed, line, strict=True)]
    if any(a < b for a, b in zip(own, mixed, strict=True)):
        return "the cost is less than the mixture"
    return None


def _parts_of_one(parts: Coefficients) -> bool:
    return min(parts) >= 0 and sum(parts) == 1


def _case_lines(costs: Sequence[SumOfMaxima], case: Case) -> list[Coefficients]:
    left = iter(case)
    return [cost.lines([next(left) for _ in cost.maxima]) for cost in costs]


# The fewest elements of which each of some sets has one.


def least_hitting(sets: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Fewest elements that meet every set, ascending; of several choices the first in order.

    The sets are not empty.  Tries one element more each time: there are few in what is asked here.
    """
    size = 0
    while (found := _within(sets, size)) is None:
        size += 1
    return tuple(sorted(found))


def _within(sets: Sequence[frozenset[int]], size: int) -> tuple[int, ...] | None:
    """At most so many elements that meet every set, or None."""
    if not sets:
        return ()
    if size == 0:
        return None
    smallest = min(sets, key=lambda one: len(one))
    for element in sorted(smallest):
        rest = _within([one for one in sets if element not in one], size - 1)
        if rest is not None:
            return (element, *rest)
    return None
