"""Fractions of a solver's floats that are prices by every rule, exactly.

Any prices prove something; near those of an optimum are fractions of small denominators that
prove it, measured in the price of a step's dearest capacity.  So each float becomes the nearest
fraction of some denominator, and then everything is scaled or filled up until the rules hold:
capacities cost 1 a round, crossings no more than their edges, and the shares of a group in an edge
together what it costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from p2smt.problems.flow import FlowPrices, FlowProblem
from p2smt.problems.flow_orbits import FlowOrbits

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class ExactPrices:
    """As :class:`~p2smt.problems.flow.FlowPrices`, in fractions that keep every rule."""

    capacities: Mapping[tuple[int, int], Fraction]
    shares: Mapping[tuple[int, int, int], Fraction]
    crossings: Mapping[int, Fraction]


def exact_prices(
    problem: FlowProblem, orbits: FlowOrbits, given: FlowPrices, denominator: int
) -> ExactPrices:
    """Prices near those given, with fractions of at most so large a denominator at first."""
    dearest = _dearest(problem, given)
    capacities = _of_unit(problem, orbits, given, dearest, denominator)
    costs = _costs(problem, orbits, capacities)
    units = [
        (dearest[s], max(price for (_, at), price in capacities.items() if at == s))
        for s in range(problem.steps or 1)
    ]
    crossings = _crossings(problem, costs, given, units[0], denominator)
    for x, price in crossings.items():
        for e in problem.crossings[x].edges:
            for s in range(problem.steps or 1):
                costs[e, s] -= price
    shares = _shares(problem, orbits, given, units, denominator, costs)
    return ExactPrices(capacities, shares, crossings)


_Unit = tuple[float, Fraction]
"""The price of a step's dearest capacity, as given and as it has become."""


def _near(value: float, denominator: int) -> Fraction:
    return max(_ZERO, Fraction(value).limit_denominator(denominator))


def _in_units(value: float, unit: _Unit, denominator: int) -> Fraction:
    given, exact = unit
    return _near(value / given, denominator) * exact


_NOTHING = 1e-12
"""A price below it, where the largest bandwidth is 1, is none: a solution's rounding is larger."""


def _dearest(problem: FlowProblem, given: FlowPrices) -> list[float]:
    """The price of the dearest capacity of every step; 1 where all cost next to nothing."""
    found = [0.0] * (problem.steps or 1)
    for (_, s), value in given.capacities:
        found[s] = max(found[s], value)
    nothing = _NOTHING / float(max(problem.capacities, default=1))
    return [value if value > nothing else 1.0 for value in found]


def _of_unit(
    problem: FlowProblem,
    orbits: FlowOrbits,
    given: FlowPrices,
    dearest: Sequence[float],
    denominator: int,
) -> dict[tuple[int, int], Fraction]:
    """Prices of capacities, which cost 1 together in every step."""
    found = {(k, s): _near(value / dearest[s], denominator) for (k, s), value in given.capacities}
    sizes = Counter(orbits.capacities)
    for s in range(problem.steps or 1):
        parts = [(k, problem.capacities[k] * sizes[k]) for k in sizes]
        spent = sum((rate * found.get((k, s), _ZERO) for k, rate in parts), _ZERO)
        if spent == 0:  # nothing is sent in this step: any prices will do
            found.update({(k, s): Fraction(1) for k, _ in parts})
            spent = sum((rate for _, rate in parts), _ZERO)
        for k, _ in parts:
            if (k, s) in found:
                found[k, s] /= spent
    return {at: price for at, price in found.items() if price}


def _costs(
    problem: FlowProblem, orbits: FlowOrbits, capacities: Mapping[tuple[int, int], Fraction]
) -> dict[tuple[int, int], Fraction]:
    """What every edge costs in every step; those that load the same cost the same."""
    known = {
        (loads, s): sum((capacities.get((orbits.capacities[k], s), _ZERO) for k in loads), _ZERO)
        for loads in {loads for _, _, loads in problem.edges}
        for s in range(problem.steps or 1)
    }
    return {
        (e, s): known[loads, s]
        for e, (_, _, loads) in enumerate(problem.edges)
        for s in range(problem.steps or 1)
    }


def _crossings(
    problem: FlowProblem,
    costs: Mapping[tuple[int, int], Fraction],
    given: FlowPrices,
    unit: _Unit,
    denominator: int,
) -> dict[int, Fraction]:
    """Prices of crossings, which cost no more than any edge."""
    found = {x: _in_units(value, unit, denominator) for x, value in given.crossings}
    scale, spent = lcm(*(price.denominator for price in found.values())), Counter[int]()
    for x, price in found.items():
        for e in problem.crossings[x].edges:
            spent[e] += int(price * scale)
    steps = range(problem.steps or 1)
    pairs = {(costs[e, s], total) for e, total in spent.items() if total for s in steps}
    fit = min((cost * scale / total for cost, total in pairs), default=Fraction(1))
    return {x: price * min(fit, Fraction(1)) for x, price in found.items() if price * fit}


def _shares(
    problem: FlowProblem,
    orbits: FlowOrbits,
    given: FlowPrices,
    units: Sequence[_Unit],
    denominator: int,
    costs: Mapping[tuple[int, int], Fraction],
) -> dict[tuple[int, int, int], Fraction]:
    """Shares that are together what an edge costs, of the least (group, edge) of every orbit."""
    edges = len(problem.edges)
    near = {at: _in_units(value, units[at[2]], denominator) for at, value in given.shares}
    members: dict[int, list[int]] = defaultdict(list)
    for p, way in enumerate(orbits.ways):
        members[way.group].append(p)
    found: dict[tuple[int, int, int], Fraction] = {}
    for n in sorted(set(orbits.groups)):
        group, e = divmod(n, edges)
        counts = Counter(orbits.edges[p * edges + e] for p in members.get(group, []))
        names = [divmod(least, edges) for least in counts]
        for s in range(problem.steps or 1) if names else ():
            parts = [near.get((*name, s), _ZERO) for name in names]
            spent = sum((n * part for n, part in zip(counts.values(), parts, strict=True)), _ZERO)
            fit = min(Fraction(1), costs[e, s] / spent) if spent else _ZERO
            parts = [part * fit for part in parts]
            first = next(iter(counts.values()))
            parts[0] += (costs[e, s] - spent * fit) / first
            found.update(
                {(*name, s): part for name, part in zip(names, parts, strict=True) if part}
            )
    return found
