"""What the trees of a forest load, added up anew: images of every tree are made one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from p2smt.synthesis.certificate.forest import ForestClaim, WeightedTree


def assert_spans(claim: ForestClaim) -> None:
    """Every tree comes to every rank, and leads over vertices that are none in between."""
    arcs, ranks = claim.network.arcs, claim.network.ranks
    for tree, turned in _all(claim):
        before = {}
        for way in tree.ways:
            ends = [arcs[arc][1::-1] if turned else arcs[arc][:2] for arc in way]
            assert all(a[1] == b[0] >= ranks for a, b in pairwise(ends))
            assert ends[-1][1] not in before
            before[ends[-1][1]] = ends[0][0]
        assert set(before) == set(range(ranks)) - {tree.root}
        for rank in range(ranks):
            seen = {rank}
            while rank != tree.root:
                rank = before[rank]
                assert rank not in seen
                seen.add(rank)


def _all(claim: ForestClaim) -> list[tuple[WeightedTree, bool]]:
    return [(tree, False) for tree in claim.copying] + [(tree, True) for tree in claim.adding]


def greatest_load(claim: ForestClaim) -> Fraction:
    """The time of the busiest arc, where loads are the same all over an orbit.

    Orbits are found by walking over images, one vertex and arc after the other.
    """
    arcs = claim.network.arcs
    here = {(a, b, c): n for n, (a, b, c) in enumerate(arcs)}
    assert len(here) == len(arcs), "no two arcs between the same vertices are alike"
    of_vertex = _orbits(
        range(len(claim.network.vertices)),
        [lambda v, m=moves: m.get(v, v) for moves in claim.symmetries],
    )
    of_arc = _orbits(
        range(len(arcs)),
        [
            lambda n, m=moves: here[
                m.get(arcs[n][0], arcs[n][0]), m.get(arcs[n][1], arcs[n][1]), arcs[n][2]
            ]
            for moves in claim.symmetries
        ],
    )
    sizes = Counter(of_vertex[rank] for rank in range(claim.network.ranks))
    weights: dict[tuple[bool, int], Fraction] = defaultdict(Fraction)
    loads: dict[int, Fraction] = defaultdict(Fraction)
    for tree, turned in _all(claim):
        orbit = of_vertex[tree.root]
        weights[turned, orbit] += tree.weight
        for way in tree.ways:
            for arc in way:
                many = 1 if claim.root is not None else sizes[orbit]
                loads[of_arc[arc]] += tree.weight * many
    if claim.copying and claim.adding:
        for turned in (False, True):
            own = {orbit: weight for (way, orbit), weight in weights.items() if way is turned}
            assert sum(sizes[orbit] * weight for orbit, weight in own.items()) == sum(
                sizes.values()
            )
            assert all(weights[not turned, orbit] == weight for orbit, weight in own.items())
    else:
        assert set(weights.values()) == {1}
        roots = set(sizes) if claim.root is None else {of_vertex[claim.root]}
        assert {orbit for _, orbit in weights} == roots
    spread = Counter(of_arc.values())
    return max(
        load / rate / spread[arc]
        for arc, load in loads.items()
        if (rate := arcs[arc][2]) is not None
    )


def _orbits(points: Iterable[int], maps: Sequence[Callable[[int], int]]) -> dict[int, int]:
    """By point the first one from which maps lead to it."""
    found: dict[int, int] = {}
    for start in points:
        if start not in found:
            found[start], frontier = start, [start]
            for point in frontier:
                for image in (one(point) for one in maps):
                    if image not in found:
                        found[image] = start
                        frontier.append(image)
    return found
