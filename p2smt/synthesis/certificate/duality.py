"""Derives a bound from prices, by weak duality, in exact arithmetic.

In every step the capacities cost 1 a round, bandwidth times price together.  So the rounds of a
schedule are at least what its messages cost, each the prices of the capacities that its edge loads;
and of each chunk these cost at least the ways of its pairs, each pair paying its shares, and the
crossings, each paying its price.  Where the generators keep the shares, and what every edge costs
after the crossings, a group of pairs that they make of one that was looked at needs no look.
Nothing is assumed of the schedule but that messages of different chunks are not mixed.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TypeVar

from p2smt.synthesis.certificate import plain
from p2smt.synthesis.certificate.certificate import (
    BoundedCollective,
    BoundKind,
    CertifiedFabric,
    CertifiedMap,
    ChunkPairs,
    ScheduleCertificate,
)

Step = int | None


class NoProof(Exception):
    """The prices prove nothing; the text says why.  Never reaches a user."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """In whole numbers of 1/unit: ``edges`` by (edge, step), after the crossings; ``shares`` by
    (from, to, edge, step)."""

    unit: int
    edges: Mapping[tuple[int, Step], int]
    shares: Mapping[tuple[int, int, int, Step], int]


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Over ``edges`` go at least ``messages`` messages, a chunk of each group together."""

    edges: tuple[int, ...]
    messages: int
    price: Fraction


def proved_bound(claim: ScheduleCertificate, groups: Sequence[ChunkPairs]) -> Fraction:
    """The rounds a chunk that the prices prove; the generators must be verified.

    Raises:
        NoProof: the prices break a rule, which it names.
    """
    crossings = list(_crossings(claim, groups))
    costs = _costs(claim, crossings)
    total = sum((one.price * one.messages for one in crossings), Fraction(0))
    if claim.kind is BoundKind.FLOW:
        _check_kept(claim, costs)
        for pairs, count in _represented(claim.generators, groups):
            total += Fraction(count * _group(claim, costs, pairs), costs.unit)
    return total


def _steps(claim: ScheduleCertificate) -> list[Step]:
    return [None] if claim.steps is None else list(range(claim.steps))


def _costs(claim: ScheduleCertificate, crossings: Sequence[_Crossing]) -> _Costs:
    """What edges cost and pairs pay, all generators applied."""
    capacities, shares = _capacity_prices(claim), _share_prices(claim)
    every = [*capacities.values(), *shares.values(), *(one.price for one in crossings)]
    unit = lcm(*{price.denominator for price in every})
    whole = {at: _in_units(price, unit) for at, price in capacities.items()}
    crossed: dict[int, int] = defaultdict(int)
    for one in crossings:
        price = _in_units(one.price, unit)
        for e in one.edges:
            crossed[e] += price
    edges = {}
    for s in _steps(claim):
        for e, (_, _, loads) in enumerate(claim.fabric.edges):
            edges[e, s] = sum([whole.get((k, s), 0) for k in loads]) - crossed[e]
            if edges[e, s] < 0:
                raise NoProof(f"the crossings of edge {e} cost more than the edge")
    return _Costs(unit, edges, {at: _in_units(price, unit) for at, price in shares.items()})


def _in_units(price: Fraction, unit: int) -> int:
    """A price in whole numbers of 1/unit, which its denominator divides."""
    return price.numerator * (unit // price.denominator)


def _capacity_prices(claim: ScheduleCertificate) -> dict[tuple[int, Step], Fraction]:
    """Prices of all capacities, which cost 1 together in every step."""
    images = [capacity_images(claim.fabric, one) for one in claim.generators]
    maps = [lambda k, image=image: image[k] for image in images]
    found: dict[tuple[int, Step], Fraction] = {}
    for k, s, price in claim.prices.capacities:
        if (k, s) in found:
            raise NoProof(f"capacity {k} has two prices in a step")
        found.update({(other, s): price for other in orbit(k, maps)})
    rates = claim.fabric.capacities
    for s in _steps(claim):
        spent = sum((rates[k] * price for (k, at), price in found.items() if at == s), Fraction(0))
        if spent != 1:
            where = "" if s is None else f" of step {s + 1}"
            raise NoProof(f"a round{where} costs {plain.words(spent)}, and must cost 1")
    return found


def _share_prices(claim: ScheduleCertificate) -> dict[tuple[int, int, int, Step], Fraction]:
    """Shares of all pairs."""
    maps = [
        lambda at, one=one: (one.ranks[at[0]], one.ranks[at[1]], one.edges[at[2]], at[3])
        for one in claim.generators
    ]
    found: dict[tuple[int, int, int, Step], Fraction] = {}
    for a, b, e, s, price in claim.prices.shares:
        if (a, b, e, s) in found:
            raise NoProof(f"the way from {a} to {b} has two shares in edge {e} in a step")
        found.update(dict.fromkeys(orbit((a, b, e, s), maps), price))
    return found


def _crossings(claim: ScheduleCertificate, groups: Sequence[ChunkPairs]) -> Iterator[_Crossing]:
    """Cuts and partitions, each as often as it is named."""
    prices, edges = claim.prices, claim.fabric.edges
    for cut in prices.cuts:
        inside = set(cut.ranks)
        into = tuple(e for e, (a, b, _) in enumerate(edges) if a not in inside and b in inside)
        needed = sum(any(a not in inside and b in inside for a, b in pairs) for pairs in groups)
        yield _Crossing(into, needed, cut.price)
    for one in prices.partitions:
        if claim.collective is not BoundedCollective.ALL_REDUCE:
            raise NoProof("partitions are for all-reduce")
        if sorted(r for part in one.parts for r in part) != list(range(claim.fabric.ranks)):
            raise NoProof("the parts of a partition do not hold every rank once")
        part = {rank: n for n, ranks in enumerate(one.parts) for rank in ranks}
        between = tuple(e for e, (a, b, _) in enumerate(edges) if part[a] != part[b])
        count = sum(bool(ranks) for ranks in one.parts)
        yield _Crossing(between, 2 * (count - 1), one.price)


def _check_kept(claim: ScheduleCertificate, costs: _Costs) -> None:
    """Edges that a generator takes to each other cost the same; shares are so by their making."""
    for number, one in enumerate(claim.generators, 1):
        for (e, s), price in costs.edges.items():
            if costs.edges[one.edges[e], s] != price:
                raise NoProof(
                    f"generator {number} takes edge {e} to one of another cost: "
                    "it does not keep the crossings"
                )


def _represented(
    generators: Sequence[CertifiedMap], groups: Sequence[ChunkPairs]
) -> Iterator[tuple[ChunkPairs, int]]:
    """One group of those that generators take to each other, with their number."""
    maps = [lambda pairs, one=one: image_of_pairs(one, pairs) for one in generators]
    seen: set[ChunkPairs] = set()
    for pairs in groups:
        if pairs not in seen:
            alike = set(orbit(pairs, maps))
            seen |= alike
            yield pairs, len(alike)


def _group(claim: ScheduleCertificate, costs: _Costs, pairs: ChunkPairs) -> int:
    """What the ways of a group cost at least, together."""
    fabric, alone = claim.fabric, len(pairs) == 1
    if not alone:
        _check_split(costs, pairs)
    total = 0
    for a, b in sorted(pairs):

        def cost(e: int, s: Step, a: int = a, b: int = b) -> int:
            return costs.edges[e, s] if alone else costs.shares.get((a, b, e, s), 0)

        way = cheapest(fabric.ranks, fabric.edges, a, cost, claim.steps)[b]
        if way is None:
            raise NoProof(f"rank {b} cannot be reached from rank {a} in time")
        total += way
    return total


def _check_split(costs: _Costs, pairs: ChunkPairs) -> None:
    """The shares of a group's pairs in an edge are together what it costs."""
    paid: dict[tuple[int, Step], int] = defaultdict(int)
    for (a, b, e, s), price in costs.shares.items():
        if (a, b) in pairs:
            paid[e, s] += price
    for (e, s), price in costs.edges.items():
        if paid[e, s] != price:
            raise NoProof(
                f"the shares in edge {e} are {plain.words(Fraction(paid[e, s], costs.unit))}, "
                f"and it costs {plain.words(Fraction(price, costs.unit))}"
            )


# Verifies generators: permutations of ranks and edges that keep the fabric and the demand.


T = TypeVar("T")


def fault_of_generator(
    fabric: CertifiedFabric, one: CertifiedMap, groups: Sequence[ChunkPairs]
) -> str | None:
    """Why a map is no symmetry of fabric and demand, in words; None: it is one."""
    if sorted(one.ranks) != list(range(fabric.ranks)):
        return "does not permute the ranks"
    if sorted(one.edges) != list(range(len(fabric.edges))):
        return "does not permute the edges"
    for e, (source, target, _) in enumerate(fabric.edges):
        if fabric.edges[one.edges[e]][:2] != (one.ranks[source], one.ranks[target]):
            return f"takes edge {e} to one between other ranks than its own"
    same = tuple(range(len(fabric.edges)))
    if Counter(_named(fabric, one.edges)) != Counter(_named(fabric, same)):
        return "does not take capacities to capacities of the same bandwidth"
    if Counter(image_of_pairs(one, pairs) for pairs in groups) != Counter(groups):
        return "does not take what is asked for to itself"
    return None


def image_of_pairs(one: CertifiedMap, pairs: ChunkPairs) -> ChunkPairs:
    """Where a generator takes pairs of ranks."""
    return frozenset((one.ranks[a], one.ranks[b]) for a, b in pairs)


def capacity_images(fabric: CertifiedFabric, one: CertifiedMap) -> list[int]:
    """Where a generator takes each capacity: it is known by its bandwidth and its edges."""
    same = tuple(range(len(fabric.edges)))
    images = defaultdict(list)
    for k, name in enumerate(_named(fabric, same)):
        images[name].append(k)
    return [images[name].pop(0) for name in _named(fabric, one.edges)]


def _named(fabric: CertifiedFabric, edges: Sequence[int]) -> list[tuple[object, ...]]:
    """Every capacity by its bandwidth and its edges, these after a permutation."""
    loading: list[list[int]] = [[] for _ in fabric.capacities]
    for e, (_, _, loads) in enumerate(fabric.edges):
        for k in loads:
            loading[k].append(edges[e])
    return [(rate, *sorted(on)) for rate, on in zip(fabric.capacities, loading, strict=True)]


def orbit(start: T, maps: Sequence[Callable[[T], T]]) -> Iterator[T]:
    """Everything that maps and their products make of one thing, which comes first."""
    known, frontier = {start}, [start]
    for one in frontier:
        yield one
        for image in maps:
            if (other := image(one)) not in known:
                known.add(other)
                frontier.append(other)


# The cheapest ways through a fabric, step by step or in any number of steps, in whole numbers.


Cost = Callable[[int, int | None], int]
"""What an edge costs in a step, 0 or more."""
_Edges = Sequence[tuple[int, int, tuple[int, ...]]]


def cheapest(
    ranks: int, edges: _Edges, source: int, cost: Cost, steps: int | None
) -> list[int | None]:
    """The least cost from ``source`` to each rank, in ``steps`` steps of one edge or none each.

    ``steps`` None: along any number of edges, whose costs are those of step None.  None: there is
    no way.
    """
    if steps is None:
        return _without_steps(ranks, edges, source, cost)
    found: list[int | None] = [None] * ranks
    found[source] = 0
    for step in range(steps):
        before = list(found)
        for e, (a, b, _) in enumerate(edges):
            start = before[a]
            if start is None:
                continue
            there, known = start + cost(e, step), found[b]
            if known is None or there < known:
                found[b] = there
    return found


def _without_steps(ranks: int, edges: _Edges, source: int, cost: Cost) -> list[int | None]:
    after: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for e, (a, b, _) in enumerate(edges):
        after[a].append((b, cost(e, None)))
    found: list[int | None] = [None] * ranks
    found[source], waiting = 0, [(0, source)]
    while waiting:
        spent, rank = heapq.heappop(waiting)
        if spent != found[rank]:  # a cheaper way was followed
            continue
        for other, price in after[rank]:
            known = found[other]
            if known is None or spent + price < known:
                found[other] = spent + price
                heapq.heappush(waiting, (spent + price, other))
    return found
