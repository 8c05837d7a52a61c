"""What the symmetries of a flow problem take to each other, each by its least number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from p2smt.problems.flow import FlowProblem, FlowSymmetry


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
        least_of_orbits(
            len(problem.capacities), [capacity_map(problem, one) for one in problem.symmetries]
        ),
        least_of_orbits(count * edges, _products(way_maps, edge_maps)),
        least_of_orbits(count * problem.ranks, _products(way_maps, rank_maps)),
        least_of_orbits(shared * edges, _products(group_maps, edge_maps)) if shared else (),
    )


def least_of_orbits(size: int, maps: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The least number that each of 0, 1, .. becomes under permutations and their products."""
    if not maps:
        return tuple(range(size))
    least = [-1] * size
    for start in range(size):
        if least[start] >= 0:
            continue
        least[start], frontier = start, [start]
        for one in frontier:
            for image in maps:
                if least[image[one]] < 0:
                    least[image[one]] = start
                    frontier.append(image[one])
    return tuple(least)


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


def _products(firsts: Sequence[Sequence[int]], seconds: Sequence[Sequence[int]]) -> list[list[int]]:
    """Permutations of pairs, numbered a * size + b, from permutations of their parts."""
    return [
        [a * len(second) + b for a in first for b in second]
        for first, second in zip(firsts, seconds, strict=True)
    ]
