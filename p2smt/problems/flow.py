"""What must at least go over a fabric: flows through its edges step by step, and their prices.

Chunks of a collective come in *groups* of equal ways: a group is the pairs (from, to) of ranks
between which each of its chunks must find a way.  Averaged over its chunks, what a schedule sends
is a flow for every pair, and no edge carries less than any pair of a group takes from it.  The
least rounds that all flows need are a linear program, whose dual sets prices: its optimum is a
bound for every number of chunks, and prices prove a bound by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2smt.errors import InputError
from p2smt.problems.schedule import EdgeRow, edge_distances

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FlowCrossing:
    """Over ``edges`` go at least ``messages`` a chunk of each group's, all steps together."""

    edges: tuple[int, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class FlowSymmetry:
    """Where a symmetry takes every rank and every edge, by their numbers."""

    ranks: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """The greatest rounds a chunk that prices prove, in ``steps`` steps (None: in any number).

    ``edges`` are (source, target, loaded capacities), ``capacities`` their bandwidths.
    ``crossings``: of all groups together, what must go over some edges.  Symmetries map groups,
    crossings and capacities onto such; their verification is not done here.
    """

    ranks: int
    edges: tuple[EdgeRow, ...]
    capacities: tuple[Fraction, ...]
    groups: tuple[Pairs, ...]
    crossings: tuple[FlowCrossing, ...] = ()
    steps: int | None = None
    symmetries: tuple[FlowSymmetry, ...] = ()

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InputError(f"{self.steps} steps", "must be at least 1")
        if not self.groups and not self.crossings:
            raise InputError("no groups and no crossings", "nothing has to be sent")

    def distances(self, start: int, *, back: bool = False) -> tuple[int | None, ...]:
        """Steps from ``start`` to each rank (``back``: to it); None: no way."""
        return edge_distances(self.ranks, self.edges, [start], back=back)


@dataclass(frozen=True, slots=True)
class FlowPrices:
    """Prices as a solver's floats, of one of what symmetries take to each other; no zeros.

    ``capacities``: by (capacity, step).  ``shares``: what of an edge's price in a step a way of a
    group with several takes, by (way, edge, step).  ``crossings``: by number.  Capacities, and
    ways with edges, are those that :class:`~p2smt.problems.flow.FlowOrbits` names; the step
    is 0 where their number is open.
    """

    value: float
    capacities: tuple[tuple[tuple[int, int], float], ...]
    shares: tuple[tuple[tuple[int, int, int], float], ...]
    crossings: tuple[tuple[int, float], ...]


# What the symmetries of a flow problem take to each other, each by its least number.


@dataclass(frozen=True, slots=True)
class FlowWay:
    """From ``source`` to each of ``targets``, along edges whose prices are theirs.

    A pair of a group with several pairs is a way of its own; the pairs of groups with one pair
    pay whole edges, and those with one source are one way.  ``group``: -1 for these.
    """

    source: int
    targets: tuple[int, ...]
    group: int


@dataclass(frozen=True, slots=True)
class FlowOrbits:
    """Ways, and for all numbers the least one that symmetries make of them.

    ``capacities`` by capacity; ``edges`` by way * edges + edge; ``places`` by way * ranks + rank;
    ``groups`` by group * edges + edge, where groups have several pairs (else it is empty).
    """

    ways: tuple[FlowWay, ...]
    capacities: tuple[int, ...]
    edges: tuple[int, ...]
    places: tuple[int, ...]
    groups: tuple[int, ...]


@lru_cache(maxsize=2)
def flow_orbits(problem: FlowProblem) -> FlowOrbits:
    """The orbits of a problem's symmetries, which must be some."""
    ways = _ways(problem)
    group_maps = [_group_map(problem, one) for one in problem.symmetries]
    way_maps = [
        _way_map(ways, one, groups)
        for one, groups in zip(problem.symmetries, group_maps, strict=True)
    ]
    edge_maps = [one.edges for one in problem.symmetries]
    rank_maps = [one.ranks for one in problem.symmetries]
    edges, count = len(problem.edges), len(ways)
    shared = len(problem.groups) if any(way.group >= 0 for way in ways) else 0
    return FlowOrbits(
        ways,
        _least(len(problem.capacities), [capacity_map(problem, one) for one in problem.symmetries]),
        _least(count * edges, _products(way_maps, edge_maps)),
        _least(count * problem.ranks, _products(way_maps, rank_maps)),
        _least(shared * edges, _products(group_maps, edge_maps)) if shared else (),
    )


def _least(size: int, maps: Sequence[ArrayLike]) -> tuple[int, ...]:
    return tuple(least_of_orbits(size, maps).tolist())


def least_of_orbits(size: int, maps: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """The least number that each of 0, 1, .. becomes under permutations and their products.

    Every number takes the least that is known of one of its images, and of what it takes: round
    after round, until all images of a number have the same.
    """
    least, images = np.arange(size), [np.asarray(one) for one in maps]
    settled = not images
    while not settled:
        before = least.copy()
        for image in images:
            least = np.minimum(least, least[image])
            least[image] = np.minimum(least, least[image])
        least = least[least]
        settled = np.array_equal(least, before)
    return least


def capacity_map(problem: FlowProblem, symmetry: FlowSymmetry) -> tuple[int, ...]:
    """Where a symmetry takes every capacity: it is known by its edges and its bandwidth."""
    loading: list[list[int]] = [[] for _ in problem.capacities]
    for e, (_, _, loads) in enumerate(problem.edges):
        for k in loads:
            loading[k].append(e)
    named: dict[tuple[Fraction, tuple[int, ...]], list[int]] = defaultdict(list)
    for k, rate in enumerate(problem.capacities):
        named[rate, tuple(loading[k])].append(k)
    found = [0] * len(problem.capacities)
    for (rate, edges), alike in named.items():
        images = named[rate, tuple(sorted(symmetry.edges[e] for e in edges))]
        for k, image in zip(alike, images, strict=True):
            found[k] = image
    return tuple(found)


def _ways(problem: FlowProblem) -> tuple[FlowWay, ...]:
    alone: dict[int, list[int]] = defaultdict(list)
    shared = []
    for g, pairs in enumerate(problem.groups):
        if len(pairs) == 1:
            alone[pairs[0][0]].append(pairs[0][1])
        else:
            shared += [FlowWay(source, (target,), g) for source, target in pairs]
    lone = [FlowWay(source, tuple(sorted(targets)), -1) for source, targets in alone.items()]
    return (*shared, *lone)


def _group_map(problem: FlowProblem, symmetry: FlowSymmetry) -> list[int]:
    at = symmetry.ranks
    number = {frozenset(pairs): g for g, pairs in enumerate(problem.groups)}
    return [number[frozenset((at[a], at[b]) for a, b in pairs)] for pairs in problem.groups]


def _way_map(ways: Sequence[FlowWay], symmetry: FlowSymmetry, groups: Sequence[int]) -> list[int]:
    at, number = symmetry.ranks, {way: n for n, way in enumerate(ways)}
    return [
        number[
            FlowWay(
                at[way.source],
                tuple(sorted(at[t] for t in way.targets)),
                -1 if way.group < 0 else groups[way.group],
            )
        ]
        for way in ways
    ]


def _products(
    firsts: Sequence[Sequence[int]], seconds: Sequence[Sequence[int]]
) -> list[NDArray[np.int64]]:
    """Permutations of pairs, numbered a * size + b, from permutations of their parts."""
    return [
        np.add.outer(np.asarray(first) * len(second), np.asarray(second)).ravel()
        for first, second in zip(firsts, seconds, strict=True)
    ]
