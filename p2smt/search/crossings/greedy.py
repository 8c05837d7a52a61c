"""Multipliers by a glance: a cost that one other cost, or a given mixture, never exceeds.

Most costs are refuted by one member.  In each case that member is a line; the candidate's maxima
have to cover it, unknown by unknown.  Maxima with the fewest parts are shared out first, each over
the unknowns in order, as far as the line asks for it.  Where that fails, a solver is asked: this
finds no multipliers where there may be some, and never wrong ones.
"""

from __future__ import annotations

from fractions import Fraction

from p2smt.problems.crossing import (
    CaseMultipliers,
    Coefficients,
    Refutation,
    SumOfMaxima,
    cases,
)


def glance(candidate: SumOfMaxima, others: tuple[SumOfMaxima, ...]) -> Refutation | None:
    """A refutation by one of the others; None: none is seen."""
    for s, other in enumerate(others):
        if any(a < b for a, b in zip(_most(candidate), other.fixed, strict=True)):
            continue
        found = _every_case(candidate, other)
        if found is not None:
            return Refutation((s,), found)
    return None


def _most(cost: SumOfMaxima) -> Coefficients:
    """What shares of the maxima can make of each unknown's coefficient at most."""
    return tuple(
        a + sum((term[k] for term in cost.maxima), Fraction(0)) for k, a in enumerate(cost.fixed)
    )


def _every_case(candidate: SumOfMaxima, other: SumOfMaxima) -> tuple[CaseMultipliers, ...] | None:
    found = []
    for case in cases([other]):
        shares = _covering(candidate, other.lines(case))
        if shares is None:
            return None
        found.append(CaseMultipliers((Fraction(1),), shares))
    return tuple(found)


def _covering(candidate: SumOfMaxima, line: Coefficients) -> tuple[Coefficients, ...] | None:
    """Shares of the candidate's maxima with which it has at least the line's coefficients."""
    lacking = [max(Fraction(0), a - b) for a, b in zip(line, candidate.fixed, strict=True)]
    shares: dict[int, Coefficients] = {}
    for i in sorted(range(len(candidate.maxima)), key=lambda i: _flexible(candidate.maxima[i])):
        shares[i] = _shared_out(candidate.maxima[i], lacking)
    if any(lacking):
        return None
    return tuple(shares[i] for i in range(len(candidate.maxima)))


def _flexible(term: Coefficients) -> tuple[int, Coefficients]:
    return sum(1 for a in term if a), term


def _shared_out(term: Coefficients, lacking: list[Fraction]) -> Coefficients:
    """The shares of one maximum; takes from what is lacking.  What is left goes to its first."""
    left, shares = Fraction(1), [Fraction(0)] * len(term)
    for k, a in enumerate(term):
        if a and lacking[k]:
            part = min(left, lacking[k] / a)
            shares[k] += part
            lacking[k] -= part * a
            left -= part
    shares[next(k for k, a in enumerate(term) if a)] += left
    return tuple(shares)
