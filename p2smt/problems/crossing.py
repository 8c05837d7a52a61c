"""Is one cost the least somewhere?  Sums of maxima over numbers that nobody knows, as plain data.

The unknown numbers (of a call, of latencies, of bandwidths) are not negative.  Costs have no term
without one, so scaling all numbers scales all costs: no number stands for the payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from p2smt.errors import InputError

Coefficients = tuple[Fraction, ...]
"""A number, at least 0, for each unknown."""

Case = tuple[int, ...]
"""For each maximum of a cost, of all costs one after the other, the unknown that it is taken at."""


@dataclass(frozen=True, slots=True)
class SumOfMaxima:
    """The cost fixed . x + sum over terms of max_k term_k x_k, for x >= 0."""

    fixed: Coefficients
    maxima: tuple[Coefficients, ...] = ()

    def __post_init__(self) -> None:
        if any(len(term) != len(self.fixed) for term in self.maxima):
            raise InputError("a cost", "has terms over different unknowns")
        if min(min(term, default=Fraction(0)) for term in (self.fixed, *self.maxima)) < 0:
            raise InputError("a cost", "has a negative coefficient")
        if not all(any(term) for term in self.maxima):
            raise InputError("a cost", "has a maximum of zeros", "leave it out")

    def value(self, point: Coefficients) -> Fraction:
        """The cost at a point."""
        total = sum((a * x for a, x in zip(self.fixed, point, strict=True)), Fraction(0))
        for term in self.maxima:
            total += max(a * x for a, x in zip(term, point, strict=True))
        return total

    def lines(self, chosen: Sequence[int]) -> Coefficients:
        """The linear cost that takes each maximum at one unknown: nowhere more than this cost."""
        total = list(self.fixed)
        for term, k in zip(self.maxima, chosen, strict=True):
            total[k] += term[k]
        return tuple(total)


@dataclass(frozen=True, slots=True)
class CrossingProblem:
    """Where is ``candidate`` less than each of the ``others``?"""

    candidate: SumOfMaxima
    others: tuple[SumOfMaxima, ...]

    def __post_init__(self) -> None:
        if not self.others:
            raise InputError("a crossing", "needs another cost")
        if any(len(other.fixed) != self.unknowns for other in self.others):
            raise InputError("a crossing", "has costs over different unknowns")

    @property
    def unknowns(self) -> int:
        """How many numbers are unknown."""
        return len(self.candidate.fixed)


def cases(costs: Sequence[SumOfMaxima]) -> Iterator[Case]:
    """Every way to take the maxima of these costs each at one of its unknowns, in order."""
    terms = [term for cost in costs for term in cost.maxima]
    return product(*([k for k, a in enumerate(term) if a] for term in terms))


@dataclass(frozen=True, slots=True)
class CaseMultipliers:
    """Farkas multipliers of one case: the candidate costs at least a mixture of the others' lines.

    ``weights`` of the others add up to 1.  ``shares``: of each maximum of the candidate, a weight
    for each unknown, together 1; the mixture of a maximum's parts is nowhere more than it.
    """

    weights: Coefficients
    shares: tuple[Coefficients, ...]


@dataclass(frozen=True, slots=True)
class Refutation:
    """Why the candidate is nowhere less than all others: ``by`` so many of them, by index.

    ``cases`` has multipliers for each of the cases of these, in the order of :func:`cases`.
    """

    by: tuple[int, ...]
    cases: tuple[CaseMultipliers, ...]
